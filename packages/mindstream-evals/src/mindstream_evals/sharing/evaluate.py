"""Measure the value of shared experience: agents learn from corrections in a workplace, others then work there.

In the training, an agent that is shown the earlier experience answers; a simulated person corrects a wrong answer in a
sentence, and the agent tries again. The verdict then changes the experience. In the test, agents answer new questions
once, without corrections, in each condition (arm): with nothing, with exemplars of accepted work, with lessons, with
both, with a notes file, or with extracted facts. All arms learn from the same training, in which the lessons were
shown; or each arm trains alone.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from mindstream.errors import InputError
from mindstream.evaluation_cache import EvaluationCache, of_row
from mindstream.memory.recall.exemplars import Example
from mindstream.models.roles import Models
from mindstream.planning.estimate import Estimate, RoleEstimate, priced
from mindstream.planning.planner import Planner, Strategy
from mindstream.planning.run import Solution
from mindstream.service.lessons import calls_of, work_of, write_procedure
from mindstream.sharing.exemplar import question_id
from mindstream.sharing.lessons import Line, Verdict
from mindstream.sharing.member import Member, plan_shot
from mindstream.sharing.pool import Pool
from mindstream_evals.sharing.experience import (
    ARMS,
    POOLED,
    Arm,
    Attempts,
    Experience,
    ExtractedFacts,
    NotesFile,
    Pooled,
)
from mindstream_evals.sharing.workplaces import WORKPLACES, Assignment, Workplace

OWNER, AGENT, TRAINING = "owner", "agent", "training"
ENDING = "End with a line of its own: ANSWER: and the number, or ANSWER: unknown."
ANSWER = re.compile(r"ANSWER:\D*?(-?[\d,]*\.?\d+)")
TRIES_BEYOND = 2
"""Number of extra attempts at a training task. An agent has at most 1 + (number of conventions that the task needs) +
TRIES_BEYOND attempts. A person's correction after a wrong answer states one convention."""
CLOSE = 0.002
"""Relative difference up to which an answer counts as right. An absolute difference of up to 0.01 does, too."""
CALLS, TOKENS_IN, TOKENS_OUT = 3, 1_000, 120
"""Model calls of an attempt, and tokens of a call, for the estimate of the cost."""


