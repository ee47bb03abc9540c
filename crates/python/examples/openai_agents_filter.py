"""OpenAI Agents SDK: a filter bounds the input of every call of the model, and the run keeps every item whole."""

import sys
from pathlib import Path

import plimsoll
from agents import Agent, RunConfig, Runner, function_tool
from agents.run import CallModelData, ModelInputData

session = plimsoll.Session(model="gpt-5.1", budget=16_000, wire="openai-responses")


def bounded(data: CallModelData) -> ModelInputData:
    own = data.model_data
    return ModelInputData(session.bound(own.input, system=own.instructions), own.instructions)


@function_tool
def read_file(path: str) -> str:
    """Reads a file."""
    return Path(path).read_text()


agent = Agent(name="reader", instructions="You read files.", model="gpt-5.1", tools=[read_file])
config = RunConfig(call_model_input_filter=bounded, tracing_disabled=True)
print(Runner.run_sync(agent, " ".join(sys.argv[1:]), run_config=config).final_output)
