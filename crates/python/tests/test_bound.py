"""`bound` and `Session` on lists of messages."""

from __future__ import annotations

import copy
import json
import threading
from pathlib import Path
from typing import Any

import plimsoll
import pytest
from handmade import anthropic_session, chat_session, shown
from openai.types.chat import ChatCompletionMessage

MODEL = "gpt-5.1"


def test_a_session_over_100_turns_sends_what_replay_sends(tmp_path: Path) -> None:
    messages = chat_session(100)
    messages.append({"role": "assistant", "content": "All are alike."})
    file, contexts = tmp_path / "session.json", tmp_path / "contexts.jsonl"
    file.write_text(json.dumps(messages))
    plimsoll.replay(file, model=MODEL, contexts=contexts)
    replayed = [json.loads(line) for line in contexts.read_text().splitlines()]
    session = plimsoll.Session(model=MODEL, lookups=True)
    asked = [at for at, message in enumerate(messages) if message["role"] == "assistant"]
    assert len(asked) == len(replayed) == 101
    changed = 0
    for second, (position, line) in enumerate(zip(asked, replayed)):
        context = session.bound(messages[:position], at=1_800_000_000 + second)
        sent = [one for message in context for one in shown(message)]
        assert sent == [(one["role"], one["text"]) for one in line["messages"]], f"turn {second}"
        changed += sum(now is not then for now, then in zip(context, messages))
    assert changed > 100, "the session is one of which something is changed"


@pytest.mark.parametrize("make", [chat_session, anthropic_session])
def test_what_was_sent_stays_byte_for_byte(make: Any) -> None:
    messages = make(40, 120)
    session = plimsoll.Session(model=MODEL if make is chat_session else "claude-sonnet-4-5")
    before: list[str] = []
    calls = breaks = 0
    for end in range(2, len(messages), 2):
        context = session.bound(messages[:end])
        now = [json.dumps(message) for message in context]
        stays = before == now[: len(before)]
        assert stays or context.receipt["broken"], "the receipt says where a prefix ends"
        calls, breaks = calls + 1, breaks + (not stays)
        before = now
        assert session.bound(messages[:end]) == context, "asked again, the answer is the same"
    assert calls >= 35 and breaks <= calls / 3, f"old messages changed at {breaks} of {calls} calls"
    assert context.tokens < context.full_tokens


def test_the_budget_is_a_hard_limit_and_the_receipt_says_why() -> None:
    messages = chat_session(40)
    given = copy.deepcopy(messages)
    context = plimsoll.bound(messages, budget=8_000, model=MODEL)
    assert context.tokens <= 8_000 < context.full_tokens
    assert messages == given, "the caller's list stays"
    assert context.receipt["budget"] == 8_000
    assert all(change["reason"] for change in context.receipt["changes"])
    for origin, message in zip(context.origins, context):
        assert origin is not None
        assert message["role"] == messages[origin]["role"]
        if message is not messages[origin]:
            assert len(json.dumps(message)) < len(json.dumps(messages[origin]))


def test_an_omitted_message_takes_its_exchange_along() -> None:
    messages = chat_session(60)
    context = plimsoll.bound(messages, budget=1_500, model=MODEL, policy="newest:1500")
    assert len(context) < len(messages)
    called = {call["id"] for one in context for call in one.get("tool_calls") or []}
    answered = {one["tool_call_id"] for one in context if one["role"] == "tool"}
    assert answered <= called
    assert [messages[at] for at in context.origins if at is not None] == list(context)


def test_objects_of_the_libraries_stay_themselves() -> None:
    answer = ChatCompletionMessage(role="assistant", content="The port is 7433.")
    messages = [{"role": "user", "content": "Which port?"}, answer, {"role": "user", "content": "Sure?"}]
    context = plimsoll.bound(messages, model=MODEL)
    assert context[1] is answer
    assert isinstance(context, list)


def test_a_ref_leads_to_the_original() -> None:
    messages = chat_session(40, 200)
    session = plimsoll.Session(model=MODEL, budget=12_000, lookups=True)
    written = json.dumps(list(session.bound(messages)))
    assert "ref:message:" in written
    ref = "ref:message:" + written.split("ref:message:")[1][:16]
    assert session.expand(ref) in [message.get("content") for message in messages]
    with pytest.raises(plimsoll.Error, match="no message"):
        session.expand("ref:message:0000000000000000")
    plain = plimsoll.Session(model=MODEL)
    assert "ref:message:" not in json.dumps(list(plain.bound(messages))), "nothing could expand it"


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: plimsoll.bound([{"role": "user", "content": {1, 2}.__contains__}]), "not JSON"),
        (lambda: plimsoll.bound([{"role": "user", "content": "x"}], policy="plimsol"), "unknown policy"),
        (lambda: plimsoll.bound([], wire="openai"), "unknown wire"),
        (lambda: plimsoll.bound([{"role": "user", "content": "\udc80"}]), "surrogates"),
        (lambda: plimsoll.bound([{"role": "user", "content": "x"}], system="s", wire="openai-chat"), "among"),
        (lambda: plimsoll.replay("no-such-file.jsonl"), "no-such-file.jsonl"),
        (lambda: plimsoll.inspect([], no_such_flag=1), "no-such-flag"),
        (lambda: plimsoll.Session(config="no-such.toml"), "no-such.toml"),
        (lambda: plimsoll.Store(f"{__file__}/store.db"), "store"),
        (lambda: plimsoll.Store("http://127.0.0.1:1").recall("x"), "did not answer"),
    ],
)
def test_an_error_is_one_clear_line(call: Any, reason: str) -> None:
    with pytest.raises(plimsoll.Error) as raised:
        call()
    text = str(raised.value)
    assert reason in text
    assert "\n" not in text and text


def test_calls_let_other_threads_run_and_sessions_take_several() -> None:
    messages = chat_session(200, 200)
    session = plimsoll.Session(model=MODEL)
    contexts: list[plimsoll.Context] = []
    threads = [threading.Thread(target=lambda: contexts.append(session.bound(messages))) for _ in range(4)]
    for thread in threads:
        thread.start()
    turns = 0
    while any(thread.is_alive() for thread in threads):
        turns += 1
    for thread in threads:
        thread.join()
    assert turns > 100, "this thread ran meanwhile"
    assert all(context == contexts[0] for context in contexts)


def test_gemini_and_responses_are_found_by_their_shape() -> None:
    gemini = [{"role": "user", "parts": [{"text": "hello"}]}]
    assert plimsoll.bound(gemini, model="gemini-2.5-pro") == gemini
    text = "".join(f"{at} a line of the file\n" for at in range(3000))
    items: list[dict[str, Any]] = [{"role": "user", "content": "Read."}]
    for turn in range(8):
        call = {"type": "function_call", "call_id": f"c{turn}", "name": "read", "arguments": "{}"}
        items += [call, {"type": "function_call_output", "call_id": f"c{turn}", "output": text}]
    context = plimsoll.bound(items, model=MODEL, budget=20_000)
    assert context.tokens <= 20_000 < context.full_tokens
    assert [item.get("type") for item in context] == [
        items[at].get("type") for at in context.origins if at is not None
    ]
