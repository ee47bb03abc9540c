"""Messages of the providers' libraries as JSON, and the interface that they are of."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from typing import Any

_BLOCKS = {
    "tool_use": "anthropic-messages",
    "tool_result": "anthropic-messages",
    "thinking": "anthropic-messages",
    "redacted_thinking": "anthropic-messages",
    "image": "anthropic-messages",
    "document": "anthropic-messages",
    "image_url": "openai-chat",
    "input_audio": "openai-chat",
    "input_text": "openai-responses",
    "output_text": "openai-responses",
    "input_image": "openai-responses",
}


def _plain(value: object) -> Any:
    """Returns an object of a provider's library as its JSON value; json calls it for what it does not know."""
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json", exclude_unset=True, by_alias=True)
    if isinstance(value, Mapping):
        return dict(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, Iterable):
        return list(value)
    raise TypeError(f"a message holds a {type(value).__name__}, which is not JSON")


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain).encode


def encoded(value: object) -> str:
    """Returns a value as JSON."""
    return _encode(value)


def fields(named: Mapping[str, object]) -> str:
    """Returns the fields that are given as the inner part of a JSON object."""
    return _encode({name: value for name, value in named.items() if value is not None})[1:-1]


def _get(value: object, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def wire_of(messages: Iterable[object], system: object, model: str | None) -> str:
    """Returns the interface that a list of messages is written for, by the first sign of one."""
    for message in messages:
        role, kind = _get(message, "role"), _get(message, "type")
        if role is None and kind is not None or kind == "message":
            return "openai-responses"
        if role is not None and _get(message, "parts") is not None:
            return "gemini"
        if role in ("tool", "function") or _get(message, "tool_calls"):
            return "openai-chat"
        content = _get(message, "content")
        if isinstance(content, (list, tuple)):
            for block in content:
                found = _BLOCKS.get(_get(block, "type"))
                if found is not None:
                    return found
    if system is not None or (model or "").startswith("claude"):
        return "anthropic-messages"
    return "openai-chat"
