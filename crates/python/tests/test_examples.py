"""The examples and the documentation's snippets run with the real libraries against a provider on loopback."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from handmade import file_text
from upstream import Upstream

CRATE = Path(__file__).parents[1]
FILES = [f"{number}.txt" for number in range(8)]
EXAMPLES = {
    "openai_loop.py": "openai",
    "anthropic_loop.py": "anthropic",
    "langchain_middleware.py": "langchain_openai",
    "pydantic_ai_history.py": "pydantic_ai",
    "openai_agents_filter.py": "agents",
}


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    provider = Upstream(FILES)
    yield provider
    provider.close()


def environment(address: str) -> dict[str, str]:
    own = {"OPENAI_BASE_URL": address + "/v1", "ANTHROPIC_BASE_URL": address}
    keys = {"OPENAI_API_KEY": "none", "ANTHROPIC_API_KEY": "none", "LANGSMITH_TRACING": "false"}
    return {**os.environ, **own, **keys, "OPENAI_AGENTS_DISABLE_TRACING": "1"}


def test_every_example_is_listed_and_documented() -> None:
    assert {path.name for path in (CRATE / "examples").glob("*.py")} == set(EXAMPLES)
    page = (CRATE / "../../docs/python.md").read_text()
    assert all(f"examples/{name})" in page for name in EXAMPLES)


@pytest.mark.parametrize("example", EXAMPLES)
def test_example(example: str, upstream: Upstream, tmp_path: Path) -> None:
    if importlib.util.find_spec(EXAMPLES[example]) is None:
        pytest.skip(f"SKIPPED: {EXAMPLES[example]} is not installed, so {example} was not run")
    for number, name in enumerate(FILES):
        (tmp_path / name).write_text(file_text(number, 400))
    ran = subprocess.run(
        [sys.executable, str(CRATE / "examples" / example), "Compare", "the", "files."],
        cwd=tmp_path,
        env=environment(upstream.address),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip().endswith("read all")
    assert len(upstream.bodies) == len(FILES) + 1
    sizes = [len(body) for body in upstream.bodies]
    whole = sum(len((tmp_path / name).read_bytes()) for name in FILES)
    assert whole > 100_000, "all files together are far over the budget"
    # A token has two bytes at least in such text, so that a request of 16,000 tokens stays below this.
    assert max(sizes) < 60_000, sizes
    last = json.loads(upstream.bodies[-1])
    assert len(last.get("messages") or last["input"]) >= 2 * len(FILES), "every exchange is there"


def test_the_pages_snippets_run(tmp_path: Path) -> None:
    page = (CRATE / "../../docs/python.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) >= 4
    (tmp_path / "examples").mkdir()
    session = (CRATE / "../../examples/session.jsonl").read_bytes()
    (tmp_path / "examples/session.jsonl").write_bytes(session)
    ran = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert "7433" in ran.stdout
