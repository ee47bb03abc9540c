"""Plimsoll decides what a language model sees before every call of an agent.

`bound` and `Session` take and return the message lists of OpenAI's and Anthropic's interfaces. `inspect`, `replay` and `trim`
read recorded sessions. `Store` remembers and recalls. `python -m plimsoll` is the command line.
"""

from ._files import inspect, replay, trim
from ._native import PlimsollError as Error
from ._session import Context, Session, bound
from ._store import Store

__all__ = ["Context", "Error", "Session", "Store", "bound", "inspect", "replay", "trim"]
