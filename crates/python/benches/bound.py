"""Times `plimsoll.bound` on a conversation of 150,000 tokens that grows by one exchange a call: prints medians in milliseconds.

Run it with an optimised wheel (`maturin build --release`).
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import plimsoll
from handmade import anthropic_session, chat_session

TOKENS = 150_000
CALLS = 25


def measure(name: str, model: str, session: list[dict[str, object]], budget: int | None) -> None:
    bounder = plimsoll.Session(model=model, budget=budget)
    end = 1 + next(at for at in range(len(session)) if at % 2 and size(session[: at + 1], model) >= TOKENS)
    start = time.perf_counter()
    context = bounder.bound(session[:end])
    first = time.perf_counter() - start
    times = []
    for more in range(2, 2 * CALLS, 2):
        start = time.perf_counter()
        context = bounder.bound(session[: end + more])
        times.append(time.perf_counter() - start)
    median, worst = statistics.median(times), max(times)
    print(
        f"{name}: {context.full_tokens:,} tokens, {context.tokens:,} sent; first {first * 1000:.0f} ms, "
        f"then {median * 1000:.1f} ms in the median of {len(times)} calls, {worst * 1000:.1f} ms at most"
    )


def size(messages: list[dict[str, object]], model: str) -> int:
    """Returns about how many tokens these messages have: 2.6 characters each in this text (measured)."""
    return sum(len(str(message.get("content") or "")) for message in messages) * 10 // 26


if __name__ == "__main__":
    chat, messages = chat_session(900, 60), anthropic_session(900, 60)
    for budget in (None, 60_000):
        said = f"budget {budget:,}" if budget else "no budget"
        measure(f"openai-chat, {said}", "gpt-5.1", chat, budget)
        measure(f"anthropic-messages, {said}", "claude-sonnet-4-5", messages, budget)