@dataclass(frozen=True)
class Trial:
    """One answer.

    Attributes:
        first: whether the first attempt was right; tries: number of attempts; told: conventions stated by the person.
        noted: description of the changes that the verdict made to the experience.
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
    """The exemplars that one arm (a condition of the comparison) shows for a question. The search uses only the
    question. It does not use the rest of the prompt, which shows the workplace and earlier attempts."""

    experience: Experience | None
    arm: Arm
    question: str

    async def examples(self, query: str, k: int) -> list[Example]:  # noqa: ARG002
        """Return the examples that the arm (the compared condition) shows for `self.question`.

        The result is [] in an arm without experience. `query` and `k` are ignored.
        """
        return await self.experience.examples(self.arm, self.question) if self.experience else []

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
class Person:
    """A simulated person, who corrects wrong answers by stating a convention that the task needs.

    The convention with the fewest correct statements until now comes first. Each wrong statement of a convention counts
    as -1.5 correct statements. A false correction states a convention wrongly and ends the task.

    Attributes:
        mistaken: share of the corrections that are false.
        begin: number from 0 to 1 that decides which correction is the first false one. With a larger number, the first
            false correction comes earlier.
    """

    place: Workplace
    mistaken: float = 0.0
    begin: float = 0.5

    def correct(self, task: Assignment, told: Sequence[str], before: Sequence[str]) -> tuple[str, bool]:
        """Return the next correction of a task, and whether it is false. If all conventions that the task needs were
        stated, the correction only says that the answer is wrong.

        Args:
            told: the earlier corrections of this task.
            before: the corrections of all earlier tasks.
        """
        says, mistakes = self.place.says, self.place.mistakes
        left = [name for name in task.needs if says[name] not in told]
        if not left:
            return "That is still not it.", False
        told_before = [*before, *told]

        def is_new(name: str) -> bool:
            return mistakes[name] != says[name]

        left.sort(
            key=lambda name: told_before.count(says[name]) - 1.5 * is_new(name) * told_before.count(mistakes[name])
        )
        false_before = sum(each in mistakes.values() and each not in says.values() for each in told_before)
        if int(self.mistaken * (len(told_before) + 1) + self.begin) > false_before:
            wrong = [mistakes[name] for name in left if mistakes[name] not in (says[name], *told_before)]
            if wrong:
                return wrong[0], True
        return says[left[0]], False


@dataclass(frozen=True)
class Evaluation:
    """An evaluation in one workplace.

    Args:
        models: the role `worker` (or the roles planner and solver) answers the tasks; the role `scorer` writes lessons,
            notes and facts from the answers.
        mistaken: share of the corrections that state a convention wrongly.
        separate: whether each arm (kind of experience that agents are shown) has its own training. False: all arms
            learn from one training, in which agents are shown lessons.
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
    separate: bool = False
    _caches: dict[str, EvaluationCache] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """The folder of this evaluation's pools and answers; it does not depend on the models."""
        settings = f"{self.training} {self.tests} {self.mistaken:g} {self.how}"
        return self.work / f"{self.place}-{self.seed}-{question_id(settings)[:8]}"

    async def run(
        self, arms: Sequence[Arm | Literal["training"]], told: Callable[[int, int], None]
    ) -> dict[str, list[Trial]]:
        """Return the answers of each condition, and the answers of the training (key: `training`, or `training ARM`).

        Args:
            arms: the conditions; `training`: only train, for conditions that other processes test later.
            told: called with the number of rows done, and their total.

        Raises:
            InputError: a workplace or condition is unknown, or no model is configured.
            ModelError: a model failed; earlier answers are stored, and the same call resumes.
        """
        check_names(self.place, arms)
        groups, tested = self._groups(arms), [each for each in ARMS if each in arms]
        if self.models.only_rules:
            raise InputError("agents need a model, because rules cannot solve their tasks; name one with --model NAME")
        place = WORKPLACES[self.place](self.seed, self.training, self.tests)
        self.folder.mkdir(parents=True, exist_ok=True)
        done = 0
        trainings = len(groups) if self.separate else bool(groups)
        total = len(place.training) * (len(groups) + trainings) + len(tested) * len(place.tests)

        def count() -> None:
            nonlocal done
            told(done := done + 1, total)

        found = dict[str, list[Trial]]()
        async with AsyncExitStack() as opened:
            known = dict[str, Experience]()
            for group, arm in groups.items():
                known[group] = await self._open(group, place, opened)
                await self._learn(place, known, group, arm, found, count)
            slots = asyncio.Semaphore(self.at_once)

            async def test(arm: Arm, number: int) -> Trial:
                async with slots:
                    make = partial(self._test, known.get(self._group_of(arm)), place, arm, place.tests[number])
                    row = await self._kept(arm, f"{arm} {number}", make)
                count()
                return _read_trial(row)

            order = [(arm, number) for arm in tested for number in range(len(place.tests))]
            random.Random(f"order {self.seed}").shuffle(order)  # so that a model cannot infer the arm from the order
            async with asyncio.TaskGroup() as tasks:
                asked = {each: tasks.create_task(test(*each)) for each in order}
        for arm in tested:
            found[arm] = [asked[arm, number].result() for number in range(len(place.tests))]
        return found

    def _group_of(self, arm: Arm) -> str:
        """Return the name of the experience that an arm uses; the pooled arms share one unless they train alone."""
        return "pool" if arm in POOLED and not self.separate else arm

    def _groups(self, arms: Iterable[str]) -> dict[str, Arm]:
        """Return the experiences to build, in order, each with the arm (the condition) that trains with it.

        If the arms train alone (`separate`), each arm has its own experience. Else the pool comes first, because the
        other experiences learn from the pool's training.
        """
        known = [each for each in ARMS if each in arms]
        if self.separate:
            return {each: each for each in known}
        others = [each for each in known if each not in (*POOLED, "none")]
        return {"pool": "lessons", **{each: each for each in others}} if set(arms) - {"none"} else {}

    async def _open(self, group: str, place: Workplace, opened: AsyncExitStack) -> Experience:
        model = self.models.of("scorer")
        match group:
            case "notes":
                return NotesFile(model)
            case "facts":
                return ExtractedFacts(model)
        pool = await opened.enter_async_context(Pool.open(self.folder / f"{group}-data", "work"))
        if not await pool.exists():
            await pool.create(place.about, OWNER, members=[AGENT])
        return Pooled(Member(pool, AGENT, render=plan_shot), model, OWNER)

    async def _learn(
        self,
        place: Workplace,
        known: Mapping[str, Experience],
        group: str,
        arm: Arm,
        found: dict[str, list[Trial]],
        count: Callable[[], None],
    ) -> None:
        """Let the experience `group` learn from all training tasks.

        An agent attempts the tasks, and the attempts are added to `found`. If the arms share one training (not
        `separate`), this happens only for the experience "pool". All other experiences learn from the stored attempts
        of that training.
        """
        trainee = group if self.separate else "pool"
        title = f"training {arm}" if self.separate else "training"
        said, trials = list[str](), list[Trial]()
        for number, task in enumerate(place.training):
            make = partial(self._attempt, known[trainee], place, arm, task, tuple(said))
            row = await self._kept(f"training-{trainee}", f"training {number}", make)
            said += row["told"]
            if group == trainee:
                count()
            learned = {"noted": ""}
            if arm != "none":
                attempts = Attempts.from_row(row["attempts"])
                learned = await self._kept(group, f"learned {number}", partial(known[group].learn, attempts))
                known[group].load(learned)
            count()
            trials.append(_read_trial({**row, "noted": learned["noted"]}))
        if group == trainee:
            found[title] = trials

    async def _kept(self, name: str, key: str, make: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
        """Return a stored row; if it is missing, make and store it. Each file (`name`) has one writer, so processes can
        share a folder."""
        if name not in self._caches:
            self._caches[name] = EvaluationCache(self.folder / f"{name}.jsonl")
        cache = self._caches[name]
        if cache.find(key) is None:
            cache.keep(key, json.loads(json.dumps(await make())))
        return dict(cache.rows[key])

    async def _solve(self, place: Workplace, text: str, shows: Chosen) -> Solution:
        planner = Planner(model=self.models, tools=place.tools, how=self.how, exemplars=shows)
        return await planner.solve(f"{place.about}\n\n{text}\n\n{ENDING}")

    async def _test(self, known: Experience | None, place: Workplace, arm: Arm, task: Assignment) -> dict[str, Any]:
        known = None if arm == "none" else known
        solved = await self._solve(place, task.question, Chosen(known, arm, task.question))
        return asdict(_trial(task, [solved], is_right(number_in(solved.answer), task.value)))

    async def _attempt(
        self, known: Experience, place: Workplace, arm: Arm, task: Assignment, before: Sequence[str]
    ) -> dict[str, Any]:
        """Let an agent try until it is right, no tries are left, or a false correction ends the task."""
        person = Person(place, self.mistaken, 0.1 * random.Random(f"false {self.seed}").randint(5, 8))
        shows = Chosen(None if arm == "none" else known, arm, task.question)
        work, told, spent = [Line("user", task.question)], list[str](), list[Solution]()
        shown, calls, text = tuple[str, ...](), tuple[tuple[str, str], ...](), task.question
        while True:
            solved = await self._solve(place, text, shows)
            after = sum(each.by == "call" for each in work)
            shown, calls = shown or solved.lessons, calls_of(solved, after)
            spent.append(solved)
            work += work_of(solved, after)[1:]
            right = is_right(number_in(solved.answer), task.value)
            if right or len(spent) > len(task.needs) + TRIES_BEYOND:
                break
            correction, is_false = person.correct(task, told, before)
            told.append(correction)
            work.append(Line("user", correction))
            if is_false:
                break
            corrections = "\n".join(f"A person said: {each}" for each in told)
            text = f"{task.question}\n\nYour earlier attempt was not right:\n{write_procedure(calls, solved.answer)}\n"
            text += corrections
        first = right and len(spent) == 1
        ended = " After that, the result was accepted." if right and told else ""
        work.append(Line("user", "Accepted." if right else "I give up."))
        verdict = Verdict(first, " ".join(told) + ended, OWNER)
        attempts = Attempts(task.question, tuple(work), verdict, shown, calls, solved.answer, right)
        return asdict(_trial(task, spent, first, tuple(told))) | {"attempts": asdict(attempts)}


def check_names(place: str, arms: Sequence[str]) -> None:
    """Raise InputError if a workplace or condition is unknown."""
    if unknown := [*({place} - set(WORKPLACES)), *sorted(set(arms) - {*ARMS, TRAINING})]:
        known = f"workplaces: {', '.join(WORKPLACES)}; conditions: {', '.join(ARMS)}, {TRAINING}"
        raise InputError(f"unknown {unknown[0]!r}; {known}")


def _read_trial(row: Mapping[str, Any]) -> Trial:
    return of_row(Trial, {**row, "told": tuple(row["told"])})


def _trial(task: Assignment, solved: Sequence[Solution], first: bool, told: tuple[str, ...] = ()) -> Trial:
    value, spent = number_in(solved[-1].answer), [each.spent for each in solved]
    calls, tokens = sum(each.model_calls for each in spent), sum(each.tokens for each in spent)
    right, tool_calls = is_right(value, task.value), sum(each.tool_calls for each in spent)
    return Trial(task.question, task.value, value, right, first, len(solved), told, calls, tokens, tool_calls)


def summary(trials: Sequence[Trial]) -> dict[str, Any]:
    """Return totals over some trials: tasks, right answers, corrections, calls and tokens."""
    return {
        "tasks": len(trials),
        "right": sum(each.right for each in trials),
        "right_at_first": sum(each.first for each in trials),
        "corrections": sum(len(each.told) for each in trials),
        "model_calls": sum(each.calls for each in trials),
        "tokens": sum(each.tokens for each in trials),
        "tool_calls": sum(each.tool_calls for each in trials),
    }


def curves(found: Mapping[str, Sequence[Trial]], wrong: bool) -> dict[str, list[float]]:
    """Return a curve over the tasks for each condition, as shares from 0 to 1.

    Args:
        wrong: the curve to return. True: the number of test tasks answered wrongly up to each task, as a share of all
            test tasks. False: the number of corrections in each training task, as a share of the maximum in any task.
    """
    some = {name: trials for name, trials in found.items() if name.startswith("training") != wrong and trials}
    if wrong:
        return {
            name: [sum(not each.first for each in trials[:n]) / len(trials) for n in range(len(trials) + 1)]
            for name, trials in some.items()
        }
    most = max([1, *(len(each.told) for trials in some.values() for each in trials)])
    return {name: [len(each.told) / most for each in trials] for name, trials in some.items()}


def expected_cost(
    places: int, arms: Sequence[Arm], training: int, tests: int, separate: bool, models: Mapping[str, str]
) -> Estimate:
    """Estimate the cost of an evaluation without stored answers, from the calls that were typical in earlier runs.

    Args:
        places: number of workplaces. training, tests: number of training tasks, and of test tasks, of each.
        separate: whether the training tasks are solved anew for each arm.
    """
    learning = [each for each in arms if each != "none"]
    others = [each for each in learning if each not in (*POOLED, TRAINING)]
    keepers = len(learning) if separate else bool(learning) + len(others)
    trained = len(arms) if separate else bool(learning)
    attempts = places * (trained * (2 * training) + len([each for each in arms if each in ARMS]) * tests)
    if separate and "none" in arms:
        attempts += places * 3 * training
    calls, kept = attempts * CALLS, places * training * keepers
    asked = [
        RoleEstimate("worker", calls, calls * TOKENS_IN, calls * TOKENS_OUT),
        RoleEstimate("scorer", kept, kept * 2 * TOKENS_IN, kept * 2 * TOKENS_OUT),
    ]
    return priced(asked, models)
