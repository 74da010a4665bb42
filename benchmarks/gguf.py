"""Measure a GGUF model in this process: decisions, prefix caching, and a conversation with the coach.

    python benchmarks/gguf.py [--model local] [--parts open sealed] [--turns 20] [--only PART] [--json]

Decisions: 200 everyday questions (decisions.yaml), each decided by the log-probabilities of one token; the control is a
coin. `without prior` subtracts the model's answer about "N/A" (Zhao 2021). Prefix: time to the first words while a
conversation grows, and the longest time for which the event loop was blocked. Turns: a conversation with the sleep
coach through the public interface, with the model in every role. Counted: errors that reach the user; errors in the
log; structured replies that were sent back; replies beyond their limit; and final beliefs and notes without any word
the user said (the number of those removed on the way shows that the check was active).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel

from mindstream import Coach, Mind, Timeouts
from mindstream.log.events import Failed, Said, Thought
from mindstream.memory.store.store import read_log
from mindstream.models.decide import (
    Choice,
    Judged,
    Predicate,
    Probabilities,
    Question,
    accuracy,
    brier_score,
    calibration_error,
    coin,
    decide,
)
from mindstream.models.model import Message, Model, Piece, Request, Usage
from mindstream.models.prompt import Prompt
from mindstream.models.providers.address import WINDOW
from mindstream.models.providers.gguf import MAX_LOCAL_TOKENS
from mindstream.models.recording import RecordedCall
from mindstream.models.roles import Models
from mindstream.models.wrappers.meter import Metered
from mindstream.text.words import terms

HERE = Path(__file__).parent
SETTLED_S = 900.0
TALK = (
    "Hello, I sleep badly.", "I lie awake until two in the morning.", "My name is Ann, and I have two children.",
    "It is mostly the noise from the street.", "I drink three coffees a day.", "What can I do about it?",
    "Can you make me a plan?", "Earplugs hurt my ears.", "Something else, please?", "I tried reading in bed.",
    "It helped a little.", "I work as a nurse and start at six.", "On Sundays I sleep until noon.",
    "Is that bad?", "I did what you said last night.", "I slept five hours.", "What was my name?",
    "Anything to read about it?", "I think I will go to bed earlier.", "Thank you, good night.",
    "Good morning, it went badly.", "The baby next door cried.", "Which of the steps should I drop?",
    "I live in Lyon, by the way.", "What time should I get up?", "A timetable for the week, please.", "Too long.",
    "Only Monday, then.", "ok", "Bye.",
)  # fmt: skip


# Decisions.


def question(row: dict[str, Any]) -> Question:
    """Make the typed question of a row."""
    if "options" in row:
        return Choice(text=row["text"], question=row["question"], options=tuple(row["options"]))
    return Predicate(text=row["text"], question=row["question"])


async def decisions(model: Model, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Decide all rows; return one line for each kind of question and each method."""
    priors: dict[tuple[str, ...], Probabilities] = {}
    judged: dict[tuple[str, str], list[Judged]] = {}
    for row in rows:
        asked = question(row)
        likely = await decide(model, asked)
        key = (row["question"], *likely)
        if key not in priors:
            priors[key] = await decide(model, asked.model_copy(update={"text": "N/A"}))
        ways = {"model": dict(likely.weights), "without prior": dict(likely.without(priors[key]).weights)}
        for way, given in {**ways, "coin": coin(tuple(likely))}.items():
            for kind in ("all", "one of several" if "options" in row else "yes or no"):
                judged.setdefault((kind, way), []).append((given, row["answer"]))
    return [
        {"kind": kind, "by": way, "n": len(found), "right": accuracy(found), "brier": brier_score(found),
         "calibration_error": calibration_error(found)}
        for (kind, way), found in sorted(judged.items())
    ]  # fmt: skip


# Prompt prefixes.


class Answer(Prompt[str]):
    """A growing conversation below constant instructions."""

    role = "talker"
    lines: tuple[Message, ...]

    @classmethod
    def words(cls) -> str:
        rules = "You are a coach for people who sleep badly. Ask short questions; name one small step at a time. " * 12
        return f"# system\n{rules}\n# user\nGo on."

    def dialogue(self) -> Sequence[Message]:
        return self.lines


