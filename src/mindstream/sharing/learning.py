"""Coordinate the training of a pool's retriever between processes.

Every process ranks by the newest version of the retriever. A process that has admitted an exemplar trains the next
version in the background, unless the process that made the newest version is still active and does so. A version is
stored only as the successor of the newest one: if another process stored a version first, that version is loaded and
the training repeated. Nothing is lost if a process dies, because the next process that admits an exemplar also trains
on all exemplars that no version covers yet.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pydantic import ValidationError

from mindstream.errors import Conflict, InputError, StorageError
from mindstream.foreign_code import describe
from mindstream.log.events import Failed
from mindstream.memory.memory import Memory
from mindstream.memory.recall.ranking import Policy
from mindstream.memory.store.checkpoints import Checkpoint
from mindstream.memory.store.store import Entry
from mindstream.models.embedders.embedder import Embedder, width_of
from mindstream.sharing.events import Form, RetrieverTrained
from mindstream.sharing.exemplar import Exemplar, embedded_text
from mindstream.sharing.labelling import LabelCost, Labeller, label, label_cost, unlabelled
from mindstream.sharing.ranking import Retriever
from mindstream.sharing.retriever import (
    AboutMean,
    ByHead,
    Labels,
    LearnedRetriever,
    Pair,
    Version,
)
from mindstream.sharing.state import PoolState

if TYPE_CHECKING:
    from mindstream.sharing.pool import Pool

LEAST = 36
"""Minimum number of exemplars for training. With 24 exemplars, training made the ranking worse as often as better. With
36 exemplars, training never made the ranking worse."""
RELEARNED = 1_000
"""Maximum number of exemplars with which a process begins background training. The newest exemplars are used."""
POLL_S = 0.1
"""Poll interval of background training, in seconds."""
IDLE_POLLS, YIELD_POLLS = 30, 5
"""IDLE_POLLS: number of polls in a row without training after which background training ends. YIELD_POLLS: maximum
number of polls for which a process leaves the training to the process that made the newest version."""
RECENT_S = 5.0
"""Seconds after a version was stored during which the process that made the version counts as active."""

STAND_IN = "stand-in"
MAX_TRIES = 5
"""Maximum number of attempts of `PoolLearner.train`. An attempt fails if another process stores a version first."""


@dataclass(frozen=True)
class Base:
    """The basis of the next version of the retriever.

    Attributes:
        newest: the newest version, which the next version succeeds.
        after, upto: the range (after, upto] of log rows whose admissions the next version covers.
    """

    newest: Newest
    after: int
    upto: int


class PoolLearner(Retriever):
    """Rank a pool's exemplars with the newest trained version, and train new versions on the exemplars that this
    process admits.

    Args:
        labeller: the model that labels candidates; None: `StandIn` labels candidates by text similarity. In the
            background, the labels depend on the newest version. If the version was trained on this model's labels, the
            model labels new exemplars. If the version was trained on text similarity, or if there is no version,
            `StandIn` labels them: the first labelling by a model is expensive, and needs a call of `train`. If the
            version was trained on another model's labels, nothing is trained in the background.

    Attributes:
        failure: the error that ended background training; "" if there was none.
    """

    def __init__(self, pool: Pool, labeller: Labeller | None = None) -> None:
        self._pool, self.labeller = pool, labeller
        self.failure = ""
        self._trainer: Trainer | None = None
        self._newest = Newest()
        self._task: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()

    @property
    def policy(self) -> Policy:
        return self._newest.policy

    @property
    def version(self) -> int:
        return self._newest.number if self._newest.version else 0

    @property
    def fault(self) -> str:
        """Why the newest version of the retriever cannot be used; "": it can be used, or there is no version yet."""
        return self._newest.fault

    async def catch_up(self, state: PoolState) -> None:
        newer = [each for each in state.versions if each.number > self._newest.number]
        if newer and self._newest.version and not any(each.held for each in newer):
            # all newer versions failed their check: the weights stay
            self._newest = replace(self._newest, number=state.version)
        elif newer:
            self._newest = await read_newest(self._pool.memory, state.version)

    async def admitted(self, pair: Exemplar) -> None:  # noqa: ARG002 (every exemplar that is not covered is learned)
        if not self._closing.is_set() and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._run())

    async def settle(self) -> None:
        while self._task and not self._task.done() and await self._is_behind():
            await asyncio.wait({self._task}, timeout=POLL_S)

    async def close(self) -> None:
        self._closing.set()
        if self._trainer:
            self._trainer.stop()
        if self._task:
            await asyncio.gather(self._task, return_exceptions=True)

    # Background training.

    async def _run(self) -> None:
        try:
            idle = 0
            while idle < IDLE_POLLS and not self._closing.is_set():
                if await self._is_behind() and await self._is_our_turn():
                    async with self._one_at_a_time:
                        await self._learn()
                    idle = 0
                else:
                    idle += 1
                    await self._pause()
        except Exception as error:  # noqa: BLE001 (an embedder or a store failed: only the training stops)
            self._trainer, self.failure = None, describe(error)
            with contextlib.suppress(StorageError):  # the store is closed or has failed
                await self._pool.write(Failed(text=describe(error), where=NAME), NAME)

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(POLL_S):
                await self._closing.wait()
        except TimeoutError:
            pass

    async def _is_behind(self) -> bool:
        """Return whether there are admitted exemplars that no version covers and that this process may train on.

        Return False if the pool is too small, or if the newest version belongs to another embedder. Return False also
        if the newest version was trained on the labels of a model that is not this process's labeller.
        """
        state = await self._pool.state()
        if state.admitted <= state.covered or len(state.standings) < LEAST:
            return False
        await self.catch_up(state)
        if not self._is_taught_by_us(state):
            return False
        return not self._newest.foreign and len(state.teaching(self._pool.guarded)) >= LEAST

    def _is_taught_by_us(self, state: PoolState) -> bool:
        newest = state.versions[-1] if state.versions else None
        if newest is None or not newest.labeller:
            return True  # no model's labels so far: only an explicit call of `train` introduces them
        return self.labeller is not None and self.labeller.key == (newest.basis, newest.labeller)

    async def _is_our_turn(self) -> bool:
        """Return whether this process should train; False if no exemplar is new.

        If another process trained the last version recently, wait a while for this other process to train again. The
        other process is preferred, because it has already labelled the pool's exemplars.
        """
        for _ in range(YIELD_POLLS):
            state = await self._pool.state()
            since = self._pool.memory.clock.now() - state.trained
            if self._closing.is_set() or state.admitted <= state.covered:
                return False
            if since > RECENT_S or (self._trainer is not None and self._trainer.number == state.version):
                return True
            await self._pause()
        return not self._closing.is_set()

    async def _learn(self) -> None:
        """Train the retriever on the exemplars that no version covers yet.

        The labels come from the labelling model if the newest version was trained with labels of a labelling model.
        Otherwise they come from text similarity.
        """
        base, state = await self._base(), self._pool.last_state
        labeller = self.labeller if state.versions and state.versions[-1].labeller else None
        if labeller:
            await label(self._pool, labeller, unlabelled(self._pool, state, labeller))
        try:
            await self._attempt(base, labeller)
        except StudyStopped:
            self._trainer = None

    async def _attempt(
        self, base: Base, labeller: Labeller | None, tell: Tell = lambda _: None, *, whole: bool = False
    ) -> RetrieverTrained | None:
        """Train and store a version. If another process was first, load its version and return None.

        Args:
            whole: train on all exemplars, not only on those that no version covers yet. If such a training is
                cancelled, the last version that passed the check is stored, if there is one.
        """
        if whole:
            self._check_size(self._pool.last_state)
            self._trainer = None
        trainer = await self._ready(labeller.labels(lambda: self._pool.last_state) if labeller else None)
        try:
            outcome = await trainer.study(base.newest, self._lessons(trainer, whole), tell)
            return await self._publish(base, trainer, outcome)
        except Conflict:
            self._newest = await read_newest(self._pool.memory, base.newest.number)
            return None
        except asyncio.CancelledError:
            if whole and (outcome := await trainer.leave_off()).held:
                await self._publish(base, trainer, outcome)
            raise

    async def _base(self) -> Base:
        """Read the current state; return the newest version and the rows that the next version will cover."""
        while (state := await self._pool.state()).version > self._newest.number:
            await self.catch_up(state)  # then read again: the newest version may be newer than this state
        return Base(self._newest, state.covered, max(state.covered, state.admitted))

    async def _ready(self, labels: Labels | None) -> Trainer:
        """Return the trainer of this process.

        A new trainer is made in these cases:

        - There is no trainer.
        - The newest version was stored by another process and cannot be used.
        - The training changes from labels of a model to labels by text similarity, or the reverse.
        """
        ours = self._trainer
        lost = ours is not None and ours.number != self._newest.number and self._newest.version is None
        if ours is None or lost or (ours.labels is None) != (labels is None):
            embedder = self._pool.memory.embedder
            ours = self._trainer = Trainer(embedder, await width_of(embedder), labels)
        return ours

    def _lessons(self, trainer: Trainer, whole: bool = False) -> TrainingInput:
        """Return the training input according to the state that was last read.

        A trainer without exemplars gets all exemplars if `whole`, else the newest RELEARNED ones. Any other trainer
        gets
        - `admit`: exemplars that the trainer does not have, if they were admitted after the trainer's oldest exemplar,
        - `again`: exemplars of the trainer whose training no stored version contains,
        - `gone`: exemplars of the trainer that must not be used any more, or whose query in the prompt has changed.
        """
        state = self._pool.last_state
        ids = state.teaching(self._pool.guarded)
        served = frozenset(ids)
        pairs = [training_pair(state, id_, served) for id_ in ids if id_ not in trainer.taken]
        if not trainer.taken:
            return TrainingInput(seed=pairs if whole else pairs[-RELEARNED:])
        oldest = min(state.standings[id_].judged for id_ in trainer.taken)
        fresh = [each for each in pairs if state.standings[each.id].judged > oldest]
        gone = {
            id_
            for id_, query in trainer.taken.items()
            if id_ not in served or state.as_prompt(state.standings[id_].exemplar, served).query != query
        }
        kept = trainer.taken.keys() - gone
        lost = [id_ for id_ in ids if id_ in kept and state.standings[id_].judged > state.covered]
        return TrainingInput(admit=fresh, again=lost, gone=sorted(gone))

    async def _publish(self, base: Base, trainer: Trainer, outcome: Outcome) -> RetrieverTrained:
        """Store the next version. It covers the exemplars that were admitted before its training input was chosen."""
        version, parent = outcome.version, base.newest.number
        row = RetrieverTrained(
            number=parent + 1,
            parent=parent,
            after=base.after,
            upto=base.upto,
            held=outcome.held,
            embedder=version.embedder,
            learned_from=version.learned_from,
            basis=trainer.labels.basis if trainer.labels else STAND_IN,
            held_out=version.held_out,
            before=outcome.before,
            anew=base.newest.version is None,
            labeller=trainer.labels.model if trainer.labels else "",
        )
        await publish(self._pool.memory, version, row)
        trainer.number = row.number
        self._newest = Newest(row.number, version, trainer.policy)
        return row

    # Training on request.

    async def cost(self, by: str) -> LabelCost | None:
        """Estimate the cost of the labelling in `train`. None: there is no labeller, and no model is called.

        Raises:
            InputError: the pool is too small for training, or `by` is not a member.
        """
        state = await self._pool.member_state(by)
        self._check_size(state)
        if self.labeller is None:
            return None
        return label_cost(state, self.labeller, unlabelled(self._pool, state, self.labeller))

    def _check_size(self, state: PoolState) -> None:
        if (found := len(state.teaching(self._pool.guarded))) < LEAST:
            raise InputError(
                f"the pool has {found} exemplar{'s' * (found != 1)} to learn from; training needs at least {LEAST}"
            )

    async def train(
        self, by: str, tell: Tell = lambda _: None, tell_labelled: Tell = lambda _: None
    ) -> RetrieverTrained:
        """Train on all exemplars now, and store the new version.

        First the labeller labels the candidates of exemplars without labels. If the labeller fails, the labels so far
        are kept for the next time. A cancelled training stores its last version that passed the check, if there is one.

        Args:
            by: the member who requests the training.
            tell: called with the number of pairs labelled by text similarity so far. It is not called if a model
                labels.
            tell_labelled: called with the number of exemplars whose candidates the model has labelled so far.

        Raises:
            InputError: the pool is too small for training, or `by` is not a member.
            ModelError: the labeller failed; nothing was trained.
            Conflict: in each of MAX_TRIES attempts, another process stored a version first.
        """
        self._check_size(state := await self._pool.member_state(by))
        if self.labeller:
            await label(self._pool, self.labeller, unlabelled(self._pool, state, self.labeller), tell_labelled)
        async with self._one_at_a_time:
            for _ in range(MAX_TRIES):
                if row := await self._attempt(await self._base(), self.labeller, tell, whole=True):
                    return row
        raise Conflict(
            f"other processes stored a version of the retriever first, {MAX_TRIES} times in a row; try again later"
        )


NAME = "retriever"


@dataclass(frozen=True)
class Newest:
    """The newest version of a pool's retriever, as far as this process can use it.

    Attributes:
        number: the number of the version; 0: there is none.
        version: the version; None: no usable version, so the pool is ranked without training.
        policy: the ranking policy.
        fault: why the newest version cannot be used; "": it can be used, or there is no version.
        foreign: whether the fault is that the version belongs to another embedder.
    """

    number: int = 0
    version: Version | None = None
    policy: Policy = field(default_factory=AboutMean)
    fault: str = ""
    foreign: bool = False


async def read_newest(stream: Memory, number: int) -> Newest:
    """Read the newest version from the checkpoint.

    If the newest version is missing, damaged or was trained with another embedder, the result has no version, and its
    `fault` says why.

    Args:
        number: the newest version number according to the log.
    """
    kept = await stream.store.checkpoint(stream.key, NAME)
    if kept is None:
        return Newest(number, fault=f"the weights of version {number} are lost or damaged; training starts over")
    number = max(number, kept.version)
    try:
        version = await asyncio.to_thread(Version.model_validate_json, kept.data)
    except ValidationError as error:
        return Newest(
            number, fault=f"version {number} cannot be read ({error.errors()[0]['msg']}); training starts over"
        )
    if version.embedder != stream.embedder.name:
        fault = (
            f"version {number} was trained with the embedder {version.embedder}, but the pool is open with"
            f" {stream.embedder.name}"
        )
        return Newest(number, fault=fault, foreign=True)
    return Newest(number, version, ByHead(version.head))


async def publish(stream: Memory, version: Version, row: RetrieverTrained) -> None:
    """Store a version as the newest.

    Raises:
        Conflict: another process has stored a version first; the caller should load that version and train again.
    """
    named = version.model_copy(update={"number": row.number, "parent": row.parent})
    await stream.commit(Entry(row, NAME), checkpoint=Checkpoint(NAME, row.number, named.model_dump_json().encode()))


Tell = Callable[[int], None]


class StudyStopped(Exception):  # noqa: N818 (not a failure: the caller asked for it)
    """Training was stopped by `Trainer.stop`."""


@dataclass(frozen=True, slots=True)
class TrainingPair:
    """A pair, and the text that is embedded for it."""

    id: str
    query: str
    answer: str
    text: str


def training_pair(state: PoolState, id_: str, served: Collection[str], form: Form | None = None) -> TrainingPair:
    """Return the training pair of an exemplar.

    Args:
        served: the ids of the exemplars that are served to every member. The query in the pair may include the examples
            with which it was answered; examples that are not in `served` are left out.
        form: the form of the embedded text; None: the pool's form.
    """
    exemplar = state.standings[id_].exemplar
    text = embedded_text(exemplar.query, exemplar.answer, state.examples_of(exemplar), form or state.form)
    return TrainingPair(id_, state.as_prompt(exemplar, served).query, exemplar.answer, text)


def _text_of(pair: Pair) -> str:
    return pair.text if isinstance(pair, TrainingPair) else pair.query


@dataclass(frozen=True)
class TrainingInput:
    """The input of one training run.

    Attributes:
        seed: pairs that are added together before training starts.
        admit: pairs that are added one by one, with training after each.
        again: ids of pairs whose training was lost, because another process stored its version first.
        gone: ids of pairs that must not be used for training any more.
    """

    seed: Sequence[TrainingPair] = ()
    admit: Sequence[TrainingPair] = ()
    again: Sequence[str] = ()
    gone: Sequence[str] = ()


@dataclass(frozen=True)
class Outcome:
    """The result of a training run.

    Attributes:
        version: the version that ranks now.
        held: whether this run produced the version, because an update passed the check.
        before: share of held-out exemplars for which the version before this run ranked a helpful candidate first; 0 if
            no exemplars are held out.
    """

    version: Version
    held: bool
    before: float


class Trainer(LearnedRetriever):
    """A retriever that learns in a thread with its own event loop.

    Attributes:
        number: number of the stored version from which training continues.
        taken: the queries of the pairs that were added so far, by id.
    """

    def __init__(self, embedder: Embedder, width: int, labels: Labels | None = None) -> None:
        self.number = 0
        self.taken: dict[str, str] = {}
        self._made: list[Version] = []
        self._stop = threading.Event()
        self._tell: Tell = lambda _: None
        self._labelled = 0
        self._running: asyncio.Task[Outcome] | None = None
        super().__init__(
            embedder, width, labels=labels, text_of=_text_of, on_version=self._made.append, on_weighing=self._count
        )

    async def study(self, newest: Newest, given: TrainingInput, tell: Tell = lambda _: None) -> Outcome:
        """Train in a thread, starting from the newest version.

        Args:
            tell: called from the thread with the number of pairs labelled by text similarity so far; not called if
                a model supplies the trainer's labels.

        Raises:
            StudyStopped: `stop` was called.
        """
        self.taken.update((each.id, each.query) for each in (*given.seed, *given.admit))
        self._tell, self._labelled = tell, 0
        self._made.clear()
        self._running = asyncio.create_task(asyncio.to_thread(asyncio.run, self._study(newest, given)))
        return await asyncio.shield(self._running)

    def stop(self) -> None:
        """Stop the current training run."""
        self._stop.set()

    async def leave_off(self) -> Outcome:
        """Stop the current training run, wait until it has ended, and return its result up to then."""
        self.stop()
        if self._running:
            await asyncio.gather(self._running, return_exceptions=True)
        return self._outcome()

    def _outcome(self) -> Outcome:
        return Outcome(self.version, bool(self._made), self._made[0].before if self._made else self.version.held_out)

    async def _study(self, newest: Newest, given: TrainingInput) -> Outcome:
        if newest.version and newest.number != self.number:
            self.adopt(newest.version)
        self.number = newest.number
        self.withdraw(given.gone)
        if given.seed:
            await self.seed_with(given.seed)
        for each in given.admit:
            await self.admitted(each)
        self.relearn(given.again)
        return self._outcome()

    def _count(self) -> None:
        if self._stop.is_set():
            raise StudyStopped
        self._labelled += 1
        self._tell(self._labelled)
