"""Measure the value of shared experience: agents learn from corrections in a workplace, others then work there.

Training runs once: an agent with the lessons so far answers; a simulated person corrects a wrong answer in a
sentence, and the agent tries again. Then the verdict changes the lessons, and accepted work becomes an exemplar. In
the test, agents answer new questions once, without corrections, in four conditions: with nothing, with exemplars of
accepted work, with lessons, or with both.
"""

from __future__ import annotations

import asyncio
import math
import random
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from mindstream.errors import InputError
from mindstream.evaluation_cache import EvaluationCache
from mindstream.memory.recall.exemplars import Example
from mindstream.models.roles import Models
from mindstream.planning.planner import Planner, Strategy
from mindstream.planning.run import Solution
from mindstream.service.lessons import procedure_of, work_of
from mindstream.sharing.admission import Pair, admit_work
from mindstream.sharing.exemplar import question_id
from mindstream.sharing.lessons import Line, Verdict, learn
from mindstream.sharing.member import Member, plan_shot
from mindstream.sharing.pool import Pool
from mindstream_evals.sharing.workplaces import WORKPLACES, Assignment, Workplace

Arm: TypeAlias = Literal["none", "exemplars", "lessons", "both"]
ARMS: tuple[Arm, ...] = get_args(Arm)
OWNER, AGENT = "owner", "agent"
ENDING = "End with a line of its own: ANSWER: and the number, or ANSWER: unknown."
ANSWER = re.compile(r"ANSWER:\D*?(-?[\d,]*\.?\d+)")
TRIES_BEYOND = 2
"""Number of further tries after all conventions were stated."""
CLOSE = 0.002
"""Relative difference up to which an answer counts as right."""


@dataclass(frozen=True)
class Trial:
    """One answer.

    Attributes:
        first: whether the first attempt was right; tries: number of attempts; told: conventions stated by the person.
        noted: description of the changes that the verdict made to the pool.
    """

    question: str
    wanted: float
    answer: float | None
    right: bool
    first: bool
    tries: int = 1
    told: tuple[str, ...] = ()
    calls: int = 0
    tokens: int = 0
    tool_calls: int = 0
    noted: str = ""


@dataclass(frozen=True)
class Chosen:
    """Shows only a member's lessons or only its exemplars, and offers nothing to the pool."""

    member: Member
    arm: Arm
    question: str

    async def examples(self, query: str, k: int) -> list[Example]:  # noqa: ARG002
        """Return what the arm shows for the question, without the description of the workplace around it."""
        if self.arm == "none":
            return []
        found = await self.member.examples(self.question, k)
        return [each for each in found if self.arm == "both" or bool(each.lessons) == (self.arm == "lessons")]

    async def offer(self, query: str, answer: str, shown: Sequence[Example]) -> None:
        """Do nothing."""


def number_in(answer: str) -> float | None:
    """Return the last number that follows `ANSWER:`; None if there is none."""
    found = ANSWER.findall(answer)
    return float(found[-1].replace(",", "")) if found else None


def is_right(found: float | None, wanted: float) -> bool:
    """Return whether an answer is within the tolerance of the expected value."""
    return found is not None and math.isclose(found, wanted, rel_tol=CLOSE, abs_tol=0.01)


