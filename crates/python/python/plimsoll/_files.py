"""Recorded sessions: the commands `inspect`, `replay` and `trim`, with their flags as keyword arguments."""

from __future__ import annotations

import json
import os
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from typing import Any

from ._messages import encoded
from ._native import PlimsollError, run_captured

Source = str | PathLike[str] | Sequence[Any] | Mapping[str, Any]


@contextmanager
def _file(source: Source) -> Iterator[str]:
    """Gives the path of a session; messages get a file until the end."""
    if isinstance(source, (str, os.PathLike)):
        yield os.fspath(source)
        return
    with tempfile.TemporaryDirectory(prefix="plimsoll-") as folder:
        path = os.path.join(folder, "messages.json")
        with open(path, "w", encoding="utf-8") as file:
            file.write(encoded(source))
        yield path


def _flags(options: Mapping[str, Any]) -> Iterator[str]:
    """Writes keyword arguments as flags: `True` is a flag alone, and a list gives the flag several times."""
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        values = value if isinstance(value, (list, tuple)) else [value]
        for one in values:
            if one is True:
                yield flag
            elif one is not None and one is not False:
                yield f"{flag}={one}"


def _run(command: str, path: str, options: Mapping[str, Any]) -> tuple[int, bytes, list[str]]:
    code, data, messages = run_captured(["plimsoll", command, *_flags(options), "--", path])
    for message in messages:
        if message.startswith("warning: "):
            warnings.warn(message.removeprefix("warning: "), stacklevel=4)
    if code != 0 and not (messages and messages[-1].startswith("note: ")):
        reason = messages[-1] if messages else f"`{command}` failed"
        raise PlimsollError(reason.removeprefix("error: "))
    return code, data, messages


def _report(command: str, source: Source, options: Mapping[str, Any]) -> dict[str, Any]:
    with _file(source) as path:
        _, data, _ = _run(command, path, {**options, "json": True})
    report: dict[str, Any] = json.loads(data)
    return report


def inspect(source: Source, **options: Any) -> dict[str, Any]:
    """Returns the content and the tokens of a recorded session, a file of any known format or a list of messages."""
    return _report("inspect", source, options)


def replay(
    source: Source,
    *,
    policy: str | Sequence[str] = "plimsoll",
    budget: int | None = None,
    model: str | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Returns what a session would have sent, cost and missed under one policy or several, turn by turn.

    Other flags of `plimsoll replay` are keyword arguments: `append_only=True`, `contexts="out.jsonl"`.
    """
    named = {"policy": [policy] if isinstance(policy, str) else list(policy)}
    return _report("replay", source, {**named, "budget": budget, "model": model, **options})


def trim(
    source: Source,
    *,
    policy: str | None = "plimsoll",
    budget: int | None = None,
    model: str | None = None,
    **options: Any,
) -> Any:
    """Returns the context of a session's next request: a list for messages, the bytes of the file's own format for a path.

    A session that needs no trimming is returned as it is.
    """
    options = {"policy": policy, "budget": budget, "model": model, **options}
    with _file(source) as path:
        code, data, _ = _run("trim", path, options)
        if isinstance(source, (str, os.PathLike)):
            if code == 0:
                return data
            with open(path, "rb") as file:
                return file.read()
    return json.loads(data) if code == 0 else source
