"""Questions on a document of one's own, by ReWOO: how many are answered, how many rightly, how many refused.

    python benchmarks/sotu.py --data FOLDER [--model rules] [--json]

FOLDER holds `SOTU_QA.csv` (question, answer) and `state_of_the_union.txt`. An answer is right where it holds the
expected one, or half of its words and it half of the answer's (token F1 of 0.5). Control: the answers, shuffled among
the questions.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import random
import shutil
import tempfile
from collections import Counter
from pathlib import Path

from rich.progress import track

from mindstream import Models
from mindstream.planning.planner import Planner
from mindstream.text.words import terms
from mindstream.tools.named import Means, named_tools


async def answer_all(questions: list[str], document: Path, model: str) -> list[str]:
    """Return an answer for each question; "" where there is none."""
    answers = []
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(document, folder)
        async with Models.named({"default": model}) as models:
            names = ("calculator", *(() if models.only_rules else ("llm",)), f"documents:{folder}")
            async with named_tools(names, Means(model=models.of("worker"))) as tools:
                for question in track(questions, "questions"):
                    solution = await Planner(models=models, tools=tools).solve(question)
                    answers.append(solution.answer)
    return answers


def is_right(answer: str, expected: str) -> bool:
    """Tell whether an answer holds the expected one, or enough of its words."""
    if expected.casefold() in answer.casefold():
        return True
    said, wanted = Counter(terms(answer)), Counter(terms(expected))
    shared = sum((said & wanted).values())
    return bool(shared) and 2 * shared / (said.total() + wanted.total()) >= 0.5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", default="rules")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    with (asked.data / "SOTU_QA.csv").open(encoding="utf-8") as file:
        rows = [(row["question"], row["answer"]) for row in csv.DictReader(file)]
    questions, expected = [row[0] for row in rows], [row[1] for row in rows]
    answers = asyncio.run(answer_all(questions, asked.data / "state_of_the_union.txt", asked.model))
    shuffled = random.Random(1).sample(expected, len(expected))
    result = {
        "questions": len(rows), "answered": sum(map(bool, answers)), "right": sum(map(is_right, answers, expected)),
        "control_right": sum(map(is_right, answers, shuffled)), "model": asked.model,
    }  # fmt: skip
    print(json.dumps(result) if asked.json else "\n".join(f"{name}: {value}" for name, value in result.items()))


if __name__ == "__main__":
    main()