async def prefix(model: Model, turns: int = 6) -> list[dict[str, Any]]:
    """Return, per turn: seconds to the first words, tokens per second, tokens reused, the longest block of the event
    loop.
    """
    lines: list[Message] = []
    found: list[dict[str, Any]] = []
    for turn in range(turns):
        lines.append(Message("user", TALK[turn % len(TALK)]))
        gaps: list[float] = []
        beating = asyncio.create_task(_beat(gaps))
        start, first_s, said, used = time.perf_counter(), 0.0, "", Usage(0, 0)
        async for part in model.reply(Request(Answer(lines=tuple(lines)), "talker", longest_reply=60)):
            if isinstance(part, Piece):
                first_s = first_s or time.perf_counter() - start
                said += part.text
            elif isinstance(part, Usage):
                used = part
        writing_s = time.perf_counter() - start - first_s
        beating.cancel()
        found.append({
            "turn": turn + 1, "first_s": first_s, "input_tokens": used.input_tokens,
            "cached_tokens": used.cached_tokens,
            "tokens_a_second": used.output_tokens / writing_s, "loop_gap_ms": 1000 * max(gaps, default=0.0),
        })  # fmt: skip
        lines.append(Message("assistant", said or "…"))
    return found


async def _beat(gaps: list[float]) -> None:
    last = time.perf_counter()
    while True:
        await asyncio.sleep(0.001)
        now = time.perf_counter()
        gaps.append(now - last - 0.001)
        last = now


# The coach.


TIMEOUTS = Timeouts(silence_s=240.0, thinking_s=900.0)
"""Timeouts in seconds: long enough that no rule-based default replaces the model on a slow machine, for the benchmark
counts errors, not speed.
"""


async def turns(model: str, lines: Sequence[str] = TALK) -> dict[str, Any]:
    """Talk to the sleep coach with this model in every role; return the errors and the figures of each turn."""
    calls: list[Metered] = []
    shown: list[dict[str, Any]] = []
    errors: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "calls.jsonl"
        async with (
            Models.named({"default": model}, on_call=calls.append, record=kept) as models,
            Mind.open(
                Path(folder) / "data", user="ann", model=models, timeouts=TIMEOUTS, responder=Coach.using()
            ) as mind,
        ):
            for line in lines:
                shown.append(await _turn(mind, line, calls, errors))
            rows = [each.event async for each in read_log(mind.memory.store, mind.memory.key)]
            logged = [each for each in rows if isinstance(each, Failed)]
            held = [
                *_texts(Coach.of(mind).belief.value),
                *(note.text for note in await mind.memory.latest("note", 1_000)),
            ]
        asked = [RecordedCall.model_validate_json(line) for line in kept.read_text("utf-8").splitlines()]
    checked = [each for each in asked if each.messages[-1].text.startswith("(A check of your reply")]
    doubted = [each for each in checked if "rests_on" in each.messages[-1].text]
    sent_back = [each for each in checked if each not in doubted]
    said = {term for line in lines for term in terms(line)}
    longest = max((part.output_tokens for each in asked for part in each.parts if isinstance(part, Usage)), default=0)
    limit = MAX_LOCAL_TOKENS if model == "local" else WINDOW // 3
    return {
        "turns": shown, "errors_shown": errors, "calls": len(calls),
        "structured_sent_back": len(sent_back), "of_prompts": sorted({each.prompt for each in sent_back}),
        "beliefs_sent_back": len(doubted),
        "thoughts_with_beliefs_left_out": sum(
            isinstance(each, Thought) and "rests on nothing" in each.text for each in rows
        ),
        "believed_and_noted": held, "of_which_no_word_was_said": [each for each in held if not said & set(terms(each))],
        "errors_logged": [f"{each.where}: {each.text}"[:200] for each in logged if isinstance(each, Failed)],
        "failed_calls": [f"{call.prompt}: {call.error}"[:200] for call in calls if call.error],
        "longest_reply_tokens": longest, "replies_over_their_limit": int(longest > limit),
    }  # fmt: skip


