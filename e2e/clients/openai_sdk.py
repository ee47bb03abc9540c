"""An agent loop on the OpenAI SDK with two tools; it alternates streamed and whole answers.

Arguments: BASE_URL PROMPT chat|responses MODEL.
"""

import json
import subprocess
import sys

import openai

TOOLS = {
    "shell": ("Runs a command line.", {"command": {"type": "string"}}),
    "read_file": ("Reads a file.", {"path": {"type": "string"}}),
}


def schema(properties):
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def run(name, arguments):
    arguments = json.loads(arguments)
    command = arguments["command"] if name == "shell" else ["cat", arguments["path"]]
    done = subprocess.run(command, shell=name == "shell", capture_output=True, text=True)
    return done.stdout + done.stderr or "no output"


def chat(client, prompt, model):
    tools = [{"type": "function", "function": {"name": name, "description": text, "parameters": schema(properties)}}
             for name, (text, properties) in TOOLS.items()]
    messages = [{"role": "system", "content": "You mend programs. " * 300}, {"role": "user", "content": prompt}]
    for turn in range(40):
        request = {"model": model, "messages": messages, "tools": tools}
        if turn % 2 == 0:
            with client.chat.completions.stream(**request, stream_options={"include_usage": True}) as stream:
                answer = stream.get_final_completion()
        else:
            answer = client.chat.completions.create(**request)
        assert answer.usage.prompt_tokens > 0
        message = answer.choices[0].message
        messages.append(message.model_dump(exclude_none=True, exclude={"parsed": True}))
        for call in messages[-1].get("tool_calls", []):
            call["function"].pop("parsed_arguments", None)
        if not message.tool_calls:
            assert answer.choices[0].finish_reason == "stop"
            return message.content
        for call in message.tool_calls:
            assert call.function.name in TOOLS, "a tool of somebody else"
            content = run(call.function.name, call.function.arguments)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": content})
    sys.exit("no end after 40 turns")


def responses(client, prompt, model):
    tools = [{"type": "function", "name": name, "description": text, "parameters": schema(properties), "strict": True}
             for name, (text, properties) in TOOLS.items()]
    items = [{"role": "user", "content": prompt}]
    for turn in range(40):
        request = {"model": model, "input": items, "tools": tools, "store": False,
                   "instructions": "You mend programs. " * 300, "include": ["reasoning.encrypted_content"]}
        if turn % 2 == 0:
            with client.responses.stream(**request) as stream:
                answer = stream.get_final_response()
        else:
            answer = client.responses.create(**request)
        assert answer.usage.input_tokens > 0
        for item in answer.output:
            item = item.model_dump(exclude_none=True)
            item.pop("parsed_arguments", None)
            items.append(item)
        calls = [item for item in answer.output if item.type == "function_call"]
        if not calls:
            return answer.output_text
        for call in calls:
            assert call.name in TOOLS, "a tool of somebody else"
            output = run(call.name, call.arguments)
            items.append({"type": "function_call_output", "call_id": call.call_id, "output": output})
    sys.exit("no end after 40 turns")


def main(base_url, prompt, api, model):
    client = openai.OpenAI(base_url=base_url + "/v1", api_key="none", max_retries=0)
    print({"chat": chat, "responses": responses}[api](client, prompt, model))


main(*sys.argv[1:])
