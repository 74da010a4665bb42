"""The published pairs of memory sharing: three folders of lines of JSON, in which genres stand in blocks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mindstream.errors import InputError

DOMAINS = {
    "literature": ("Literal_Creation", "LiteralPool", "Literalproblem", ("wuyanlushi", "limerick", "sonnet")),
    "logic": ("Logic_Problem_Solving", "LogicPool", "LogicProblem", ("puzzle", "pun", "riddle")),
    "plans": ("Plan_Generation", "PlanPool", "PlanProblem", ("travel", "study", "fitness")),
}
TESTS = {
    "wuyanlushi": "lvshiTest",
    "limerick": "limerickTest",
    "sonnet": "sonnetTest",
    "puzzle": "puzzleTest",
    "pun": "punsTest",
    "riddle": "riddlesTest",
    "travel": "travelTest",
    "study": "studyTest",
    "fitness": "fitnessTest",
}
ABOUT = {
    "wuyanlushi": "写五言律诗：八句，每句五字。",
    "limerick": "Writes limericks.",
    "sonnet": "Writes sonnets.",
    "puzzle": "Solves lateral puzzles.",
    "pun": "Explains puns.",
    "riddle": "Answers riddles.",
    "travel": "Plans journeys.",
    "study": "Plans how to learn something.",
    "fitness": "Plans training.",
}
POOL_EACH, STREAM_EACH = 20, 40

Pair = dict[str, str]


def is_published(folder: Path) -> bool:
    """Tell whether a folder holds the published pairs."""
    return all((folder / where).is_dir() for where, *_ in DOMAINS.values())


def read_published(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the nine agents as tables.

    Raises:
        InputError: a file is not as it was published.
    """
    for domain, (where, pool, problems, genres) in DOMAINS.items():
        seeds = _pairs(folder / where / f"{pool}.jsonl")
        stream = _by_genre(domain, _pairs(folder / where / f"{problems}.jsonl"))
        for at, genre in enumerate(genres):
            yield {
                "name": genre,
                "domain": domain,
                "about": ABOUT[genre],
                "seeds": seeds[POOL_EACH * at : POOL_EACH * (at + 1)],
                "stream": stream[genre],
                "tests": _pairs(folder / where / f"{TESTS[genre]}.jsonl"),
            }


def _by_genre(domain: str, pairs: list[Pair]) -> dict[str, list[Pair]]:
    """Cut a domain's problems into genres: they stand in blocks of 40, but for one limerick that comes first."""
    if domain == "literature":
        return {"limerick": pairs[:1] + pairs[41:80], "wuyanlushi": pairs[1:41], "sonnet": pairs[80:]}
    names = ("riddle", "pun", "puzzle") if domain == "logic" else ("travel", "study", "fitness")
    return {name: pairs[STREAM_EACH * at : STREAM_EACH * (at + 1)] for at, name in enumerate(names)}


def _pairs(path: Path) -> list[Pair]:
    try:
        lines = [json.loads(line)["messages"] for line in path.read_text("utf-8").splitlines() if line.strip()]
        told = [{each["role"]: each["content"] for each in messages} for messages in lines]
        return [{"query": each["user"], "answer": each["assistant"]} for each in told]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise InputError(f"{path} is not as it was published: {error}") from None