def _texts(value: BaseModel) -> list[str]:
    """Return the texts of a belief, except the phase, which the model cannot invent."""
    held = value.model_dump(mode="json", exclude={"phase"})
    return [str(item) for each in held.values() for item in (each if isinstance(each, list) else [each]) if item]


async def _turn(mind: Mind, line: str, calls: list[Metered], errors: list[str]) -> dict[str, Any]:
    before, start, first_s, said, by = len(calls), time.perf_counter(), None, "", ""
    try:
        async for logged in mind.hear(line):
            if logged.event.kind in ("piece", "said") and first_s is None:
                first_s = time.perf_counter() - start
            if isinstance(logged.event, Said):
                said, by = logged.event.text, logged.event.model
            if isinstance(logged.event, Failed):
                errors.append(f"{logged.event.where}: {logged.event.text}"[:200])
        async with asyncio.timeout(SETTLED_S):
            await mind.settled()
    except Exception as error:  # noqa: BLE001 (whatever reaches the user is what is counted)
        errors.append(f"{type(error).__name__}: {error}"[:200])
    new = calls[before:]
    return {
        "heard": line, "said": said, "by": by, "first_s": first_s, "seconds": time.perf_counter() - start,
        "cached_tokens": {call.prompt: call.usage.cached_tokens for call in new if call.usage},
        "input_tokens": {call.prompt: call.usage.input_tokens for call in new if call.usage},
        "cut": sorted({str(cut) for call in new for cut in call.cut}),
    }  # fmt: skip


# Output.


async def measured(arguments: argparse.Namespace) -> dict[str, Any]:
    """Run what is wanted."""
    found: dict[str, Any] = {"model": arguments.model, "load": os.getloadavg()[0]}
    async with Models.named({"default": arguments.model}) as models:
        model = models.of("benchmark")
        if arguments.only in (None, "prefix"):
            found["prefix"] = await prefix(model)
        if arguments.only in (None, "decisions"):
            sets = yaml.safe_load((HERE / "decisions.yaml").read_text("utf-8"))
            found["decisions"] = {part: await decisions(model, sets[part]) for part in arguments.parts}
    if arguments.only in (None, "turns"):
        found["turns"] = await turns(arguments.model, TALK[: arguments.turns])
    return found


def show(found: dict[str, Any]) -> None:
    """Print the figures as text."""
    print(f"{found['model']}, load {found['load']:.1f}")
    for row in found.get("prefix", ()):
        print(
            f"  turn {row['turn']}: first words {row['first_s']:.2f} s, {row['cached_tokens']} of "
            f"{row['input_tokens']} tokens kept, {row['tokens_a_second']:.0f} tokens/s, "
            f"loop gap {row['loop_gap_ms']:.0f} ms"
        )
    for part, rows in found.get("decisions", {}).items():
        print(f"  decisions, {part}:")
        for row in rows:
            print(
                f"    {row['kind']:15} {row['by']:14} n {row['n']:3}  right {row['right']:.2f}  "
                f"Brier {row['brier']:.3f}  calibration error {row['calibration_error']:.3f}"
            )
    if talk := found.get("turns"):
        for row in talk["turns"]:
            first = f"{row['first_s']:.2f}" if row["first_s"] is not None else "-"
            print(f"  > {row['heard']}\n  {row['by']}: {row['said']}")
            print(f"    first words {first} s, settled {row['seconds']:.0f} s, cut {row['cut']}")
            print(f"    tokens {row['input_tokens']}, of them kept {row['cached_tokens']}")
        print(f"  median to the first words {statistics.median(r['first_s'] or 0 for r in talk['turns']):.2f} s")
        print(json.dumps({key: value for key, value in talk.items() if key != "turns"}, indent=2))


def main() -> None:
    """Read the flags and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--model", default="local")
    parser.add_argument("--parts", nargs="+", default=["open", "sealed"], choices=["open", "sealed"])
    parser.add_argument("--turns", type=int, default=len(TALK))
    parser.add_argument("--only", choices=["prefix", "decisions", "turns"])
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    found = asyncio.run(measured(arguments))
    if arguments.json:
        print(json.dumps(found))
    else:
        show(found)


if __name__ == "__main__":
    main()
