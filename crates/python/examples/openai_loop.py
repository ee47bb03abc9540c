"""An agent's loop with OpenAI's library: every request is bounded, the list itself grows."""

import json
import sys
from pathlib import Path

import plimsoll
from openai import OpenAI

MODEL = "gpt-5.1"
PATH = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
READ = {"name": "read_file", "description": "Reads a file", "parameters": PATH}
TOOLS = [{"type": "function", "function": READ}]

client = OpenAI()
session = plimsoll.Session(model=MODEL, budget=16_000)
messages = [{"role": "user", "content": " ".join(sys.argv[1:])}]
while True:
    sent = session.bound(messages, tools=TOOLS)
    answer = client.chat.completions.create(model=MODEL, messages=sent, tools=TOOLS)
    message = answer.choices[0].message
    messages.append(message)
    if not message.tool_calls:
        break
    for call in message.tool_calls:
        text = Path(json.loads(call.function.arguments)["path"]).read_text()
        messages.append({"role": "tool", "tool_call_id": call.id, "content": text})
print(message.content)
