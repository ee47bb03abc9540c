"""Bounded message lists: `bound`, `Session` and the `Context` that they return."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from os import PathLike
from typing import Any

from ._messages import encoded, fields, wire_of
from ._native import NativeSession, PlimsollError

# The fields in which the interfaces have a system prompt beside the messages.
_SYSTEM = {
    "anthropic-messages": "system",
    "openai-responses": "instructions",
    "gemini": "systemInstruction",
}

# The sessions that `bound` goes on with (chosen: each has up to 16 conversations).
_MOST_SESSIONS = 8


class Context(list[Any]):
    """The messages to send: unchanged ones are the objects that were given, changed ones are new dicts."""

    origins: list[int | None]
    """For each message the index of the one that it was."""
    violation: str | None
    """The provider's rule that the change would have broken; then all messages are as they were given."""

    def __init__(
        self,
        messages: Iterable[Any],
        origins: list[int | None],
        receipt: str,
        violation: str | None,
    ) -> None:
        super().__init__(messages)
        self.origins = origins
        self.violation = violation
        self._written = receipt
        self._receipt: dict[str, Any] | None = None

    @property
    def receipt(self) -> dict[str, Any]:
        """The decision: tokens before and after, cost, and each change with its reason."""
        if self._receipt is None:
            self._receipt = json.loads(self._written)
        return self._receipt

    @property
    def tokens(self) -> int:
        """The tokens of the bounded messages."""
        return int(self.receipt["tokens"])

    @property
    def full_tokens(self) -> int:
        """The tokens of the messages that were given."""
        return int(self.receipt["full_tokens"])


class Session:
    """The decisions about one agent's messages, so that what was sent keeps its bytes and stays in the provider's cache.

    `budget` is the ceiling in tokens, by default that of the settings. `lookups` says that the agent has a tool which calls
    `expand`; then excerpts name the ref of their original, as the stubs of a full budget always do. A session may be used by
    several threads.
    """

    def __init__(
        self,
        *,
        model: str | None = None,
        budget: int | None = None,
        policy: str = "plimsoll",
        wire: str | None = None,
        lookups: bool = False,
        config: str | PathLike[str] | None = None,
    ) -> None:
        self.model = model
        self.wire = wire
        self._native = NativeSession(policy, budget, lookups, config)

    def bound(
        self,
        messages: Sequence[Any],
        *,
        system: Any = None,
        tools: Sequence[Any] | None = None,
        model: str | None = None,
        at: float | None = None,
    ) -> Context:
        """Returns what to send instead of `messages`, which are the whole conversation so far.

        `system` and `tools` are those of the request, if it has them beside the messages: they count towards the cost.
        `at` is the time of the request in seconds since 1970, by default now.
        """
        model = model or self.model
        wire = self.wire or wire_of(messages, system, model)
        named: dict[str, object] = {"model": model, "tools": tools}
        if system is not None:
            if wire not in _SYSTEM:
                raise PlimsollError(f"{wire} has the system prompt among the messages")
            named[_SYSTEM[wire]] = system
        millis = None if at is None else int(at * 1000)
        try:
            written = [encoded(message) for message in messages]
            done = self._native.bound(wire, fields(named), written, millis)
        except (TypeError, ValueError) as error:
            raise PlimsollError(str(error)) from None
        if done.elements is None:
            origins: list[int | None] = list(range(len(messages)))
            return Context(messages, origins, done.receipt, done.violation)
        bounded = [
            messages[origin] if changed is None and origin is not None else json.loads(changed or "null")
            for origin, changed in done.elements
        ]
        origins = [origin for origin, _ in done.elements]
        return Context(bounded, origins, done.receipt, done.violation)

    def expand(self, ref: str) -> str:
        """Returns the original behind a ref that a shortened message of this session names."""
        text = self._native.expand(ref)
        if text is None:
            raise PlimsollError(f"there is no message `{ref}` in this session")
        return text


_sessions: OrderedDict[tuple[object, ...], Session] = OrderedDict()
_lock = threading.Lock()


def bound(
    messages: Sequence[Any],
    *,
    budget: int | None = None,
    model: str | None = None,
    system: Any = None,
    tools: Sequence[Any] | None = None,
    policy: str = "plimsoll",
    wire: str | None = None,
) -> Context:
    """Returns what to send instead of `messages`.

    The process remembers its last conversations: one that goes on keeps the decisions about its earlier messages. A `Session`
    holds those of one agent apart, and as long as it lives.
    """
    key = (model, budget, policy, wire)
    with _lock:
        session = _sessions.pop(key, None)
        if session is None:
            session = Session(model=model, budget=budget, policy=policy, wire=wire)
        _sessions[key] = session
        while len(_sessions) > _MOST_SESSIONS:
            _sessions.popitem(last=False)
    return session.bound(messages, system=system, tools=tools)
