"""Measure reuse of remembered plans on ParallelQA: reuse for other entities, no reuse for other questions.

    python benchmarks/plan_reuse.py --data FILE --json

Each question gets a plan by a scripted planner: a search for each entity, then one step that computes the answer. Then
variants are asked: the same question about other entities and numbers (`hits`: the remembered plan is the one that the
planner would have written), and questions that differ in a word, a condition, a "not" or the number of entities
(`false`: the reused plan is not the one that the planner would have written). The control uses the plan of the question
with the nearest embedding by cosine, above the threshold that gives the same number of hits, or as many as it can.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import tempfile
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from mindstream.memory.memory import Memory
from mindstream.models.embedders.embedder import embedder
from mindstream.models.model import Part, Piece, Request, Usage
from mindstream.planning.formats.rewoo import write_plan
from mindstream.planning.plan import Plan, PlannedStep
from mindstream.planning.planner import Planner
from mindstream.planning.remembered import RememberedPlans
from mindstream.tools.tool import FunctionTool, tool

GROUPS = [line.split(", ") for line in """
Mariana Trench, Puerto Rico Trench, Sunda Trench, South Sandwich Trench, Peru-Chile Trench, Kuril Trench, Tonga Trench
Sahara Desert, Kalahari Desert, Sonoran Desert, Arabian Desert, Atacama Desert, Gobi Desert, Namib Desert, Thar Desert
Yangtze River, Mississippi River, Volga River, Mekong River, Congo River, Conga River, Danube River, Niger River
Mount Everest, Mount Kilimanjaro, Aconcagua, K2, Mount Elbert, Denali, Mont Blanc, Lhotse
Christ the Redeemer, Statue of Unity, Washington Monument, Motherland Calls, Ushiku Daibutsu, Ushiku Faibutsu, Buzludzha
Shanghai Tower, Ostankino Tower, Burj Khalifa, Empire State Building, Empire state building, Tokyo Skytree, CN Tower
Amazon Rainforest, Congo Rainforest, Australian Forest, Borneo Rainforest, Borneo Forest, Black Forest, Congo Forest
Pacific Ocean, Indian Ocean, Atlantic Ocean, Arctic Ocean, Southern Ocean, Coral Sea, Baltic Sea
Vietnam, Thailand, South Korea, Japan, China, Kenya, Peru, New Zealand
Texas, Florida, California, Michigan, New Jersey, Ohio, North Dakota
cheetah, peregrine falcon, ostrich, greyhound, gazelle, pronghorn, lion
""".strip().splitlines()]  # fmt: skip
MISSPELT = {"Empire state building", "Conga River", "Ushiku Faibutsu"}
"""Entities that the data misspells; they are not used in variants of other questions."""
NAMES = tuple(sorted((name for group in GROUPS for name in group), key=len, reverse=True))
NAMED = re.compile(rf"\b(?:{'|'.join(map(re.escape, NAMES))})\b")
PERCENT = re.compile(r"\b(\d+)%")
OTHER_WORDS = (
    ("tallest", "shortest"), ("largest", "smallest"), ("longest", "shortest"), ("deepest", "shallowest"),
    ("larger", "smaller"), ("smaller", "larger"), ("smallest", "largest"), ("shortest", "tallest"), ("taller", "lower"),
    ("ratio", "difference"), ("difference", "ratio"), ("average", "median"), ("combined", "average"),
    ("height", "age"), ("population", "area"), ("area", "population"), ("size", "age"), ("length", "width"),
    ("depth", "age"), ("increased", "decreased"), ("decreased", "increased"), ("grows", "shrinks"),
    ("expanded", "reduced"), ("shortened", "lengthened"), ("greater", "smaller"), ("maximum", "minimum"),
    ("minimum", "maximum"), ("greatest", "least"), ("higher", "lower"), ("faster", "slower"), ("meters", "feet"),
    ("kilometers", "miles"), ("doubled", "tripled"), ("most", "fewest"), ("largest", "second largest"),
)  # fmt: skip
CONDITIONS = (" Ignore whatever changes by less than 12%.", " Answer in millimeters.", " Count only what lies in Asia.")


def scripted_plan(question: str) -> Plan:
    """Write the plan: one search for each entity, then a step that answers the question from the results."""
    things = list(dict.fromkeys(NAMED.findall(question)))
    steps = [
        PlannedStep(id=f"E{n}", tool="search", arguments={"query": thing}, why=f"Look up {thing}.")
        for n, thing in enumerate(things, 1)
    ]
    pieces: list[Any] = [f"{question} Known:"]
    for step in steps:
        pieces += [" ", {"$ref": step.id}]
    last = PlannedStep(id=f"E{len(steps) + 1}", tool="math", arguments={"question": {"$text": pieces}})
    return Plan(task=question, steps=(*steps, last))


def of_other_things(question: str, rng: random.Random) -> str:
    """Replace entities by others of their kind, and percentages by others; equal entities stay equal."""
    swaps: dict[str, str] = {}
    for group in GROUPS:
        there = [name for name in group if name in NAMED.findall(question)]
        swaps |= dict(zip(there, rng.sample([name for name in group if name not in MISSPELT], len(there)), strict=True))
    numbers = list(dict.fromkeys(PERCENT.findall(question)))
    new = dict(zip(numbers, map(str, rng.sample(range(2, 90), len(numbers))), strict=True))
    text = NAMED.sub(lambda found: swaps[found[0]], question)
    return PERCENT.sub(lambda found: f"{new[found[1]]}%", text)


def other_questions(question: str) -> Iterator[str]:
    """Yield similar questions with another meaning."""
    for word, other in OTHER_WORDS:
        if re.search(rf"\b{word}\b", question):
            yield re.sub(rf"\b{word}\b", other, question, count=1)
    for words in ("would", "is", "becomes", "covers"):
        if re.search(rf"\b{words}\b", question):
            yield re.sub(rf"\b{words}\b", f"{words} not", question, count=1)
            yield re.sub(rf"\b{words}\b", f"{words} NOT", question, count=1)
            break
    yield from (question + condition for condition in CONDITIONS)
    things = list(dict.fromkeys(NAMED.findall(question)))
    yield question.replace(things[0], f"{things[0]} and the Great Pyramid", 1)
    if len(things) > 1:
        yield question.replace(things[0], things[1])
    if PERCENT.search(question):
        yield PERCENT.sub(r"\1 meters", question, count=1)


class Counting:
    """A planner that writes the scripted plan, and counts the tokens of its requests."""

    name = "counting"

    def __init__(self) -> None:
        self.planner_tokens = 0

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        words = "42"
        if request.prompt.label() == "make_plan":
            self.planner_tokens += sum(len(message.text) for message in request.messages) // 4
            words = write_plan(scripted_plan(request.prompt.task), SPECS)  # type: ignore[attr-defined]
        yield Piece(words)
        yield Usage(1, 1)


async def search(query: str) -> str:
    """Search for a thing."""
    return f"{query}: 1,000"


async def math(question: str) -> str:
    """Work out a question."""
    return f"42, which answers {len(question)} characters"


TOOLS: list[FunctionTool] = [tool(search), tool(math)]
SPECS = [each.spec for each in TOOLS]


def is_right(plan: Plan, question: str) -> bool:
    """Return whether a plan makes the calls of the planner's plan."""
    return [(s.tool, s.arguments) for s in plan.steps] == [(s.tool, s.arguments) for s in scripted_plan(question).steps]


