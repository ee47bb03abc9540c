"""Recorded sessions, stores and the command line."""

from __future__ import annotations

import importlib.metadata
import json
import signal
import subprocess
import sys
from pathlib import Path

import plimsoll
import pytest
from handmade import chat_session


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "plimsoll", *arguments], capture_output=True, text=True, check=False
    )


def test_sessions_are_inspected_replayed_and_trimmed(tmp_path: Path) -> None:
    messages = chat_session(40)
    file = tmp_path / "session.json"
    file.write_text(json.dumps(messages))
    assert plimsoll.inspect(file)["turns"] == plimsoll.inspect(messages)["turns"] == 40
    report = plimsoll.replay(messages, policy=["plimsoll", "window"], model="gpt-5.1")
    assert [run["policy"] for run in report["policies"]] == ["plimsoll", "window"]
    trimmed = plimsoll.trim(messages, budget=8_000, model="gpt-5.1")
    assert len(json.dumps(trimmed)) < len(json.dumps(messages))
    assert json.loads(plimsoll.trim(file, budget=8_000, model="gpt-5.1")) == trimmed
    short = messages[:2]
    assert plimsoll.trim(short, policy=None) == short, "nothing is due"


def test_a_warning_becomes_one_of_python(tmp_path: Path) -> None:
    file = tmp_path / "session.jsonl"
    example = Path(__file__).parents[3] / "examples/session.jsonl"
    first, *others = example.read_text().splitlines()
    file.write_text("\n".join([first, "{ broken", *others]))
    with pytest.warns(UserWarning, match="session.jsonl"):
        plimsoll.replay(file)


def test_a_store_remembers_recalls_assembles_and_expands(tmp_path: Path) -> None:
    place = tmp_path / "store.db"
    store = plimsoll.Store(place)
    known = store.remember("The server listens on port 7433", tags=["server"])
    assert known["record"]["kind"] == "fact"
    assembled = store.assemble("Which port does the server use?")
    assert "7433" in json.dumps(assembled["messages"])
    file = tmp_path / "session.json"
    file.write_text(json.dumps([{"role": "user", "content": "The password is hidden under the boat."}]))
    assert command("import", str(file), "--store", str(place)).returncode == 0
    recalled = store.recall("Where is the boat?")
    assert "under the boat" in json.dumps(recalled)
    ref = json.dumps(recalled).split("ref:message:")[1][:16]
    assert "under the boat" in store.expand(f"ref:message:{ref}")["text"]
    with pytest.raises(plimsoll.Error):
        store.expand("ref:message:0000000000000000")


def test_a_store_behind_a_gateway_answers_alike(tmp_path: Path) -> None:
    place = str(tmp_path / "store.db")
    served = subprocess.Popen(
        [sys.executable, "-m", "plimsoll", "ui", "--store", place, "--listen", "127.0.0.1:0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert served.stdout is not None
        address = served.stdout.readline().split()[-1].removesuffix("/ui/")
        store = plimsoll.Store(address)
        assert store.remember("The boat is red")["record"]["micro"] == "The boat is red"
        assert "red" in json.dumps(store.assemble("Which colour has the boat?")["messages"])
        with pytest.raises(plimsoll.Error):
            store.remember("x", kind="no-kind")
    finally:
        served.send_signal(signal.SIGINT)
        assert served.wait(timeout=60) == 0, "the server stops cleanly"


def test_python_m_plimsoll_is_the_command_line(tmp_path: Path) -> None:
    version = importlib.metadata.version("plimsoll-context")
    assert command("--version").stdout.split() == ["plimsoll", version]
    missing = command("replay", str(tmp_path / "none.jsonl"))
    assert (missing.returncode, missing.stdout) == (2, "")
    assert missing.stderr.count("\n") == 1 and missing.stderr.startswith("error: ")
    script = Path(sys.executable).with_name("plimsoll")
    assert subprocess.run([script, "--help"], capture_output=True, check=False).returncode == 0


def test_the_package_is_typed(tmp_path: Path) -> None:
    mypy = pytest.importorskip("mypy.api")
    folder = Path(plimsoll.__file__).parent
    assert (folder / "py.typed").exists()
    out, _, code = mypy.run(["--strict", "--cache-dir", str(tmp_path), "-p", "plimsoll"])
    assert code == 0, out
    native = set(dir(plimsoll._native))
    stub = (folder / "_native.pyi").read_text()
    named = {
        word.split("(")[0].strip(":")
        for line in stub.splitlines()
        for kind in ("class ", "def ")
        if line.startswith(kind)
        for word in [line.removeprefix(kind)]
    }
    assert named - {"BoundList"} <= native
