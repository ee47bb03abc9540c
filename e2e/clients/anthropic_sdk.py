"""An agent loop on the Anthropic SDK with two tools; it alternates streamed and whole answers.

Arguments: BASE_URL PROMPT MODEL [--no-marks] [--adaptive].
"""

import subprocess
import sys

import anthropic

TOOLS = [
    {"name": "bash", "description": "Runs a command line.",
     "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}},
    {"name": "read_file", "description": "Reads a file.",
     "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}},
]
MARK = {"cache_control": {"type": "ephemeral"}}


def run(name, arguments):
    command = arguments["command"] if name == "bash" else ["cat", arguments["path"]]
    done = subprocess.run(command, shell=name == "bash", capture_output=True, text=True)
    return done.stdout + done.stderr or "no output", done.returncode != 0


def marked(messages):
    """Returns the messages with a mark on their last block, as agents set one."""
    last = messages[-1]
    blocks = last["content"] if isinstance(last["content"], list) else [{"type": "text", "text": last["content"]}]
    return [*messages[:-1], {**last, "content": [*blocks[:-1], {**blocks[-1], **MARK}]}]


def main(base_url, prompt, model, *options):
    client = anthropic.Anthropic(base_url=base_url, api_key="none", max_retries=0)
    marks, adaptive = "--no-marks" not in options, "--adaptive" in options
    system = [{"type": "text", "text": "You mend programs. " * 300, **(MARK if marks else {})}]
    messages = [{"role": "user", "content": prompt}]
    predicted = client.messages.count_tokens(model=model, messages=messages, tools=TOOLS, system=system)
    assert predicted.input_tokens > 0
    for turn in range(40):
        request = {"model": model, "max_tokens": 4096, "system": system, "tools": TOOLS,
                   "messages": marked(messages) if marks else messages,
                   "thinking": {"type": "adaptive"} if adaptive else {"type": "enabled", "budget_tokens": 2048}}
        if turn % 2 == 0:
            with client.messages.stream(**request) as stream:
                answer = stream.get_final_message()
        else:
            answer = client.messages.create(**request)
        messages.append({"role": "assistant", "content": answer.content})
        calls = [block for block in answer.content if block.type == "tool_use"]
        assert {call.name for call in calls} <= {"bash", "read_file"}, "a tool of somebody else"
        if not calls:
            assert answer.stop_reason == "end_turn", answer.stop_reason
            print(answer.content[-1].text)
            return
        assert answer.stop_reason == "tool_use", answer.stop_reason
        results = []
        for call in calls:
            text, failed = run(call.name, call.input)
            results.append({"type": "tool_result", "tool_use_id": call.id, "content": text, "is_error": failed})
        messages.append({"role": "user", "content": results})
    sys.exit("no end after 40 turns")


main(*sys.argv[1:])
