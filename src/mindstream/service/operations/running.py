"""What takes its time: an id at once, progress, questions that wait for a yes, an end that is kept for a day."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, Field, JsonValue

from mindstream.chance import token
from mindstream.clock import DAY_S, Clock, Moment
from mindstream.errors import Conflict, MindstreamError
from mindstream.service.operations.refusals import NotFound
from mindstream.service.operations.shapes import Reply
from mindstream.service.operations.who import Who

State: TypeAlias = Literal["running", "waiting", "done", "failed", "cancelled"]
KEPT_S = DAY_S
MOST, AT_ONCE = 1_000, 16
"""So many are kept of a tenant, and so many run at once; one more is refused."""
NOTES = 100


class Note(Reply):
    """A line of progress."""

    at: Moment
    text: str


class Wanted(Reply):
    """Something that waits for a yes: a plan before it is run, a call that changes the world."""

    id: str
    what: Literal["plan", "call"]
    text: str
    data: dict[str, JsonValue] = Field({})


class OperationShape(Reply):
    """An operation as doors show it; `result` is that of the operation, where it is done."""

    id: str
    operation: str
    user: str = ""
    run: str = ""
    state: State
    began: Moment
    ended: Moment | None = None
    progress: list[Note] = Field([])
    waits_for: list[Wanted] = Field([])
    result: JsonValue = None
    problem: str = ""


@dataclass(eq=False)
class Running:
    """An operation that goes on, or has ended.

    Attributes:
        run: the name of the plan's run, where it is one.
        error: why it failed.
    """

    id: str
    operation: str
    wall: str
    user: str
    began: Moment
    clock: Clock
    tell_all: Callable[[Running], None]
    run: str = ""
    state: State = "running"
    ended: Moment | None = None
    result: BaseModel | None = None
    error: BaseException | None = None
    task: asyncio.Task[None] | None = None
    _notes: deque[Note] = field(default_factory=lambda: deque(maxlen=NOTES))
    _asked: dict[str, tuple[Wanted, asyncio.Future[bool]]] = field(default_factory=dict)

    def tell(self, text: str) -> None:
        """Note how far it is."""
        self._notes.append(Note(at=self.clock.now(), text=text[:500]))
        self.tell_all(self)

    async def ask(self, wanted: Wanted) -> bool:
        """Wait until somebody says yes or no."""
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._asked[wanted.id] = (wanted, answer)
        self.state = "waiting"
        self.tell_all(self)
        try:
            return await answer
        finally:
            self._settle(wanted.id)

    def answer(self, yes: bool, id_: str = "") -> str:
        """Say yes or no to what waits for it; return its id.

        Raises:
            NotFound: nothing waits, or not this.
        """
        named = id_ or next(iter(self._asked), "")
        if named not in self._asked:
            raise NotFound("nothing of that id waits for a yes")
        _, answer = self._asked[named]
        if not answer.done():
            answer.set_result(yes)
        self._settle(named)
        return named

    def _settle(self, id_: str) -> None:
        self._asked.pop(id_, None)
        if self.ended is None:
            self.state = "waiting" if self._asked else "running"

    def shape(self) -> OperationShape:
        """Return it as doors show it."""
        problem = ""
        if self.error is not None:
            problem = str(self.error) if isinstance(self.error, MindstreamError) else "it is our fault"
        return OperationShape(
            id=self.id, operation=self.operation, user=self.user, run=self.run, state=self.state, began=self.began,
            ended=self.ended, progress=list(self._notes), waits_for=[wanted for wanted, _ in self._asked.values()],
            result=self.result.model_dump(mode="json") if self.result is not None else None, problem=problem[:2_000],
        )  # fmt: skip


Job: TypeAlias = Callable[[Running], Awaitable[BaseModel]]


class RunningOperations:
    """All that go on, or ended within a day, of all tenants; a restart forgets them, not what they did."""

    def __init__(self, clock: Clock, tell_all: Callable[[Running], None]) -> None:
        self._clock, self._tell_all = clock, tell_all
        self._held: dict[str, Running] = {}

    def begin(self, name: str, who: Who, job: Job, start: Callable[[Any], asyncio.Task[None]]) -> Running:
        """Begin one; `start` lets a coroutine go on.

        Raises:
            Conflict: too many of this tenant's go on.
        """
        self._tidy()
        ours = [each for each in self._held.values() if each.wall == who.wall]
        if sum(each.ended is None for each in ours) >= AT_ONCE:
            raise Conflict(f"{AT_ONCE} operations go on already: wait for one, or cancel one")
        one = Running(token(20), name, who.wall, who.user, self._clock.now(), self._clock, self._tell_all)
        self._held[one.id] = one
        one.task = start(self._run(one, job))
        return one

    async def _run(self, one: Running, job: Job) -> None:
        try:
            one.result = await job(one)
            one.state = "done"
        except asyncio.CancelledError:
            one.state = "cancelled"
            raise
        except Exception as error:
            one.state, one.error = "failed", error
            if not isinstance(error, MindstreamError):
                raise
        finally:
            one.ended = self._clock.now()
            self._tell_all(one)

    def find(self, who: Who, id_: str) -> Running:
        """Return one of whoever asks.

        Raises:
            NotFound: there is none; another tenant's, or another user's, is none.
        """
        one = self._held.get(id_)
        if one is None or one.wall != who.wall or (who.only and one.user != who.only):
            raise NotFound(f"there is no operation {id_!r} here: its result is kept a day, and not over a restart")
        return one

    def of(self, who: Who) -> list[Running]:
        """Return all of whoever asks, the newest first."""
        ours = [each for each in self._held.values() if each.wall == who.wall and who.only in ("", each.user)]
        return [each for each in reversed(ours) if who.user in ("", each.user)]

    def each(self) -> list[Running]:
        """Return all of them, of all tenants."""
        return list(self._held.values())

    def of_run(self, who: Who, run: str) -> Running | None:
        """Return the operation that is at a run of a plan of this user, if one is."""
        return next((each for each in self.of(who) if each.run == run and each.ended is None), None)

    async def cancel(self, one: Running) -> None:
        """Break it off, and wait until it has ended."""
        if one.task is not None and not one.task.done():
            one.task.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await asyncio.wait({one.task}, timeout=30)

    def forget(self, who: Who) -> None:
        """Let go of what came of a user's operations: words that were forgotten may stand in it."""
        for each in self.of(who):
            if each.ended is not None:
                del self._held[each.id]

    def _tidy(self) -> None:
        """Let go of what ended a day ago, and of the oldest beyond MOST."""
        now = self._clock.now()
        ended = [each for each in self._held.values() if each.ended is not None]
        for place, each in enumerate(ended):
            if now - (each.ended or now) > KEPT_S or len(ended) - place > MOST:
                del self._held[each.id]
