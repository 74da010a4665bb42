"""Interviews in four conditions: what reflection, plans and observation are worth to an answer (after Park 2023, 6).

    python benchmarks/town_ablation.py [--town smallville] [--seeds 1] [--models rules] [--json] [--answers FILE]

Every resident lives two days, and is asked 25 questions in five categories on the evening of the second, once with
all its memory, then with thoughts hidden, with plans hidden too, and with nothing but its description. The same history
each time. Answers are scored by code, 0 to 1, by what of them is right: against the whole stream, the plans, and who
people are, whatever the condition hid (benchmarks/town_scores.py). A claim that no memory, plan or description says is
made up. Intervals are of 2,000 bootstrap samples over residents.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import statistics
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from town_scores import CATEGORIES, Asked, Truth, questions_for

from mindstream.town.history import read_history
from mindstream.town.interview import CONDITIONS, open_interview
from mindstream.town.packs import find_pack
from mindstream.town.source import setting_of
from mindstream.town.town import Town

EVENING, TOMORROW = 20 * 60, 10 * 60 + 1
SAMPLES = 2_000
Answer = dict[str, Any]


async def ask_all(town: str, seed: int, models: str, folder: Path) -> list[Answer]:
    """Live two days and ask everybody everything in every condition."""
    setting = setting_of(find_pack(town), seed=seed)
    async with Town.open(folder, setting) as lived:
        await lived.run(until=setting.step_at(2, TOMORROW))
    history, step = await read_history(folder), setting.step_at(1, EVENING)
    answers: list[Answer] = []
    async with open_interview(folder, step, models=models) as interviewer:
        for name in history.names:
            truth = Truth(history, name, step)
            for asked in questions_for(truth):
                for condition in CONDITIONS:
                    said = (await interviewer.ask(name, asked.question, condition)).answer
                    answers.append(_answer(truth, asked, condition, said, seed))
    return answers


def _answer(truth: Truth, asked: Asked, condition: str, said: str, seed: int) -> Answer:
    return {
        "seed": seed, "who": truth.name, "category": asked.category, "question": asked.question, "condition": condition,
        "answer": said, "score": round(asked.score(said), 3), "made_up": truth.made_up(said),
    }  # fmt: skip


def interval(values: Sequence[float]) -> dict[str, float]:
    """Return a mean with its 95 % interval, by bootstrap."""
    chance = random.Random(7)
    means = sorted(statistics.fmean(chance.choices(values, k=len(values))) for _ in range(SAMPLES))
    low, high = means[int(0.025 * SAMPLES)], means[int(0.975 * SAMPLES)]
    return {"mean": round(statistics.fmean(values), 3), "low": round(low, 3), "high": round(high, 3)}


def by_resident(answers: Sequence[Answer], condition: str, category: str = "") -> list[float]:
    """Return each resident's mean in a condition."""
    found: dict[tuple[int, str], list[float]] = {}
    for each in answers:
        if each["condition"] == condition and category in ("", each["category"]):
            found.setdefault((each["seed"], each["who"]), []).append(each["score"])
    return [statistics.fmean(scores) for _, scores in sorted(found.items())]


def summarise(answers: Sequence[Answer]) -> dict[str, Any]:
    """Return means, differences, the order and what was made up."""
    means = {condition: by_resident(answers, condition) for condition in CONDITIONS}
    order = sorted(CONDITIONS, key=lambda condition: -statistics.fmean(means[condition]))
    made_up = {c: sum(len(each["made_up"]) for each in answers if each["condition"] == c) for c in CONDITIONS}
    return {
        "answers": len(answers),
        "all": {condition: interval(values) for condition, values in means.items()},
        "categories": {
            category: {c: interval(by_resident(answers, c, category)) for c in CONDITIONS} for category in CATEGORIES
        },
        "differences": {
            f"{more} - {less}": interval([a - b for a, b in zip(means[more], means[less], strict=True)])
            for more, less in pairwise(CONDITIONS)
        },
        "order": order,
        "order_as_in_the_paper": order == list(CONDITIONS),
        "made_up": made_up,
        "made_up_sentences": [{k: each[k] for k in ("who", "question", "condition", "made_up")} for each in answers
                              if each["made_up"]][:10],
    }  # fmt: skip


async def ask_in_all(given: argparse.Namespace) -> list[Answer]:
    answers: list[Answer] = []
    with tempfile.TemporaryDirectory() as scratch:
        for seed in range(1, given.seeds + 1):
            answers += await ask_all(given.town, seed, given.models, Path(scratch) / str(seed))
    return answers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--town", default="smallville", help="a town of ours, or a path [%(default)s]")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--models", default="rules", help="who answers; the town itself lives by rules [%(default)s]")
    parser.add_argument("--answers", default="", help="write every answer with its score, a JSON object a line")
    parser.add_argument("--json", action="store_true", help="print one JSON object on one line")
    given = parser.parse_args()
    answers = asyncio.run(ask_in_all(given))
    if given.answers:
        Path(given.answers).write_text("".join(json.dumps(each) + "\n" for each in answers), "utf-8")
    report = {"town": given.town, "seeds": given.seeds, "load": os.getloadavg()[0], **summarise(answers)}
    print(json.dumps(report, indent=None if given.json else 1))


if __name__ == "__main__":
    main()
