"""Measure the answers that remain correct when tools fail: errors, timeouts, empty results, 10 MB, invalid text.

Each question is a sum of 2 to 5 numbers that a tool finds. Searches fail at the given rate, keyed by the seed. The
scripted model answers only from its prompt: the sum if all numbers are there, otherwise it names the missing ones. If
the strategy allows it, it repeats a search once with other words (one revised plan; in ReAct, one more call each). It
has no knowledge of its own, so no answer can be correct if every search fails; a language model that can answer from
its own knowledge is the case of table 3 in the paper.

Every run must end in time, and its answer must name each missing number; no prompt may be longer than MOST characters
or invalid UTF-8. The control runs the same plans as the published code does: one step after another, without timeout or
error handling, with the tool's result inserted verbatim.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import time
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Any

from mindstream.models.model import Call, Part, Piece, Request, Usage
from mindstream.models.wrappers.meter import Budget
from mindstream.planning.executor import Limits
from mindstream.planning.planner import Planner, Strategy
from mindstream.planning.run import Solution
from mindstream.tools.tool import FunctionTool, tool

KINDS = ("exception", "hang", "empty", "large", "not_utf8")
RATES = (0.2, 0.5, 1.0)
IN_TIME_S, TIMEOUT_S, MOST = 10.0, 0.05, 200_000
LARGE = "x" * 10_000_000
NUMBER = re.compile(r"number (\d+)")
THING = re.compile(r"thing (\d+)")


@dataclass
class World:
    """Numbers that a search finds or fails to find, by kind and rate of failure."""

    kind: str
    rate: float
    seed: str
    branch: int
    calls: int = 0
    prompts: list[str] = field(default_factory=list)

    @property
    def answer(self) -> str:
        return str(sum(100 + n for n in range(1, self.branch + 1)))

    async def search(self, query: str) -> Any:
        """Find the number of a thing."""
        self.calls += 1
        if random.Random(f"{self.seed}/{query}").random() < self.rate:
            return await _fail(self.kind)
        return f"number {100 + int(THING.findall(query)[0])}"

    def tools(self) -> list[FunctionTool]:
        return [tool(self.search)]

    def plan(self, again: Sequence[str] = ()) -> str:
        """Return the plan, or the repeated searches with other words."""
        words = ", once more" if again else ""
        numbers = [int(id[1:]) for id in again] or range(1, self.branch + 1)
        return "".join(f"Plan: Find it.\n#E{n} = search[thing {n}{words}]\n" for n in numbers)


async def _fail(kind: str) -> Any:
    if kind == "exception":
        raise RuntimeError("the server is on fire")
    if kind == "hang":
        await asyncio.sleep(3_600)
    return {"empty": "", "large": LARGE, "not_utf8": b"\xff\xfe number".decode("utf-8", "surrogateescape")}[kind]


@dataclass
class Reader:
    """A model that answers only from its prompt."""

    world: World
    name: str = "reader"

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        shown = "\n".join(message.text for message in request.messages)
        self.world.prompts.append(shown)
        label = request.prompt.label()
        if label == "make_plan":
            yield Piece(self.world.plan())
        elif label == "mend_plan":
            yield Piece(self.world.plan(re.findall(r"(E\d+): (?:failed|[^\n]*does not hold)", shown)) or "NOTHING")
        elif label == "act_on_task":
            yield self._act(request)
        else:
            yield Piece(self.answer(shown))
        yield Usage(len(shown) // 4, 20)

    def answer(self, shown: str) -> str:
        """Return the sum of the numbers in the prompt, or the missing ones."""
        blocks = re.findall(r"<evidence>\n(E\d+): (.*?)\n</evidence>", shown, re.DOTALL)
        found = {id: number[1] for id, text in blocks if (number := NUMBER.search(text))}
        missing = [id for id, _ in blocks if id not in found]
        said = _say(found.values(), [f"thing {id[1:]}" for id in missing])
        return f"MISSING {', '.join(missing)}: {said}" if missing else said

    def _act(self, request: Request) -> Part:
        asked = [json.loads(call.arguments)["query"] for message in request.turns for call in message.calls]
        results = [message.text for message in request.turns if message.role == "tool"]
        found = {
            THING.findall(query)[0]: n[1]
            for query, text in zip(asked, results, strict=True)
            if (n := NUMBER.search(text))
        }
        things = [f"thing {n}" for n in range(1, self.world.branch + 1)]
        for words in ("", ", once more"):
            for thing in things:
                if thing[6:] not in found and thing + words not in asked and request.tools:
                    return Call("search", json.dumps({"query": thing + words}))
        return Piece(_say(found.values(), [thing for thing in things if thing[6:] not in found]))


def _say(found: Any, missing: Sequence[str]) -> str:
    if missing:
        return f"not known, for nothing was found of: {', '.join(missing)}"
    return str(sum(map(int, found)))


# One run.


@dataclass(frozen=True)
class Outcome:
    """The result of a run. `kept`: the answer is correct. `sound`: it is correct or names the missing numbers, and
    nothing else went wrong.
    """

    kept: bool
    sound: bool
    why: str = ""


async def run(how: Strategy, world: World, replans: int = 1) -> Solution:
    """Solve a world's question."""
    reader, limits = Reader(world), Limits(timeout_s=TIMEOUT_S)
    planner = Planner(model=reader, tools=world.tools(), how=how, replans=replans, limits=limits)
    return await planner.solve("What is the sum?")


