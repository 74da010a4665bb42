"""Run a life in simulated time: idle hours are skipped, a scripted user talks, and steps take simulated seconds.

async with Simulation.open(stream, goal="…", orders=[…], user=ScriptedUser.load("user.jsonl")) as simulation:
    async for day in simulation.days(30):
        print(day.number, day.said)

A script is JSON Lines: `{"day": 3, "at": "19:30", "says": "…"}`, and for questions that the life asks
`{"day": 3, "asked": "a word of the question", "answers": "…", "after_s": 40}`.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ValidationError

from mindstream import chance
from mindstream.clock import DAY_S, ManualClock, Moment
from mindstream.errors import InputError
from mindstream.life.life import Life
from mindstream.log.events import Heard
from mindstream.memory.memory import Memory
from mindstream.memory.store.columns import OPEN
from mindstream.memory.store.record import FADING, KINDS
from mindstream.memory.store.store import Entry, read_log
from mindstream.models.model import Model, Part, Request
from mindstream.models.prompt import complaints
from mindstream.models.roles import Models
from mindstream.models.rules import Rules

STEP_S = (2.0, 10.0)
"""Minimum and maximum duration of a model's step, in simulated seconds."""


class ScriptLine(BaseModel, frozen=True, extra="forbid"):
    """An action of a scripted user: an utterance at a time of a day, or an answer to a question on that day.

    Attributes:
        day: the number of the day, from 1.
        at: the time of the utterance, such as `19:30`; "": noon.
        says: the utterance.
        asked: a text that the question must contain.
        answers: the answer to the question.
        after_s: simulated seconds until the answer.
    """

    day: int
    at: str = ""
    says: str = ""
    asked: str = ""
    answers: str = ""
    after_s: float = 30.0

    @property
    def second(self) -> float:
        """The time of the utterance, in seconds from the beginning of its day. If `at` is "", this is noon."""
        hours, _, minutes = self.at.partition(":")
        return int(hours or 12) * 3_600 + int(minutes or 0) * 60


@dataclass(frozen=True)
class ScriptedUser:
    """A user who follows a script and is silent otherwise."""

    lines: Sequence[ScriptLine] = ()

    @classmethod
    def load(cls, path: Path | str) -> ScriptedUser:
        """Read a script.

        Raises:
            InputError: the file cannot be read, or a line is invalid.
        """
        try:
            rows = [row for row in Path(path).read_text("utf-8").splitlines() if row.strip()]
            return cls(tuple(ScriptLine.model_validate(json.loads(row)) for row in rows))
        except ValidationError as error:
            raise InputError(f"{path}: {complaints(error)}") from None
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}") from None
        except ValueError as error:
            raise InputError(f"{path} is not a script in JSON Lines format: {error}") from None

    def says_on(self, day: int) -> list[ScriptLine]:
        """Return the utterances of a day, in the order of their times."""
        return sorted((line for line in self.lines if line.day == day and line.says), key=lambda line: line.second)

    def answer(self, day: int, question: str) -> ScriptLine | None:
        """Return the script's first line that answers a question on a day; None: the user stays silent."""
        words = question.casefold()
        fits = (line for line in self.lines if line.day == day and line.answers and line.asked.casefold() in words)
        return next(fits, None)


class Paced:
    """A model whose replies take simulated time, of a random but reproducible duration."""

    def __init__(self, model: Model, clock: ManualClock, seed: int) -> None:
        self.name = model.name
        self._model, self._clock, self._seed, self._replies = model, clock, seed, 0

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        """Advance the clock, then reply."""
        self._replies += 1
        low, high = STEP_S
        self._clock.advance(low + (high - low) * chance.fraction(self._seed, "step", self._replies))
        async for part in self._model.reply(request):
            yield part


@dataclass(frozen=True)
class Day:
    """A simulated day.

    Attributes:
        said: the words with which M2 (the role that decides) ended each turn, with their times.
        levels: the retention level of each memory that can decay, at the end of the day, by id; -1: archived.
    """

    number: int
    said: Sequence[tuple[Moment, str]]
    levels: Mapping[str, int]


@dataclass
class Simulation:
    """A life on a manual clock. Open one with `Simulation.open`."""

    life: Life
    clock: ManualClock
    user: ScriptedUser
    began: Moment
    today: int = 1
    _seen: int = 0

    @classmethod
    @contextlib.asynccontextmanager
    async def open(
        cls,
        stream: Memory,
        *,
        goal: str,
        orders: Sequence[str] = (),
        user: ScriptedUser = ScriptedUser(),
        model: Model | None = None,
        seed: int = 1,
        **options: Any,
    ) -> AsyncIterator[Simulation]:
        """Open a life on a memory with a ManualClock; `options` are those of `Life.open`.

        Raises:
            InputError: the memory has another clock.
        """
        clock = stream.clock
        if not isinstance(clock, ManualClock):
            raise InputError(
                "a simulation needs a memory with a ManualClock: open the memory with clock=ManualClock(…)"
            )
        held: list[Simulation] = []

        async def answers(question: str) -> str | None:
            line = user.answer(held[0].today, question)
            if line is None:
                return None
            clock.advance(line.after_s)
            return line.answers

        models = Models(Paced(model or Rules(), clock, seed))
        async with Life.open(stream, models, goal=goal, orders=orders, user=answers, **options) as life:
            held.append(cls(life, clock, user, clock.now() // DAY_S * DAY_S))
            yield held[0]

    async def days(self, number: int) -> AsyncIterator[Day]:
        """Simulate a number of days, and yield each day at its end."""
        for _ in range(number):
            midnight = self.began + (self.today - 1) * DAY_S
            for line in self.user.says_on(self.today):
                await self.life.run(until=midnight + line.second)
                await self._say(line.says)
            await self.life.run(until=midnight + DAY_S)
            yield Day(self.today, await self._said(), await self._levels())
            self.today += 1

    async def _say(self, text: str) -> None:
        stream = self.life.memory
        await stream.commit(Entry(Heard(text=text, session=f"day {self.today}", record=""), stream.name))

    async def _said(self) -> list[tuple[Moment, str]]:
        memory, found = self.life.memory, list[tuple[Moment, str]]()
        async for row in read_log(memory.store, memory.key, self._seen, ["turn_ended"]):
            self._seen = row.seq
            found.append((row.at, getattr(row.event, "words", "")))
        return found

    async def _levels(self) -> dict[str, int]:
        columns = await self.life.memory.columns()
        codes = [code for code, kind in enumerate(KINDS) if kind in FADING]
        return {
            columns.ids[at]: int(columns.level.values[at]) if columns.forgotten.values[at] == OPEN else -1
            for at in np.flatnonzero(np.isin(columns.kind.values, codes))
        }
