"""A store: remember, recall, assemble, expand; of a file, a database, or a running gateway."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from typing import Any
from urllib.parse import quote, urlencode

from ._messages import encoded
from ._native import NativeStore, PlimsollError


class Store:
    """The store at a path, at a `postgres://` address, or behind a gateway at an `http://` address.

    Without a place it is the one that the command line uses. `key` is a key of the gateway. Answers are the JSON of the REST
    interface under `/api/v1`.
    """

    def __init__(
        self,
        place: str | PathLike[str] | None = None,
        *,
        tenant: str | None = None,
        key: str | None = None,
        config: str | PathLike[str] | None = None,
    ) -> None:
        place = None if place is None else fspath(place)
        self._gateway = place if place and place.startswith(("http://", "https://")) else None
        self._key = key
        self._native = None if self._gateway else NativeStore(place, tenant, config)

    def remember(
        self,
        text: str,
        *,
        kind: str = "fact",
        name: str = "",
        points: Sequence[str] = (),
        tags: Sequence[str] = (),
        source_ref: str | None = None,
    ) -> dict[str, Any]:
        """Stores a record: a decision, a fact, a procedure, an episode or a censor. Returns it, and how new it is."""
        body = {"text": text, "kind": kind, "name": name, "points": points, "tags": tags}
        return self._ask("POST", "/memory", {**body, "source_ref": source_ref})

    def recall(self, query: str, *, budget: int | None = None, session: str | None = None) -> dict[str, Any]:
        """Returns the stored messages that answer a question, within a budget of tokens."""
        return self._ask("POST", "/recall", {"query": query, "budget": budget, "session": session})

    def assemble(
        self,
        text: str = "",
        *,
        session: str | None = None,
        frame: str | None = None,
        budget: int | None = None,
        tags: Sequence[str] = (),
    ) -> dict[str, Any]:
        """Returns the context for a turn: rules, memory, and the last messages of a session."""
        body = {"text": text, "session": session, "frame": frame, "budget": budget, "tags": tags}
        return self._ask("POST", "/assemble", body)

    def expand(
        self,
        ref: str,
        *,
        lines: str | None = None,
        search: str | None = None,
        offset: int | None = None,
    ) -> dict[str, Any]:
        """Returns the original behind a ref, whole or in part: `lines` is `FIRST-LAST`, counted from 1."""
        asked = {"lines": lines, "search": search, "offset": offset}
        query = urlencode({name: value for name, value in asked.items() if value is not None})
        return self._ask("GET", f"/refs/{quote(ref, safe='')}" + (f"?{query}" if query else ""))

    def _ask(self, method: str, path: str, named: Mapping[str, object] | None = None) -> dict[str, Any]:
        given = {name: value for name, value in (named or {}).items() if value is not None}
        body = encoded(given) if named is not None else ""
        path = "/api/v1" + path
        if self._native is not None:
            status, text = self._native.ask(method, path, body)
        else:
            status, text = self._ask_gateway(method, path, body)
        try:
            answer = json.loads(text)
        except ValueError:
            raise PlimsollError(f"the gateway answered {status} without JSON") from None
        if status >= 400:
            reason = answer.get("detail") or answer.get("title") if isinstance(answer, dict) else None
            raise PlimsollError(str(reason or f"the store answered {status}"))
        result: dict[str, Any] = answer
        return result

    def _ask_gateway(self, method: str, path: str, body: str) -> tuple[int, str]:
        headers = {"content-type": "application/json"}
        if self._key:
            headers["x-plimsoll-key"] = self._key
        request = urllib.request.Request(
            f"{(self._gateway or '').rstrip('/')}{path}",
            data=body.encode() or None,
            headers=headers,
            method=method,
        )
        try:
            with urllib.request.urlopen(request) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except urllib.error.URLError as error:
            raise PlimsollError(f"the gateway at {self._gateway} did not answer: {error.reason}") from None
