from collections.abc import Sequence
from os import PathLike

class PlimsollError(Exception):
    """A call that failed, with the reason on one line."""

class BoundList:
    elements: list[tuple[int | None, str | None]] | None
    receipt: str
    violation: str | None

class NativeSession:
    def __new__(
        cls,
        policy: str,
        budget: int | None = None,
        lookups: bool = False,
        config: str | PathLike[str] | None = None,
    ) -> NativeSession: ...
    def bound(self, wire: str, fields: str, messages: Sequence[str], at: int | None = None) -> BoundList: ...
    def expand(self, reference: str) -> str | None: ...

class NativeStore:
    def __new__(
        cls,
        place: str | None = None,
        tenant: str | None = None,
        config: str | PathLike[str] | None = None,
    ) -> NativeStore: ...
    def ask(self, method: str, path: str, body: str = "") -> tuple[int, str]: ...

def run(arguments: Sequence[str]) -> int: ...
def run_captured(arguments: Sequence[str]) -> tuple[int, bytes, list[str]]: ...
