"""An agent's loop with Anthropic's library: every request is bounded, the list itself grows."""

import sys
from pathlib import Path

import plimsoll
from anthropic import Anthropic

MODEL = "claude-sonnet-4-5"
SYSTEM = "You read files."
PATH = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOLS = [{"name": "read_file", "description": "Reads a file", "input_schema": PATH}]
client = Anthropic()
session = plimsoll.Session(model=MODEL, budget=16_000)
messages = [{"role": "user", "content": " ".join(sys.argv[1:])}]
while True:
    sent = session.bound(messages, system=SYSTEM, tools=TOOLS)
    answer = client.messages.create(model=MODEL, max_tokens=1000, system=SYSTEM, messages=sent, tools=TOOLS)
    messages.append({"role": "assistant", "content": answer.content})
    calls = [block for block in answer.content if block.type == "tool_use"]
    if not calls:
        break
    results = [(call.id, Path(call.input["path"]).read_text()) for call in calls]
    blocks = [{"type": "tool_result", "tool_use_id": one, "content": text} for one, text in results]
    messages.append({"role": "user", "content": blocks})
print(answer.content[0].text)