@dataclass(frozen=True)
class Evaluation:
    """An evaluation in one workplace.

    Args:
        models: role `worker` (or planner and solver) answers, `scorer` writes the lessons.
        mistaken: share of the corrections that state a convention wrongly.
    """

    place: str
    seed: int
    models: Models
    work: Path
    how: Strategy = "react"
    mistaken: float = 0.0
    training: int = 8
    tests: int = 12
    at_once: int = 4

    async def run(self, arms: Sequence[Arm], told: Callable[[int, int], None]) -> dict[str, list[Trial]]:
        """Return the answers of each condition, and those of the training.

        Raises:
            InputError: a workplace or condition is unknown.
            ModelError: a model failed; earlier answers are stored, and the same call resumes.
        """
        if self.place not in WORKPLACES or (unknown := set(arms) - set(ARMS)):
            wrong = self.place if self.place not in WORKPLACES else sorted(unknown)[0]
            raise InputError(f"unknown {wrong!r}; workplaces: {', '.join(WORKPLACES)}; conditions: {', '.join(ARMS)}")
        place = WORKPLACES[self.place](self.seed, self.training, self.tests)
        self.work.mkdir(parents=True, exist_ok=True)
        names = ",".join(f"{role}={name}" for role, name in sorted(self.models.names.items()))
        settings = f"{self.training} {self.tests} {self.mistaken:g} {self.how} {names}"
        key = f"{self.place}-{self.seed}-{question_id(settings)[:8]}"
        ledger = EvaluationCache(self.work / f"{key}.jsonl")
        learns = set(arms) != {"none"}
        total, done = learns * len(place.training) + len(arms) * len(place.tests), 0

        async def kept(name: str, make: Callable[[], Awaitable[Trial]]) -> Trial:
            nonlocal done
            if (row := ledger.find(name)) is None:
                ledger.keep(name, row := asdict(await make()))
            told(done := done + 1, total)
            return Trial(**{**row, "told": tuple(row["told"])})

        async with Pool.open(self.work / key, "work") as pool:
            if not await pool.exists():
                await pool.create(place.about, OWNER, members=[AGENT])
            found: dict[str, list[Trial]] = {"training": []}
            for number, each in enumerate(place.training if learns else ()):
                trial = await kept(f"training {number}", partial(self._train, pool, place, each, number))
                found["training"].append(trial)
            slots = asyncio.Semaphore(self.at_once)

            async def test(arm: Arm, number: int, each: Assignment) -> Trial:
                async with slots:
                    return await kept(f"{arm} {number}", partial(self._test, pool, place, arm, each))

            for arm in arms:
                async with asyncio.TaskGroup() as group:
                    tasks = [group.create_task(test(arm, n, each)) for n, each in enumerate(place.tests)]
                found[arm] = [task.result() for task in tasks]
        return found

    def _member(self, pool: Pool) -> Member:
        return Member(pool, AGENT, render=plan_shot)

    async def _solve(self, place: Workplace, text: str, member: Member, arm: Arm) -> Solution:
        planner = Planner(model=self.models, tools=place.tools, how=self.how, exemplars=Chosen(member, arm, text))
        return await planner.solve(f"{place.about}\n\n{text}\n\n{ENDING}")

    async def _test(self, pool: Pool, place: Workplace, arm: Arm, task: Assignment) -> Trial:
        solved = await self._solve(place, task.question, self._member(pool), arm)
        return _trial(task, [solved], is_right(number_in(solved.answer), task.value))

    async def _train(self, pool: Pool, place: Workplace, task: Assignment, number: int) -> Trial:
        """Let an agent try until it is right or no tries are left; then let the pool learn from the verdict."""
        rng = random.Random(f"{self.seed} {number}")
        work, told, spent = [Line("user", task.question)], list[str](), list[Solution]()
        tries, first, shown = 0, False, tuple[str, ...]()
        while True:
            said = "".join(f"\nYour earlier answer was not right. A person said: {each}" for each in told)
            solved = await self._solve(place, task.question + said, self._member(pool), "lessons")
            shown, tries = shown or solved.lessons, tries + 1
            spent.append(solved)
            work += work_of(solved)[1:]
            right = is_right(number_in(solved.answer), task.value)
            first = first or (right and tries == 1)
            if right or tries > (1 + (self.mistaken > 0)) * len(task.needs) + TRIES_BEYOND:
                break
            left = [name for name in task.needs if place.says[name] not in told]
            if not left:
                told.append("That is still not it.")
            else:
                may_be = place.mistakes[left[0]] not in (*told, place.says[left[0]])
                wrong_ones = sum(place.mistakes[name] != place.says[name] for name in place.says)
                is_mistaken = may_be and rng.random() < self.mistaken * len(place.says) / wrong_ones
                told.append((place.mistakes if is_mistaken else place.says)[left[0]])
            work.append(Line("user", told[-1]))
        work.append(Line("user", "Accepted." if right else "I give up."))
        verdict = Verdict(first, " ".join(told), OWNER) if told else Verdict(right, "", OWNER)
        model = self.models.of("scorer")
        learned = await learn(pool, model, task.question, work, verdict, writer=AGENT, shown=shown)
        if right:
            await admit_work(pool, Pair(task.question, procedure_of(solved, learned.steps)), AGENT, OWNER)
        return _trial(task, spent, first, tuple(told), str(learned))


def _trial(
    task: Assignment, solved: Sequence[Solution], first: bool, told: tuple[str, ...] = (), noted: str = ""
) -> Trial:
    value, spent = number_in(solved[-1].answer), [each.spent for each in solved]
    calls, tokens = sum(each.model_calls for each in spent), sum(each.tokens for each in spent)
    right, tool_calls = is_right(value, task.value), sum(each.tool_calls for each in spent)
    return Trial(task.question, task.value, value, right, first, len(solved), told, calls, tokens, tool_calls, noted)


def summary(trials: Sequence[Trial]) -> dict[str, Any]:
    """Return totals over some answers."""
    return {
        "tasks": len(trials),
        "right": sum(each.right for each in trials),
        "right_at_first": sum(each.first for each in trials),
        "corrections": sum(len(each.told) for each in trials),
        "model_calls": sum(each.calls for each in trials),
        "tokens": sum(each.tokens for each in trials),
        "tool_calls": sum(each.tool_calls for each in trials),
    }