async def run_naive(world: World) -> str:
    """Run a plan as the published code does, without any guard."""
    reader = Reader(world)
    evidence = ""
    for n in range(1, world.branch + 1):
        found = await world.search(f"thing {n}")
        evidence += f"<evidence>\nE{n}: search[thing {n}]\n{found}\n</evidence>\n"
    world.prompts.append(evidence)
    return reader.answer(evidence) if len(evidence) < MOST else ""


def judge(world: World, answer: str, seconds: float) -> Outcome:
    """Judge an answer."""
    if answer == world.answer:
        kept, why = True, ""
    else:
        kept, why = False, "" if "thing" in answer and "not known" in answer else f"it says {answer[:60]!r}"
    if seconds > IN_TIME_S:
        why = f"it took {seconds:.0f} s"
    for prompt in world.prompts:
        if len(prompt) > MOST:
            why = f"a prompt of {len(prompt)} characters"
        elif any("\ud800" <= sign <= "\udfff" for sign in prompt):
            why = "a prompt that is no UTF-8"
    return Outcome(kept and not why, not why, why)


async def _judged(way: str, world: World) -> Outcome:
    began = time.perf_counter()
    try:
        async with asyncio.timeout(IN_TIME_S if way != "naive" else 10 * TIMEOUT_S):
            if way == "naive":
                answer = await run_naive(world)
            else:
                how: Strategy = "react" if way == "react" else "plan-execute" if way == "plan_execute" else "rewoo"
                solution = await run(how, world, replans=0 if way == "rewoo_unmended" else 1)
                answer = solution.answer or solution.unanswered
    except Exception as error:  # noqa: BLE001 (what ends a run is what is looked for)
        return Outcome(False, False, f"{type(error).__name__}: {str(error)[:60]}")
    return judge(world, answer, time.perf_counter() - began)


WAYS = ("rewoo", "rewoo_unmended", "plan_execute", "react", "naive")


async def measure_failing(runs: int, seed: str) -> dict[str, Any]:
    """Run every kind of failure at every rate with each strategy; return the share of correct answers, and unsound
    runs.
    """
    rows = []
    for kind in KINDS:
        for rate in RATES:
            row: dict[str, Any] = {"kind": kind, "rate": rate}
            for way in WAYS:
                worlds = [World(kind, rate, f"{seed}/{n}", 2 + n % 4) for n in range(runs)]
                outcomes = await asyncio.gather(*(_judged(way, world) for world in worlds))
                row[way] = sum(each.kept for each in outcomes) / runs
                if faults := Counter(each.why for each in outcomes if not each.sound):
                    row[f"{way}_unsound"] = dict(faults.most_common(3))
            rows.append(row)
    guarded = [way for way in WAYS if way != "naive"]
    return {
        "holds": not any(f"{way}_unsound" in row for row in rows for way in guarded),
        "control_fails": sorted({row["kind"] for row in rows if "naive_unsound" in row}),
        "kept": {rate: {way: _mean(rows, rate, way) for way in WAYS} for rate in RATES},
        "budget": await measure_budgets(seed), "rows": rows,
    }  # fmt: skip


def _mean(rows: Sequence[dict[str, Any]], rate: float, way: str) -> float:
    taken = [row[way] for row in rows if row["rate"] == rate]
    return float(round(sum(taken) / len(taken), 3))


# Budgets.


async def measure_budgets(seed: str, most: int = 8) -> dict[str, Any]:
    """Return the largest excess of calls over the budget while half of the searches fail; the control has no budget."""
    ways: tuple[Strategy, ...] = ("rewoo", "plan-execute", "react")
    over = {"model_calls": 0, "tool_calls": 0, "tokens_in_calls": 0}
    unsaid = 0
    for how in ways:
        for allowed in range(1, most):
            world = World("exception", 0.5, f"{seed}/{how}/{allowed}", 5)
            budget = Budget(calls=allowed)
            found = await Planner(model=Reader(world), tools=world.tools(), how=how, budget=budget).solve("What?")
            over["model_calls"] = max(over["model_calls"], len(world.prompts) - allowed)
            unsaid += not (found.answer or found.stopped)
            world = World("exception", 0.5, f"{seed}/{how}/{allowed}", 5)
            await Planner(model=Reader(world), tools=world.tools(), how=how, tool_calls=allowed).solve("What?")
            over["tool_calls"] = max(over["tool_calls"], world.calls - allowed)
            world = World("exception", 0.5, f"{seed}/{how}/{allowed}", 5)
            budget = Budget(tokens=100 * allowed)
            await Planner(model=Reader(world), tools=world.tools(), how=how, budget=budget).solve("What?")
            spent = [len(prompt) // 4 + 20 for prompt in world.prompts]
            beyond = sum(sum(spent[:n]) >= 100 * allowed for n in range(1, len(spent)))
            over["tokens_in_calls"] = max(over["tokens_in_calls"], beyond)
    naive = World("empty", 0.5, seed, 5)
    await run_naive(naive)
    return {"exceeded_by": over, "ended_without_a_word": unsaid, "control_exceeds_by": naive.calls - 1}
