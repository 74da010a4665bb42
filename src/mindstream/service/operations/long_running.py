"""Long-running operations: how they are started, stored, interrupted and cancelled.

A stored operation belongs to its user's stream. If words of that user are forgotten or erased, the same transaction
deletes the stored operation (see memory/store/erasure). From then on the store refuses to write the operation with
words that it had read before that transaction; `words_read` records when it began to read.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypeAlias

from pydantic import BaseModel, JsonValue, ValidationError

from mindstream import chance
from mindstream.chance import token
from mindstream.clock import DAY_S, Clock, Moment
from mindstream.errors import Conflict, ErasedMeanwhile, InputError, MindstreamError, StorageError
from mindstream.identifiers import StreamKey, tenant_of
from mindstream.location import Location
from mindstream.log.declared import Name, Quotes
from mindstream.log.erasures import READING, Reading
from mindstream.log.events import Event
from mindstream.memory.opening import open_everyone
from mindstream.memory.store.store import RESULT, KeptStore, PrivacyStore
from mindstream.planning.plan import Plan
from mindstream.service.operations.operation import Note, NotFound, OperationShape, Principal, State, Wanted

KEPT_S = DAY_S
"""Seconds for which an ended operation is kept."""
MAX_KEPT = 1_000
"""Maximum number of ended operations that are kept per tenant."""
MAX_RESULT = 1_000_000
"""Maximum bytes of a stored operation; a larger one is stored without its result, progress and pending approvals."""
MAX_AT_ONCE = 16
"""Maximum number of operations that run at the same time per tenant; a further request is refused."""
MAX_NOTES = 100
"""Maximum number of progress lines that are kept per operation."""
BEAT_S, DEAD_S = 15.0, 60.0
"""BEAT_S: interval of heartbeats, in seconds. DEAD_S: time without a heartbeat after which the server of an operation
counts as dead, in seconds."""
FORGOTTEN = "words of this user were forgotten while the operation was running, so its result is not kept: "
TOO_LONG = "the details of the operation are too large to be stored: only the server that runs it, or ran it, has them"
AGAIN = "the server ended while the operation was running: request it again"
RESUMED = "the server ended while the operation was running: resume the run {run!r}"


class OperationChanged(Event):
    """An operation began, made progress, waits for an approval, or ended; get the details with `operations.get`."""

    kind = "operation"
    kept = False
    id: Name
    operation: Name
    state: Name
    note: Quotes[str] = ""

    @classmethod
    def of(cls, one: RunningOperation) -> OperationChanged:
        """Return the event of an operation's state."""
        progress = one.shape().progress
        note = progress[-1].text if progress else ""
        return cls(id=one.id, operation=one.operation, state=one.state, note=note)


class KeptOperation(BaseModel):
    """An operation as it is stored.

    Attributes:
        seen: the time of the last heartbeat of the server that runs it.
        words_read: the number of the newest erasure at the time when the operation began to read its user's words.
    """

    shape: OperationShape
    seen: Moment = 0.0
    words_read: int = 0


class OperationStore(KeptStore, PrivacyStore, Protocol):
    """The store methods that stored operations use."""


