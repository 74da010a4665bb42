"""A small model in this process as M2, M1 and M0: many turns of a life that must not fall over, whatever it says.

    python benchmarks/gguf_life.py [--model local] [--turns 60] [--minutes M] [--docs examples/documents] [--json]

The goal is to write a brief over a folder. Told are: how many turns ended in a word and how many in an error, the calls
that were made and how many failed, for which reasons; folds, the longest prompt beside its limit; seconds a turn. The
model is small and silly: nothing is expected of what it says.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from mindstream.life.events import Asked, Folded, Replied, TurnEnded
from mindstream.life.life import Life, LifeConfig
from mindstream.log.events import Observed
from mindstream.log.names import StreamName
from mindstream.memory.memory import Memory
from mindstream.models.roles import Models
from mindstream.tools.documents import open_documents

GOAL = "Find out from the documents what there is to know about Jannik Sinner, and write it down in three sentences."


async def live(model: str, turns: int, docs: Path, limit: int, minutes: float) -> dict[str, object]:
    """Live so many turns, or minutes, with this model in every role; return what happened."""
    config = LifeConfig(prompt_tokens=limit)
    with tempfile.TemporaryDirectory() as folder:
        async with (
            Models.named({"default": model}) as models,
            open_documents(docs) as documents,
            Memory.open(folder, "small", seed=1) as stream,
            Life.open(stream, models, goal=GOAL, tools=documents.tools(), config=config) as life,
        ):
            began, lived = time.perf_counter(), 0
            while lived < turns and not life.state.halted and time.perf_counter() - began < minutes * 60:
                if await life.run(turns=1, wait=False) == "done":  # it says that it is done: it gets more to do
                    life.state.ledger.apply(life.state.ledger.add(f"Look again, more closely ({lived})."))
                lived = life.state.turn
                print(f"\r{lived} turns, {time.perf_counter() - began:.0f} s ", end="", file=sys.stderr, flush=True)
            seconds = time.perf_counter() - began
            rows = [row.event for row in await stream.store.events(StreamName("user", "small").key, limit=1_000_000)]
            halted = life.state.halted
    calls = [row for row in rows if isinstance(row, Observed)]
    ends = [row for row in rows if isinstance(row, TurnEnded)]
    asked = [row for row in rows if isinstance(row, Asked) and row.role == "M2"]
    return {
        "model": model, "turns": lived, "ended_in_words": sum(bool(row.words) for row in ends),
        "ended_in_error": Counter(row.error[:80] for row in ends if row.error), "halted": halted,
        "model_calls": Counter(row.role for row in rows if isinstance(row, Replied)),
        "model_errors": Counter(row.error[:80] for row in rows if isinstance(row, Replied) and row.error),
        "calls": Counter(row.tool for row in calls), "failed": Counter(row.text[:60] for row in calls if row.failed),
        "folds": sum(isinstance(row, Folded) for row in rows),
        "prompt_tokens_max": max(row.tokens for row in asked), "prompt_limit": limit,
        "seconds_per_turn": round(seconds / max(lived, 1), 2),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="local", help="a model's name [%(default)s]")
    parser.add_argument("--turns", type=int, default=60, help="how many [%(default)s]")
    parser.add_argument("--minutes", type=float, default=600.0, help="for so long at most [%(default)s]")
    parser.add_argument("--docs", type=Path, default=Path("examples/documents"), help="a folder [%(default)s]")
    parser.add_argument("--prompt-tokens", type=int, default=3_000, help="the limit of M2's prompt [%(default)s]")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    report = asyncio.run(live(given.model, given.turns, given.docs, given.prompt_tokens, given.minutes))
    print(json.dumps(report, indent=None if given.json else 1))


if __name__ == "__main__":
    main()
