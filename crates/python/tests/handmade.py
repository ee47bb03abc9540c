"""Handmade sessions: an agent that reads files, some of them again, and is asked further questions."""

from __future__ import annotations

import json
from typing import Any

Messages = list[dict[str, Any]]


def file_text(number: int, lines: int) -> str:
    """Returns the text of a file; files share every third line."""
    line = "{:04d} the value of field {} is {}\n"
    return "".join(
        line.format(at, at % 7, "shared" if at % 3 == 0 else number * 31 + at) for at in range(lines)
    )


def chat_session(turns: int, lines: int = 60) -> Messages:
    """Returns a session of OpenAI's Chat Completions with so many answers of the model."""
    messages: Messages = [
        {"role": "system", "content": "You read files."},
        {"role": "user", "content": "Compare the files."},
    ]
    for turn in range(turns):
        if turn % 10 == 9:
            messages.append({"role": "assistant", "content": f"The files up to {turn} are alike."})
            messages.append({"role": "user", "content": f"And those behind {turn}?"})
            continue
        file = turn % 23
        call = {"name": "read_file", "arguments": json.dumps({"path": f"{file}.txt"})}
        calls = [{"id": f"call_{turn}", "type": "function", "function": call}]
        messages.append({"role": "assistant", "content": None, "tool_calls": calls})
        text = file_text(file, lines + 10 * (turn % 5))
        messages.append({"role": "tool", "tool_call_id": f"call_{turn}", "content": text})
    return messages


def anthropic_session(turns: int, lines: int = 60) -> Messages:
    """Returns the same session as Anthropic's messages."""
    written: Messages = []
    for message in chat_session(turns, lines)[1:]:
        if message["role"] == "tool":
            block = {
                "type": "tool_result",
                "tool_use_id": message["tool_call_id"],
                "content": message["content"],
            }
            written.append({"role": "user", "content": [block]})
        elif message.get("tool_calls"):
            call = message["tool_calls"][0]
            name, given = call["function"]["name"], json.loads(call["function"]["arguments"])
            block = {"type": "tool_use", "id": call["id"], "name": name, "input": given}
            written.append({"role": "assistant", "content": [block]})
        else:
            written.append(message)
    return written


def shown(message: dict[str, Any]) -> list[tuple[str, str]]:
    """Returns what a model reads of a chat message, as `replay --contexts` writes it."""
    lines = [message["content"] or ""] if "content" in message else []
    for call in message.get("tool_calls") or []:
        lines.append(f"{call['function']['name']} {call['function']['arguments']}")
    return [(message["role"], "\n".join(lines))]
