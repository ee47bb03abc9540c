"""pydantic-ai: a history processor. What it returns becomes the history, so the whole one is kept here."""

import sys
from dataclasses import replace
from pathlib import Path

import plimsoll
from pydantic_ai import Agent
from pydantic_ai.capabilities import ProcessHistory

session = plimsoll.Session(model="gpt-5.1", budget=16_000)
whole, sent = [], []
ROLES = {"system-prompt": "system", "tool-return": "tool", "text": "assistant"}


def chat(part):
    if part.part_kind == "tool-call":
        call = {"name": part.tool_name, "arguments": part.args_as_json_str()}
        calls = [{"id": part.tool_call_id, "type": "function", "function": call}]
        return {"role": "assistant", "tool_calls": calls}
    one = {"role": ROLES.get(part.part_kind, "user"), "content": str(part.content)}
    return one | ({"tool_call_id": part.tool_call_id} if one["role"] == "tool" else {})


def bounded(messages):
    whole.extend(messages[len(sent) :])
    parts = [part for message in whole for part in message.parts]
    written = [chat(part) for part in parts]
    context, shown = session.bound(written), {}
    for at, form in zip(context.origins, context):
        part = parts[at]
        shown[id(part)] = part if form is written[at] else replace(part, content=form["content"])
    kept = [[shown[id(one)] for one in message.parts if id(one) in shown] for message in whole]
    sent[:] = [replace(message, parts=own) for message, own in zip(whole, kept) if own]
    return list(sent)


agent = Agent("openai-chat:gpt-5.1", capabilities=[ProcessHistory(bounded)])


@agent.tool_plain
def read_file(path: str) -> str:
    """Reads a file."""
    return Path(path).read_text()


print(agent.run_sync(" ".join(sys.argv[1:])).output)
