"""Coordinate the retriever of a pool between processes: each ranks by the newest version, and one at a time trains the
next.

A process that has admitted an exemplar trains in the background, unless the process that made the last version is
still active and will cover it. A version is stored only as the successor of the newest one: the second process to
store takes over the stored version and trains again. A process that dies loses nothing: exemplars that are not
covered yet are learned by the next process that admits one.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mindstream.errors import Conflict, InputError, StorageError
from mindstream.foreign_code import describe
from mindstream.log.events import Failed
from mindstream.memory.recall.policies import Policy
from mindstream.models.embedders.embedder import width_of
from mindstream.sharing.events import RetrieverTrained
from mindstream.sharing.exemplar import Exemplar
from mindstream.sharing.labelling import LabelCost, Labeller, label, label_cost, unlabelled
from mindstream.sharing.ranking import Retriever
from mindstream.sharing.retriever import Labels
from mindstream.sharing.state import PoolState
from mindstream.sharing.training import (
    NAME,
    Newest,
    Outcome,
    StudyStopped,
    Tell,
    Trainer,
    TrainingInput,
    publish,
    read_newest,
    training_pair,
)

if TYPE_CHECKING:
    from mindstream.sharing.pool import Pool

LEAST = 36
"""Minimum pool size for training: with 24 exemplars training does harm as often as good, with 36 it does none."""
RELEARNED = 1_000
"""Number of exemplars, the newest, that a process learns from when it takes over training."""
POLL_S = 0.1
IDLE_POLLS, YIELD_POLLS = 30, 5
"""Polls without news after which a process stops training; and polls for which another process waits for it."""
RECENT_S = 5.0
STAND_IN = "stand-in"
MAX_TRIES = 5


@dataclass(frozen=True)
class Base:
    """The version that the next one succeeds, and the rows of the log that the next one covers."""

    newest: Newest
    after: int
    upto: int


class PoolLearner(Retriever):
    """Rank a pool by its newest version, and learn from the exemplars that this process admits.

    Args:
        labeller: the model that labels candidates; None: the stand-in does. In the background it labels new
            exemplars only after it has taught a version (`train`), because the first labelling is expensive. A
            version that another model taught is not changed.

    Attributes:
        failure: why background training stopped; "" if nothing failed.
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
        """Why the newest version cannot be used; "" if it can, or there is none."""
        return self._newest.fault

    async def catch_up(self, state: PoolState) -> None:
        newer = [each for each in state.versions if each.number > self._newest.number]
        if newer and self._newest.version and not any(each.held for each in newer):
            self._newest = replace(self._newest, number=state.version)  # the same weights
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
        except Exception as error:  # noqa: BLE001 (an embedder or a store failed: the pair stays admitted)
            self._trainer, self.failure = None, describe(error)
            with contextlib.suppress(StorageError):  # it is closed, or the store itself failed
                await self._pool.write(Failed(text=describe(error), where=NAME), NAME)

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(POLL_S):
                await self._closing.wait()
        except TimeoutError:
            pass

    async def _is_behind(self) -> bool:
        """Return whether there is something to learn for this process.

        A version of another embedder is continued only by the process that trains it. The stand-in does not continue
        a version that a model taught, nor one model another model's.
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
            return True  # the stand-in taught it; a model starts only with `train`
        return self.labeller is not None and self.labeller.key == (newest.basis, newest.labeller)

    async def _is_our_turn(self) -> bool:
        """Wait for the process that made the last version, which has labelled the pool already, as long as it is
        active."""
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
        """Train on what is not covered, by the labels of the model that taught the newest version."""
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
        """Train and store a version; None: another process was first, and its version is taken over.

        Args:
            whole: train on all exemplars, else on those not covered. If cancelled, an accepted version is stored.
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
        """Return the version and the rows that the next version starts from, as they are now."""
        while (state := await self._pool.state()).version > self._newest.number:
            await self.catch_up(state)  # then check again: it may be newer than that state
        return Base(self._newest, state.covered, max(state.covered, state.admitted))

    async def _ready(self, labels: Labels | None) -> Trainer:
        """Return the trainer; a new one if the version that it continues from is not available to other processes."""
        ours = self._trainer
        lost = ours is not None and ours.number != self._newest.number and self._newest.version is None
        if ours is None or lost or (ours.labels is None) != (labels is None):
            embedder = self._pool.memory.embedder
            ours = self._trainer = Trainer(embedder, await width_of(embedder), labels)
        return ours

    def _lessons(self, trainer: Trainer, whole: bool = False) -> TrainingInput:
        """Return the training input from the last state read; `whole`: from all exemplars, else from those not
        covered."""
        state = self._pool.last_state
        ids = state.teaching(self._pool.guarded)
        pairs = [training_pair(state, id_) for id_ in ids if id_ not in trainer.taken]
        if not trainer.taken:
            return TrainingInput(seed=pairs if whole else pairs[-RELEARNED:])
        oldest = min(state.standings[id_].judged for id_ in trainer.taken)
        fresh = [each for each in pairs if state.standings[each.id].judged > oldest]
        lost = [id_ for id_ in ids if id_ in trainer.taken and state.standings[id_].judged > state.covered]
        return TrainingInput(admit=fresh, again=lost, gone=sorted(trainer.taken - set(ids)))

    async def _publish(self, base: Base, trainer: Trainer, outcome: Outcome) -> RetrieverTrained:
        """Store the next version; it covers the exemplars admitted when its input was chosen."""
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

    # On request.

    async def cost(self, by: str) -> LabelCost | None:
        """Estimate the cost of the labelling in `train`; None: there is no labeller.

        Raises:
            InputError: see `train`.
        """
        state = await self._pool.member_state(by)
        self._check_size(state)
        if self.labeller is None:
            return None
        return label_cost(state, self.labeller, unlabelled(self._pool, state, self.labeller))

    def _check_size(self, state: PoolState) -> None:
        if (found := len(state.teaching(self._pool.guarded))) < LEAST:
            raise InputError(f"the pool has {found} exemplars to learn from, and {LEAST} are wanted")

    async def train(
        self, by: str, tell: Tell = lambda _: None, tell_labelled: Tell = lambda _: None
    ) -> RetrieverTrained:
        """Train on all exemplars now, for a member, and store the result. A cancelled training stores its last accepted
        version.

        Exemplars that the labeller has not read are labelled first. If it fails, its labels up to then are kept for the
        next time.

        Raises:
            InputError: there is too little to learn from, or `by` is not a member.
            ModelError: the labeller failed; nothing is trained in its place.
        """
        self._check_size(state := await self._pool.member_state(by))
        if self.labeller:
            await label(self._pool, self.labeller, unlabelled(self._pool, state, self.labeller), tell_labelled)
        async with self._one_at_a_time:
            for _ in range(MAX_TRIES):
                if row := await self._attempt(await self._base(), self.labeller, tell, whole=True):
                    return row
        raise Conflict(f"{MAX_TRIES} times another process has written a version first; try again")