class StoredOperations:
    """The stored operations. Each change writes the whole operation, in the order of the changes.

    Args:
        data: the location of the server's data.
        store: returns a tenant's store.
    """

    def __init__(self, data: Location, store: Callable[[str], OperationStore]) -> None:
        self._data, self.store = data, store
        self._writing: asyncio.Task[None] | None = None

    def keep(self, kept: KeptOperation, stream: StreamKey, lost: Callable[[bool], None]) -> asyncio.Task[None]:
        """Begin to write an operation; one of more than MAX_RESULT bytes is written without its words. If the write
        fails, the operation is known only until this server ends.

        Args:
            lost: called if words of the user were erased. With the argument True, all of the user's data were erased,
                and nothing is written. With False, the operation is written without its words.
        """
        shape = kept.shape
        if len(kept.model_dump_json().encode()) > MAX_RESULT:
            kept = _without_words(kept, TOO_LONG)

        async def put(store: OperationStore, name: str) -> None:
            now = kept
            while True:
                text = now.model_dump_json()
                try:
                    await store.keep(stream, name, shape.ended or shape.began, lambda _: text, now.words_read)  # noqa: B023
                    return
                except ErasedMeanwhile as erased:
                    lost(erased.whole)
                    if erased.whole:
                        return
                now = _without_words(kept, forgotten(shape.run), await store.last_erasure())

        return self._write(stream, shape.id, put)

    def drop(self, stream: StreamKey, id_: str) -> None:
        """Begin to delete an operation in the background."""

        async def put(store: OperationStore, name: str) -> None:
            await store.keep(stream, name, 0.0, lambda _: None)

        self._write(stream, id_, put)

    def _write(
        self, stream: StreamKey, id_: str, put: Callable[[OperationStore, str], Awaitable[None]]
    ) -> asyncio.Task[None]:
        before = self._writing

        async def write() -> None:
            if before is not None:
                await asyncio.wait({before})
            with contextlib.suppress(StorageError):
                await put(self.store(tenant_of(stream)), f"{RESULT}{id_}")

        self._writing = asyncio.ensure_future(write())
        return self._writing

    async def settle(self) -> None:
        """Wait until everything is written."""
        if self._writing is not None:
            await asyncio.wait({self._writing})

    async def of(self, tenant_key: str, id_: str = "") -> list[KeptOperation]:
        """Return all operations of a tenant, or the one with an id."""
        found = list[KeptOperation]()
        for each in await self.store(tenant_key).kept(None, f"{RESULT}{id_}"):
            with contextlib.suppress(ValidationError):
                found.append(KeptOperation.model_validate_json(each.value))
        return found

    async def each(self, now: Moment) -> AsyncGenerator[tuple[str, KeptOperation]]:
        """Yield the operations of all tenants, each with its tenant. Delete unreadable operations, and operations that
        ended more than KEPT_S ago."""
        async with open_everyone(self._data) as everyone:
            for first in chance.LETTERS:  # by the first letter of the id, so that not all are in memory at once
                for each in await everyone.kept(None, f"{RESULT}{first}"):
                    try:
                        kept = KeptOperation.model_validate_json(each.value)
                        is_old = now - (kept.shape.ended or now) > KEPT_S
                    except ValidationError:
                        is_old = True
                    if is_old:
                        self.drop(each.stream, each.name.removeprefix(RESULT))
                    else:
                        yield tenant_of(each.stream), kept


def _without_words(kept: KeptOperation, why: str, words_read: int | None = None) -> KeptOperation:
    """Return an operation without result, progress and pending approvals. `why`: the text of its `problem`."""
    bare = kept.shape.model_copy(update={"result": None, "progress": [], "waits_for": [], "problem": why})
    upto = kept.words_read if words_read is None else words_read
    return KeptOperation(shape=bare, seen=kept.seen, words_read=upto)


def forgotten(run: str) -> str:
    """Return the message that the result of an operation is not kept, and what to do. `run`: the run of the plan; "":
    the operation runs no plan."""
    return FORGOTTEN + (f"resume the run {run!r}" if run else "request it again")


@dataclass(frozen=True, slots=True)
class Decision:
    """An approval or refusal. `instead`: the plan to run in place of the proposed plan."""

    yes: bool
    instead: Plan | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """A plan or call that waits for a decision; `check` raises InputError if a replacement plan cannot be run."""

    wanted: Wanted
    answer: asyncio.Future[Decision]
    check: Callable[[Plan], None]


