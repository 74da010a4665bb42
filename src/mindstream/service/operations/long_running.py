"""Long-running operations: started, kept, resumed, cancelled.

Each row belongs to its user's stream. A forget or an erase of that user deletes it in its own transaction (see
memory/store/erasure), and the store refuses to write words back that were read before that (`words_read`).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, Protocol, TypeAlias

from pydantic import BaseModel, Field, JsonValue, ValidationError

from mindstream import chance
from mindstream.chance import token
from mindstream.clock import DAY_S, Clock, Moment
from mindstream.errors import Conflict, ErasedMeanwhile, InputError, MindstreamError, StorageError
from mindstream.location import Location
from mindstream.log.declared import NoWords, Quotes
from mindstream.log.erasures import READING, Reading
from mindstream.log.events import Event
from mindstream.log.kept import RESULT
from mindstream.log.names import StreamKey, tenant_of
from mindstream.memory.opening import open_everyone
from mindstream.memory.store.store import KeptStore, PrivacyStore
from mindstream.planning.plan import Plan
from mindstream.service.operations.principal import NotFound, Principal
from mindstream.service.operations.shapes import Reply


class OperationChanged(Event):
    """An operation began, is further, waits for a yes, or has ended: ask for it by its id."""

    kind = "operation"
    kept = False
    id: NoWords[str]
    operation: NoWords[str]
    state: NoWords[str]
    note: Quotes[str] = ""

    @classmethod
    def of(cls, one: RunningOperation) -> OperationChanged:
        """Return what there is to show of it."""
        shape = one.shape()
        note = shape.progress[-1].text if shape.progress else ""
        return cls(id=one.id, operation=one.operation, state=one.state, note=note)


State: TypeAlias = Literal["running", "waiting", "done", "failed", "cancelled", "interrupted"]


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
    """An operation as doors show it; `result` is that of the operation, where it is done.

    `interrupted`: the server ended first; `problem` says how to go on.
    """

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


KEPT_S = DAY_S
MOST = 1_000
"""So many are kept of a tenant."""
LONGEST = 1_000_000
"""Bytes; of a longer result only that it was done."""
FORGOTTEN = "words of this user were forgotten while it went on, so what it found is not kept: "
TOO_LONG = "it is done; what came of it is too long to be kept over a restart of the server"


class KeptOperation(BaseModel):
    """An operation as it is kept, and whose it is.

    Attributes:
        seen: when its server last said how it stands.
        words_read: the number of the last erasure when it began to read its user's words.
    """

    wall: str
    shape: OperationShape
    seen: Moment = 0.0
    words_read: int = 0


class OperationStore(KeptStore, PrivacyStore, Protocol):
    """What is asked of a store."""


class StoredOperations:
    """What is kept of operations in the data; each is written whole, in the order in which it changed.

    Args:
        store: gives a tenant's store.
    """

    def __init__(self, data: Location, store: Callable[[str], OperationStore]) -> None:
        self._data, self._store = data, store
        self._writing: asyncio.Task[None] | None = None

    async def last_erasure(self, tenant_key: str) -> int:
        """Return the number of the last erasure."""
        return await self._store(tenant_key).last_erasure()

    async def lost_since(self, tenant_key: str, stream: StreamKey, number: int) -> bool | None:
        """Tell whether all of a stream was erased after an erasure (True), or a part of it (False); None: nothing."""
        return await self._store(tenant_key).lost_since(stream, number)

    def keep(self, kept: KeptOperation, stream: StreamKey, lost: Callable[[bool], None]) -> asyncio.Task[None]:
        """Begin to write down how an operation stands. Where that fails it is known until the server ends.

        Args:
            lost: called where words of the user were erased meanwhile: `True` where all of them were, and nothing is
                written; else the operation is written without its words.
        """
        shape = kept.shape
        text = kept.model_dump_json()
        if len(text.encode()) > LONGEST:
            text = _without_words(kept, TOO_LONG).model_dump_json()

        async def put(store: OperationStore, name: str, at: Moment) -> None:
            try:
                await store.keep(stream, name, at, lambda _: text, kept.words_read)
            except ErasedMeanwhile as erased:
                lost(erased.whole)
                while not erased.whole:
                    bare = _without_words(kept, told_forgotten(shape.run), await store.last_erasure())
                    try:
                        await store.keep(stream, name, at, lambda _: bare.model_dump_json(), bare.words_read)  # noqa: B023
                    except ErasedMeanwhile as again:
                        lost(again.whole)
                        erased = again
                    else:
                        return

        return self._write(kept.wall, shape.id, shape.ended or shape.began, put)

    def drop(self, tenant_key: str, stream: StreamKey, id_: str) -> None:
        """Let go of one."""

        async def put(store: OperationStore, name: str, at: Moment) -> None:
            await store.keep(stream, name, at, lambda _: None)

        self._write(tenant_key, id_, 0.0, put)

    def _write(
        self, tenant_key: str, id_: str, at: Moment, put: Callable[[OperationStore, str, Moment], Awaitable[None]]
    ) -> asyncio.Task[None]:
        before = self._writing

        async def write() -> None:
            if before is not None:
                await asyncio.wait({before})
            with contextlib.suppress(StorageError):
                await put(self._store(tenant_key), f"{RESULT}{id_}", at)

        self._writing = asyncio.ensure_future(write())
        return self._writing

    async def settle(self) -> None:
        """Wait until all is written."""
        if self._writing is not None:
            await asyncio.wait({self._writing})

    async def of(self, tenant_key: str, id_: str = "") -> list[KeptOperation]:
        """Return all of a tenant, or the one of an id; what was forgotten or erased is none, whoever did it."""
        found = list[KeptOperation]()
        for each in await self._store(tenant_key).kept(None, f"{RESULT}{id_}"):
            with contextlib.suppress(ValidationError):
                found.append(KeptOperation.model_validate_json(each.value))
        return found

    async def each(self, now: Moment) -> AsyncGenerator[KeptOperation]:
        """Give those of all tenants, some in memory at a time; what is of more than a day ago is deleted, and odd."""
        async with open_everyone(self._data) as everyone:
            for first in chance.LETTERS:
                for each in await everyone.kept(None, f"{RESULT}{first}"):
                    try:
                        kept = KeptOperation.model_validate_json(each.value)
                        is_old = now - (kept.shape.ended or kept.shape.began) > KEPT_S
                    except ValidationError:
                        is_old = True
                    if is_old:
                        self.drop(tenant_of(each.stream), each.stream, each.name.removeprefix(RESULT))
                    else:
                        yield kept


def _without_words(kept: KeptOperation, why: str, words_read: int | None = None) -> KeptOperation:
    """Return an operation without its result, its progress and its questions."""
    bare = kept.shape.model_copy(update={"result": None, "progress": [], "waits_for": [], "problem": why})
    return kept.model_copy(update={"shape": bare} | ({} if words_read is None else {"words_read": words_read}))


def told_forgotten(run: str) -> str:
    """Say why nothing is kept of an operation, and what to do."""
    return FORGOTTEN + (f"resume the run {run!r}" if run else "ask for it again")


AT_ONCE = 16
"""So many run at once of a tenant; one more is refused."""
NOTES = 100
BEAT_S, DEAD_S = 15.0, 60.0
"""So often a server says that what it is at goes on, and after so long without a word it has died."""
AGAIN = "the server ended while it went on: ask for it again"
RESUMED = "the server ended while it went on: resume the run {run!r}"


@dataclass(frozen=True, slots=True)
class Decision:
    """A yes or no; `instead`: the plan that is to be run in the place of the one that was asked about."""

    yes: bool
    instead: Plan | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """Something that waits for a yes, and what says whether another plan would do."""

    wanted: Wanted
    answer: asyncio.Future[Decision]
    check: Callable[[Plan], None]


@dataclass(eq=False)
class RunningOperation:
    """An operation that goes on, or has ended.

    Attributes:
        run: the name of the plan's run, where it is one.
        problem: why it failed.
        is_cancelled: somebody has asked for its end.
        reading: since when it reads its user's words.
        is_lost: words of its user were erased after that: what it has found is not shown or kept.
        read_upto: returns the number of the last erasure.
        reads_anew: it goes on by itself where words were forgotten, with what is read anew.
    """

    id: str
    operation: str
    tenant_key: str
    user: str
    began: Moment
    clock: Clock
    tell_all: Callable[[RunningOperation], None]
    run: str = ""
    state: State = "running"
    ended: Moment | None = None
    result: JsonValue = None
    problem: str = ""
    is_cancelled: bool = False
    reading: Reading = field(default_factory=lambda: Reading(0))
    is_lost: bool = False
    read_upto: Callable[[], Awaitable[int]] | None = None
    task: asyncio.Task[None] | None = None
    reads_anew: bool = False
    _notes: deque[Note] = field(default_factory=lambda: deque(maxlen=NOTES))
    _asked: dict[str, Waiting] = field(default_factory=dict)

    def tell(self, text: str) -> None:
        """Note how far it is."""
        if self.is_lost:
            return
        self._notes.append(Note(at=self.clock.now(), text=text[:500]))
        self.tell_all(self)

    def name_run(self, run: str) -> None:
        """Say which run of a plan it is: by that it is resumed, where the server ends first."""
        self.run = run
        self.tell_all(self)

    async def ask(self, wanted: Wanted, check: Callable[[Plan], None] = lambda _: None) -> Decision:
        """Wait until somebody says yes or no.

        Args:
            check: raises InputError for a plan that cannot be run in the place of the one that is asked about.
        """
        answer: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
        self._asked[wanted.id] = Waiting(wanted, answer, check)
        self.state = "waiting"
        self.tell_all(self)
        try:
            return await answer
        finally:
            self._settle(wanted.id)

    def answer(self, yes: bool, id_: str = "", instead: Plan | None = None) -> str:
        """Say yes or no to what waits for it; return its id.

        Args:
            instead: the plan that is to be run in the place of the one that waits.

        Raises:
            NotFound: nothing waits, or not this.
            InputError: that plan cannot be run; it waits as before.
        """
        named = id_ or next(iter(self._asked), "")
        if named not in self._asked:
            raise NotFound("nothing of that id waits for a yes")
        waiting = self._asked[named]
        if instead is not None:
            if waiting.wanted.what != "plan":
                raise InputError(f"{named} is a call, and no plan: say yes or no to it")
            waiting.check(instead)
        if not waiting.answer.done():
            waiting.answer.set_result(Decision(yes, instead))
        self._settle(named)
        return named

    def _settle(self, id_: str) -> None:
        self._asked.pop(id_, None)
        if self.ended is None:
            self.state = "waiting" if self._asked else "running"

    def shape(self) -> OperationShape:
        """Return it as doors show it."""
        return OperationShape(
            id=self.id,
            operation=self.operation,
            user=self.user,
            run=self.run,
            state=self.state,
            began=self.began,
            ended=self.ended,
            progress=list(self._notes),
            waits_for=[each.wanted for each in self._asked.values()],
            result=self.result,
            problem=self.problem[:2_000],
        )

    @classmethod
    def restored(cls, kept: KeptOperation, clock: Clock) -> RunningOperation:
        """Return one as another server, or one before this one, has written it down."""
        shape = kept.shape
        one = cls(
            shape.id,
            shape.operation,
            kept.wall,
            shape.user,
            shape.began,
            clock,
            lambda _: None,
            shape.run,
            shape.state,
            shape.ended,
            shape.result,
            shape.problem,
            reading=Reading(kept.words_read),
        )
        one._notes.extend(shape.progress)
        return one

    def interrupt(self) -> None:
        """Note that the server ended before it did."""
        self.state, self.ended = "interrupted", self.clock.now()
        self.problem = RESUMED.format(run=self.run) if self.run else AGAIN

    @contextlib.contextmanager
    def reading_anew(self) -> Iterator[Callable[[], Awaitable[None]]]:
        """Let it go on though words of its user are forgotten: its job reads anew where a commit is refused.

        Gives what the job calls before it does so.
        """

        async def read_anew() -> None:
            if self.read_upto is not None:
                self.reading.upto = await self.read_upto()

        self.reads_anew = True
        try:
            yield read_anew
        finally:
            self.reads_anew = False

    def lose(self, *, whole: bool) -> None:
        """Break it off and let go of what it has found: words of its user were erased."""
        self._notes.clear()
        if self.reads_anew and not whole:
            return
        self.is_lost, self.result = True, None
        self._asked.clear()
        if self.task is not None and not self.task.done():
            self.task.cancel()
        elif self.ended is not None:
            self.problem = told_forgotten(self.run)


Job: TypeAlias = Callable[[RunningOperation], Awaitable[BaseModel]]


class RunningOperations:
    """Those that go on here, or ended here within a day; those of other servers are read from the store each time."""

    def __init__(
        self,
        clock: Clock,
        tell_all: Callable[[RunningOperation], None],
        kept: StoredOperations,
        stream_of: Callable[[str, str], StreamKey],
    ) -> None:
        self._clock, self._tell_all, self._kept, self._stream_of = clock, tell_all, kept, stream_of
        self._held: dict[str, RunningOperation] = {}
        self._written: dict[str, tuple[State, str]] = {}
        self._looked: dict[str, tuple[Moment, float]] = {}
        """When what goes on elsewhere was last said to, and since when it is known here: clocks need not agree."""

    async def restore(self, *, alone: bool) -> None:
        """Look at what servers have kept; what goes on by none is interrupted.

        Args:
            alone: no other server has these data.
        """
        async with contextlib.aclosing(self._kept.each(self._clock.now())) as kept:
            async for each in kept:
                self._restored(each, alone=alone)

    async def beat(self) -> None:
        """Say, again and again, that what goes on here does, until this is cancelled."""
        while True:
            await asyncio.sleep(BEAT_S)
            for each in [each for each in self._held.values() if each.ended is None]:
                self._keep(each)

    def _restored(self, kept: KeptOperation, *, alone: bool = False) -> RunningOperation:
        """Return another server's; where nothing was heard of it for long, that server has died."""
        one, now = RunningOperation.restored(kept, self._clock), self._clock.elapsed()
        if one.ended is None:
            seen, since = self._looked.get(one.id, (kept.seen, now))
            self._looked[one.id] = (kept.seen, since if seen == kept.seen else now)
            if alone or (seen == kept.seen and now - since > DEAD_S):
                one.interrupt()
                self._write(one)
        if one.ended is not None:
            self._looked.pop(one.id, None)
        return one

    def _changed(self, one: RunningOperation) -> None:
        self._write(one)
        self._tell_all(one)

    def _write(self, one: RunningOperation) -> asyncio.Task[None] | None:
        """Write it down where its state is another; each line of progress is not worth a row."""
        stands = (one.state, one.run)
        if self._written.get(one.id) == stands:
            return None
        self._written[one.id] = stands
        return self._keep(one)

    def _keep(self, one: RunningOperation) -> asyncio.Task[None]:
        kept = KeptOperation(
            wall=one.tenant_key, shape=one.shape(), seen=self._clock.now(), words_read=one.reading.upto
        )
        return self._kept.keep(
            kept, self._stream_of(one.tenant_key, one.user), lambda whole: self._lose(one, whole=whole)
        )

    def _lose(self, one: RunningOperation, *, whole: bool) -> None:
        """Break an operation off whose user's words were erased; nothing is left of one that has ended."""
        has_ended = one.ended is not None
        one.lose(whole=whole)
        if (whole or has_ended) and self._held.get(one.id) is one:
            del self._held[one.id]
            self._written.pop(one.id, None)

    async def check(self, stream: StreamKey) -> None:
        """Break off what read words of a stream that were erased since, and let go of its results.

        What the store keeps of them went in the same transaction. An operation that forgets something itself goes on.
        """
        for one in self._reading(stream):
            await self._check(one)

    def _reading(self, stream: StreamKey) -> list[RunningOperation]:
        return [one for one in self._held.values() if self._stream_of(one.tenant_key, one.user) == stream]

    async def _check(self, one: RunningOperation) -> None:
        stream = self._stream_of(one.tenant_key, one.user)
        if (
            not one.is_lost
            and (lost := await self._kept.lost_since(one.tenant_key, stream, one.reading.upto)) is not None
        ):
            self._lose(one, whole=lost)

    async def settle(self) -> None:
        """Wait until all is written down."""
        await self._kept.settle()

    async def begin(
        self, name: str, principal: Principal, job: Job, start: Callable[[Any], asyncio.Task[None]]
    ) -> RunningOperation:
        """Begin one; `start` lets a coroutine go on.

        Raises:
            Conflict: too many of this tenant's go on.
        """
        upto = await self._kept.last_erasure(principal.tenant_key)  # before anything is read
        self._tidy()
        ours = [each for each in self._held.values() if each.tenant_key == principal.tenant_key]
        if sum(each.ended is None for each in ours) >= AT_ONCE:
            raise Conflict(f"{AT_ONCE} operations go on already: wait for one, or cancel one")
        user = principal.user or principal.only_normal
        one = RunningOperation(
            token(20), name, principal.tenant_key, user, self._clock.now(), self._clock, self._changed
        )
        one.reading, one.read_upto = Reading(upto), partial(self._kept.last_erasure, principal.tenant_key)
        self._held[one.id] = one
        if (written := self._write(one)) is not None:
            await asyncio.wait({written})
        one.task = start(self._run(one, job))
        return one

    async def _run(self, one: RunningOperation, job: Job) -> None:
        READING.set(one.reading)
        try:
            one.result = (await job(one)).model_dump(mode="json")
            one.state = "done"
        except asyncio.CancelledError:
            one.state = "cancelled"
            if not one.is_cancelled:
                one.interrupt()
            raise
        except Exception as error:
            one.state = "failed"
            one.problem = str(error) if isinstance(error, MindstreamError) else "it is our fault"
            one.is_lost = one.is_lost or isinstance(error, ErasedMeanwhile)
            if not isinstance(error, MindstreamError):
                raise
        finally:
            one.ended = one.ended or self._clock.now()
            if one.is_lost:
                one.state, one.result = "interrupted", None
                one.problem = told_forgotten(one.run)
            if one.id in self._held:
                self._changed(one)

    async def find(self, principal: Principal, id_: str) -> RunningOperation:
        """Return one of whoever asks; how it stands is written down by then.

        Raises:
            NotFound: there is none; another tenant's, or another user's, is none.
        """
        await self._kept.settle()
        if (held := self._held.get(id_)) is not None:
            await self._check(held)
        one = self._held.get(id_) or next(map(self._restored, await self._kept.of(principal.tenant_key, id_)), None)
        if one is None or one.id != id_ or one.tenant_key != principal.tenant_key or not _is_of(one, principal):
            raise NotFound(f"there is no operation {id_!r} here: its result is kept a day")
        return one

    async def of(self, principal: Principal) -> list[RunningOperation]:
        """Return all of whoever asks, the newest first; how they stand is written down by then."""
        await self._kept.settle()
        for each in self._of(principal):
            await self._check(each)
        others = [each for each in await self._kept.of(principal.tenant_key) if each.shape.id not in self._held]
        found = [*self._of(principal), *(one for one in map(self._restored, others) if _is_of(one, principal))]
        return sorted(found, key=lambda each: -each.began)

    def _of(self, principal: Principal) -> list[RunningOperation]:
        return [
            each
            for each in reversed(self._held.values())
            if each.tenant_key == principal.tenant_key and _is_of(each, principal)
        ]

    def each(self) -> list[RunningOperation]:
        """Return those of this server, of all tenants."""
        return list(self._held.values())

    def going_on(self, principal: Principal) -> list[RunningOperation]:
        """Return what of whoever asks has not ended."""
        return [each for each in self._of(principal) if each.ended is None]

    def of_run(self, principal: Principal, run: str) -> RunningOperation | None:
        """Return the operation that is at a run of a plan of this user, if one is."""
        return next((each for each in self.going_on(principal) if each.run == run), None)

    async def cancel(self, one: RunningOperation) -> None:
        """Break it off, and wait until it has ended and that is written down.

        Raises:
            Conflict: another server is at it.
        """
        if one.ended is None and one.task is None:
            raise Conflict("another server is at it, and can break it off")
        if one.task is not None and not one.task.done():
            one.is_cancelled = True
            one.task.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await asyncio.wait({one.task}, timeout=30)
            await self._kept.settle()

    def _tidy(self) -> None:
        """Let go of what ended a day ago, and of the oldest beyond MOST of a tenant."""
        now, counts = self._clock.now(), Counter[str]()
        for each in reversed([each for each in self._held.values() if each.ended is not None]):
            counts[each.tenant_key] += 1
            if now - (each.ended or now) > KEPT_S or counts[each.tenant_key] > MOST:
                self._drop(each)

    def _drop(self, one: RunningOperation) -> None:
        self._kept.drop(one.tenant_key, self._stream_of(one.tenant_key, one.user), one.id)
        self._written.pop(one.id, None)
        del self._held[one.id]


def _is_of(one: RunningOperation, principal: Principal) -> bool:
    return principal.only_normal in ("", one.user) and principal.user in ("", one.user)
