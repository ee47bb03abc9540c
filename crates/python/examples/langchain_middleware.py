"""LangChain: a middleware bounds what the model is sent, and the agent's state keeps every message whole."""

import sys
from pathlib import Path

import plimsoll
from langchain.agents import create_agent
from langchain.agents.middleware import wrap_model_call
from langchain_core.messages import convert_to_openai_messages

session = plimsoll.Session(model="gpt-5.1", budget=16_000)


@wrap_model_call
def bounded(request, handler):
    whole = [convert_to_openai_messages(message) for message in request.messages]
    context = session.bound(whole)
    sent = []
    for at, message in zip(context.origins, context):
        own = request.messages[at]
        is_whole = message is whole[at]
        sent.append(own if is_whole else own.model_copy(update={"content": message["content"]}))
    return handler(request.override(messages=sent))


def read_file(path: str) -> str:
    """Reads a file."""
    return Path(path).read_text()


agent = create_agent("openai:gpt-5.1", tools=[read_file], middleware=[bounded])
asked = {"messages": [{"role": "user", "content": " ".join(sys.argv[1:])}]}
print(agent.invoke(asked)["messages"][-1].text)