@dataclass(eq=False)
class RunningOperation:
    """An operation that is running, or has ended.

    Attributes:
        user: the user that the operation is about; "": no user.
        on_change: called after each change.
        run: the name of the plan's run, if the operation runs a plan.
        problem: the reason for which the operation failed.
        is_cancelled: a client has cancelled it.
        reading: holds the number of the newest erasure at the time when the operation began to read the user's words.
        is_lost: words of the user were erased after the operation began to read; the result is neither shown nor
            stored.
        last_erasure: returns the number of the last erasure.
        task: the task that runs the operation; None: another server runs it, or it was restored from the store.
        rereads: the operation continues even if words of the user are forgotten, because it then reads the log again.
    """

    id: str
    operation: str
    tenant_key: str
    user: str
    began: Moment
    clock: Clock
    on_change: Callable[[RunningOperation], None]
    run: str = ""
    state: State = "running"
    ended: Moment | None = None
    result: JsonValue = None
    problem: str = ""
    is_cancelled: bool = False
    reading: Reading = field(default_factory=lambda: Reading(0))
    is_lost: bool = False
    last_erasure: Callable[[], Awaitable[int]] | None = None
    task: asyncio.Task[None] | None = None
    rereads: bool = False
    _notes: deque[Note] = field(default_factory=lambda: deque(maxlen=MAX_NOTES))
    _asked: dict[str, Waiting] = field(default_factory=dict)

    def report(self, text: str) -> None:
        """Add a line of progress."""
        if not self.is_lost:
            self._notes.append(Note(at=self.clock.now(), text=text[:500]))
            self.on_change(self)

    def name_run(self, run: str) -> None:
        """Set the name of the plan's run, by which it can be resumed if the server ends first."""
        self.run = run
        self.on_change(self)

    async def ask(self, wanted: Wanted, check: Callable[[Plan], None] = lambda _: None) -> Decision:
        """Ask for an approval, and wait for the decision.

        Args:
            wanted: the plan or call that needs an approval.
            check: raises InputError if a replacement plan cannot be run.
        """
        answer: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
        self._asked[wanted.id] = Waiting(wanted, answer, check)
        self.state = "waiting"
        self.on_change(self)
        try:
            return await answer
        finally:
            self._settle(wanted.id)

    def answer(self, yes: bool, id_: str = "", instead: Plan | None = None) -> str:
        """Approve or refuse a pending plan or call; return its id.

        Args:
            id_: the id of the plan or call; "": the first that waits.
            instead: the plan to run in place of the one that waits.

        Raises:
            NotFound: no plan or call with this id waits.
            InputError: the replacement plan cannot be run; or a tool call waits, which no plan can replace. The
                operation continues to wait.
        """
        named = id_ or next(iter(self._asked), "")
        if named not in self._asked:
            which = f" {id_!r:.99}" if id_ else ""
            raise NotFound(f"no plan or call{which} of this operation waits for an approval")
        waiting = self._asked[named]
        if instead is not None:
            if waiting.wanted.what != "plan":
                raise InputError(f"{named} is a tool call, so no other plan can replace it: approve or refuse it")
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
        """Return the operation as a reply."""
        waits_for = [each.wanted for each in self._asked.values()]
        return OperationShape.from_object(
            self, progress=list(self._notes), waits_for=waits_for, problem=self.problem[:2_000]
        )

    @classmethod
    def restored(cls, tenant_key: str, kept: KeptOperation, clock: Clock) -> RunningOperation:
        """Return an operation that another server stored, or this one before its restart."""
        values = dict(kept.shape)
        notes, _ = values.pop("progress"), values.pop("waits_for")
        reading = Reading(kept.words_read)
        one = cls(**values, tenant_key=tenant_key, clock=clock, on_change=lambda _: None, reading=reading)
        one._notes.extend(notes)
        return one

    def interrupt(self) -> None:
        """Mark the operation as interrupted by the end of its server."""
        self.state, self.ended = "interrupted", self.clock.now()
        self.problem = RESUMED.format(run=self.run) if self.run else AGAIN

    @contextlib.contextmanager
    def rereading(self) -> Iterator[Callable[[], Awaitable[None]]]:
        """Let the operation continue if words of its user are forgotten.

        The store then refuses the job's next commit, and the job reads the log again.

        Yields:
            An async function that the job calls before it reads the log again.
        """

        async def reread() -> None:
            if self.last_erasure is not None:
                self.reading.upto = await self.last_erasure()

        self.rereads = True
        try:
            yield reread
        finally:
            self.rereads = False

    def lose(self, *, whole: bool) -> None:
        """Cancel the operation and drop its result, because words of its user were erased.

        Args:
            whole: all data of the user were erased. Otherwise an operation inside a `with` block of `rereading`
                continues.
        """
        self._notes.clear()
        if self.rereads and not whole:
            return
        self.is_lost, self.result = True, None
        self._asked.clear()
        if self.task is not None and not self.task.done():
            self.task.cancel()
        elif self.ended is not None:
            self.problem = forgotten(self.run)

    def is_of(self, principal: Principal) -> bool:
        """Return whether a principal may see this operation."""
        is_users = principal.only in ("", self.user) and principal.user in ("", self.user)
        return self.tenant_key == principal.tenant_key and is_users


Job: TypeAlias = Callable[[RunningOperation], Awaitable[BaseModel]]


