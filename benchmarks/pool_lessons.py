"""Compare the prompts of agents that read lessons of a pool with those that read a whole notes file, without a model.

    python benchmarks/pool_lessons.py [--lessons 20,40,80,160] [--seeds N] --json

A pool and a file hold the same sentences: all conventions of one workplace, and conventions of others until there are
enough. For each test task of the workplace: the tokens of the prompt with the lessons that are chosen for the task, and
with the whole file; the share of the needed lessons that the prompt contains; and the tokens that keeping costs after a
task (prompt, and a reply that adds one sentence: an edit, or the whole file again).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import tempfile
from typing import Any

from mindstream_evals.sharing.experience import KeepNotes
from mindstream_evals.sharing.workplaces import DEPARTMENTS, Workplace

from mindstream import FakeModel
from mindstream.models.model import estimate_tokens
from mindstream.models.prompt import Prompt
from mindstream.planning.prompts import ActOnTask
from mindstream.sharing.lessons import (
    NOTE_TOKENS,
    KeepLessons,
    LessonEdit,
    LessonEdits,
    Line,
    Verdict,
    choose_lessons,
    learn,
    show_lessons,
)
from mindstream.sharing.pool import Pool

OWNER = "owner"


def tokens(prompt: Prompt[Any]) -> int:
    """Return the estimated tokens of a prompt."""
    return sum(estimate_tokens(message.text) for message in prompt.messages())


async def write(pool: Pool, sentence: str, task: str) -> None:
    """Let the pool learn a sentence from the correction of a task."""
    model = FakeModel({"keep_lessons": [LessonEdits(edits=(LessonEdit(action="add", text=sentence, basis="person"),))]})
    await learn(pool, model, task, [Line("user", task)], Verdict(False, sentence, OWNER), writer=OWNER)


def others(place: Workplace, seed: int) -> list[tuple[str, str]]:
    """Return sentences of other workplaces, each with a task that needs it."""
    found = [
        (sentence, next(task.question for task in made.training if name in task.needs))
        for more in range(1, 20)
        for make in DEPARTMENTS.values()
        for made in [make(1_000 * seed + more)]
        if made.name != place.name
        for name, sentence in made.says.items()
    ]
    random.Random(seed).shuffle(found)
    return found


async def measure(name: str, seed: int, count: int) -> dict[str, float]:
    """Measure one workplace with a number of lessons."""
    place = DEPARTMENTS[name](seed)
    own = [
        (says, next(task.question for task in place.training if name in task.needs))
        for name, says in place.says.items()
    ]
    known = [*own, *others(place, seed)[: count - len(own)]]
    random.Random(seed).shuffle(known)
    notes = "notes.md:\n" + "\n".join(f"- {sentence}" for sentence, _ in known)
    found = dict[str, list[float]]()

    def add(**values: float) -> None:
        for key, value in values.items():
            found.setdefault(key, []).append(value)

    with tempfile.TemporaryDirectory() as folder:
        async with Pool.open(folder, "work") as pool:
            await pool.create(place.about, OWNER)
            for sentence, task in known:
                await write(pool, sentence, task)
            for test in place.tests:
                chosen = await choose_lessons(pool, test.question, OWNER)
                shown = show_lessons(chosen)[0].text
                needed = [place.says[need] in shown for need in test.needs]
                question = f"{place.about}\n\n{test.question}"
                kept = await choose_lessons(pool, test.question, OWNER, tokens=NOTE_TOKENS)
                common: dict[str, Any] = {"task": test.question, "work": (), "verdict": "rejected by a person"}
                keep = KeepLessons(lessons=tuple(each.line({}) for each in kept), **common)
                add(
                    lessons_prompt=tokens(ActOnTask(task=question, exemplars=(shown,))),
                    notes_prompt=tokens(ActOnTask(task=question, exemplars=(notes,))),
                    needed_shown=sum(needed) / len(needed),
                    all_shown=all(needed),
                    keep_lessons=tokens(keep) + 60,
                    keep_notes=tokens(KeepNotes(notes=notes, **common)) + estimate_tokens(notes) + 30,
                )
    return {key: statistics.mean(values) for key, values in found.items()}


async def run(counts: list[int], seeds: int) -> list[dict[str, Any]]:
    """Measure all workplaces, as means over them and the seeds."""
    rows = list[dict[str, Any]]()
    for count in counts:
        found = [await measure(name, seed, count) for name in DEPARTMENTS for seed in range(1, seeds + 1)]
        rows.append(
            {"lessons": count} | {key: round(statistics.mean(one[key] for one in found), 3) for key in found[0]}
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lessons", default="20,40,80,160", help="numbers of lessons")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="accepted for uniformity; the output is always JSON")
    args = parser.parse_args()
    for row in asyncio.run(run([int(each) for each in args.lessons.split(",")], args.seeds)):
        print(json.dumps(row))


if __name__ == "__main__":
    main()