async def measure(questions: list[str]) -> dict[str, Any]:
    """Remember a plan for each question, by successful runs; then ask the variants."""
    rng, model = random.Random(7), Counting()
    alike = [of_other_things(question, rng) for question in questions]
    unlike = [other for question in questions for other in other_questions(question) if other not in questions]
    with tempfile.TemporaryDirectory() as folder:
        async with Memory.open(folder, "plans") as stream:
            plans = RememberedPlans(stream)
            for question in questions:
                await Planner(model=model, tools=TOOLS, remembered=plans).solve(question)
            kept = len(await stream.latest("exemplar", 1_000))
            found = {question: await plans.find(question, SPECS) for question in (*alike, *unlike)}
            right = {question for question, plan in found.items() if plan and is_right(plan, question)}
            false = [question for question, plan in found.items() if plan and question not in right]
            hits = [question in right for question in alike]
            model.planner_tokens = 0
            for question, hit in zip(alike, hits, strict=True):
                if hit:
                    await Planner(model=model, tools=TOOLS, remembered=plans).solve(question)
    control = await by_embeddings(questions, alike, unlike, sum(hits))
    return {
        "questions": len(questions), "kept": kept, "asked_alike": len(alike), "hits": sum(hits),
        "asked_unlike": len(unlike), "false": len(false), "reused_rightly": len(right & set(unlike)),
        "planner_tokens_on_hit": model.planner_tokens, "by_embeddings": control,
    }  # fmt: skip


async def by_embeddings(questions: list[str], alike: list[str], unlike: list[str], hits: int) -> dict[str, Any]:
    """Find plans by the nearest question: the threshold that gives as many hits, and its false reuses."""
    vectors = embedder("wordllama")
    kept, same, other = [_normalised(await vectors.embed(texts)) for texts in (questions, alike, unlike)]
    likeness = same @ kept.T
    own = np.where(likeness.argmax(1) == np.arange(len(alike)), likeness.max(1), -1.0)
    reached = np.sort(own[own >= 0])[::-1]
    threshold = float(reached[min(hits, len(reached)) - 1])
    false = int(((other @ kept.T).max(1) >= threshold).sum())
    return {"threshold": round(threshold, 3), "hits": int((own >= threshold).sum()), "false": false, "of": len(unlike)}


def _normalised(vectors: Any) -> Any:
    found = np.asarray(vectors, np.float32)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    questions = list(dict.fromkeys(each["question"] for each in json.loads(options.data.read_text("utf-8"))))
    print(json.dumps(asyncio.run(measure(questions)), indent=None if options.json else 1))


if __name__ == "__main__":
    main()