class RunningOperations:
    """The long-running operations. Those of this server are in memory; those of others are read from the store."""

    def __init__(
        self,
        clock: Clock,
        on_change: Callable[[RunningOperation], None],
        stored: StoredOperations,
        stream_of: Callable[[str, str], StreamKey],
    ) -> None:
        self._clock, self._on_change, self._stored, self._stream_of = clock, on_change, stored, stream_of
        self._held: dict[str, RunningOperation] = {}
        self._written: dict[str, tuple[State, str]] = {}
        self._heartbeats: dict[str, tuple[Moment, float]] = {}
        """For each operation of another server: its last heartbeat (by that server's clock), and when this server first
        read that heartbeat (by its own clock). The clocks may differ, so only the second time is compared."""

    async def restore(self, *, alone: bool) -> None:
        """Mark as interrupted the operations that no server runs any more.

        Args:
            alone: no other server uses these data, so every operation that has not ended was interrupted.
        """
        async with contextlib.aclosing(self._stored.each(self._clock.now())) as stored:
            async for tenant_key, kept in stored:
                self._restored(tenant_key, kept, alone=alone)

    async def beat(self) -> None:
        """Every BEAT_S seconds, store a heartbeat of the operations that run here; runs until it is cancelled."""
        while True:
            await asyncio.sleep(BEAT_S)
            for each in [each for each in self._held.values() if each.ended is None]:
                self._keep(each)

    def _restored(self, tenant_key: str, kept: KeptOperation, *, alone: bool = False) -> RunningOperation:
        """Return an operation from the store.

        Mark the operation as interrupted if it has not ended but its server has: the server's heartbeat has stopped, or
        no other server uses the data (`alone`).
        """
        one, now = RunningOperation.restored(tenant_key, kept, self._clock), self._clock.elapsed()
        if one.ended is None:
            seen, since = self._heartbeats.get(one.id, (kept.seen, now))
            self._heartbeats[one.id] = (kept.seen, since if seen == kept.seen else now)
            if alone or (seen == kept.seen and now - since > DEAD_S):
                one.interrupt()
                self._write(one)
        if one.ended is not None:
            self._heartbeats.pop(one.id, None)
        return one

    def _changed(self, one: RunningOperation) -> None:
        self._write(one)
        self._on_change(one)

    def _write(self, one: RunningOperation) -> asyncio.Task[None] | None:
        """Begin to store an operation if its state or its run has changed, and return the task that stores it.

        Return None if neither has changed: new progress is stored with the next heartbeat.
        """
        current = (one.state, one.run)
        if self._written.get(one.id) == current:
            return None
        self._written[one.id] = current
        return self._keep(one)

    def _keep(self, one: RunningOperation) -> asyncio.Task[None]:
        kept = KeptOperation(shape=one.shape(), seen=self._clock.now(), words_read=one.reading.upto)
        return self._stored.keep(kept, self._stream(one), lambda whole: self._lose(one, whole=whole))

    def _stream(self, one: RunningOperation) -> StreamKey:
        return self._stream_of(one.tenant_key, one.user)

    def _lose(self, one: RunningOperation, *, whole: bool) -> None:
        """Cancel an operation whose user's words were erased. Remove the operation if it had already ended, or if all
        data of the user were erased (`whole`)."""
        has_ended = one.ended is not None
        one.lose(whole=whole)
        if (whole or has_ended) and self._held.get(one.id) is one:
            del self._held[one.id]
            self._written.pop(one.id, None)

    async def check(self, stream: StreamKey) -> None:
        """Cancel the operations that had read words of a stream before these were erased, and drop their results.

        The erasure's transaction has deleted their stored rows already. An operation inside a `with` block of
        `rereading` continues, unless all data of the user were erased.
        """
        for one in [one for one in self._held.values() if self._stream(one) == stream]:
            await self._check(one)

    async def _check(self, one: RunningOperation) -> None:
        store = self._stored.store(one.tenant_key)
        if not one.is_lost and (lost := await store.lost_since(self._stream(one), one.reading.upto)) is not None:
            self._lose(one, whole=lost)

    async def settle(self) -> None:
        """Wait until all states of operations are stored."""
        await self._stored.settle()

    async def begin(
        self, name: str, principal: Principal, job: Job, start: Callable[[Any], asyncio.Task[None]]
    ) -> RunningOperation:
        """Begin an operation, and return it as soon as it is stored.

        Args:
            name: the operation's name.
            job: the work; it returns the operation's result.
            start: runs a coroutine in the background.

        Raises:
            Conflict: too many operations of this tenant are running.
        """
        tenant_key, user = principal.tenant_key, principal.user or principal.only
        last_erasure = self._stored.store(tenant_key).last_erasure
        upto = await last_erasure()  # before the job reads texts of users, so that each later erasure is noticed
        self._tidy()
        if sum(each.ended is None for each in self._held.values() if each.tenant_key == tenant_key) >= MAX_AT_ONCE:
            raise Conflict(
                f"{MAX_AT_ONCE} operations of this tenant are running already, which is the maximum: wait until one"
                " ends, or cancel one"
            )
        one = RunningOperation(token(20), name, tenant_key, user, self._clock.now(), self._clock, self._changed)
        one.reading, one.last_erasure = Reading(upto), last_erasure
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
            one.problem = str(error) if isinstance(error, MindstreamError) else "internal error"
            one.is_lost = one.is_lost or isinstance(error, ErasedMeanwhile)
            if not isinstance(error, MindstreamError):
                raise
        finally:
            one.ended = one.ended or self._clock.now()
            if one.is_lost:
                one.state, one.result = "interrupted", None
                one.problem = forgotten(one.run)
            if one.id in self._held:
                self._changed(one)

    async def find(self, principal: Principal, id_: str) -> RunningOperation:
        """Return an operation by its id; first wait until all states of operations are stored.

        Raises:
            NotFound: the principal has no operation with this id.
        """
        await self._stored.settle()
        if (held := self._held.get(id_)) is not None:
            await self._check(held)
        one = self._held.get(id_)
        if one is None and (kept := await self._stored.of(principal.tenant_key, id_)):
            one = self._restored(principal.tenant_key, kept[0])
        if one is None or one.id != id_ or not one.is_of(principal):
            raise NotFound(
                f"you have no operation {id_!r}: the id is wrong, or the operation has ended and is no longer kept"
            )
        return one

    async def of(self, principal: Principal) -> list[RunningOperation]:
        """Wait until all pending states are stored, then return all operations of a principal, newest first."""
        await self._stored.settle()
        for each in self._of(principal):
            await self._check(each)
        tenant_key = principal.tenant_key
        others = [each for each in await self._stored.of(tenant_key) if each.shape.id not in self._held]
        restored = map(partial(self._restored, tenant_key), others)
        found = [*self._of(principal), *(one for one in restored if one.is_of(principal))]
        return sorted(found, key=lambda each: -each.began)

    def _of(self, principal: Principal) -> list[RunningOperation]:
        return [each for each in reversed(self._held.values()) if each.is_of(principal)]

    def each(self) -> list[RunningOperation]:
        """Return the operations of this server, for all tenants."""
        return list(self._held.values())

    def of_run(self, principal: Principal, run: str) -> RunningOperation | None:
        """Return the principal's running operation that executes the plan run `run`. If there is none, return the
        running operation whose id is `run`, or None."""
        running = [each for each in self._of(principal) if each.ended is None]
        named = [each for each in running if each.run == run] or [each for each in running if each.id == run]
        return named[0] if named else None

    async def cancel(self, one: RunningOperation) -> None:
        """Cancel an operation. Wait until it has ended (at most 30 seconds) and its state is stored.

        Raises:
            Conflict: another server runs the operation.
        """
        if one.ended is None and one.task is None:
            raise Conflict("another server runs this operation: send the cancel request to that server")
        if one.task is not None and not one.task.done():
            one.is_cancelled = True
            one.task.cancel()
            await asyncio.wait({one.task}, timeout=30)
            await self._stored.settle()

    def _tidy(self) -> None:
        """Delete operations that ended more than KEPT_S ago, and the oldest ones beyond MAX_KEPT per tenant."""
        now, counts = self._clock.now(), Counter[str]()
        for each in reversed([each for each in self._held.values() if each.ended is not None]):
            counts[each.tenant_key] += 1
            if now - (each.ended or now) > KEPT_S or counts[each.tenant_key] > MAX_KEPT:
                self._stored.drop(self._stream(each), each.id)
                self._written.pop(each.id, None)
                del self._held[each.id]
