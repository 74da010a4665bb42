"""A pool's retriever as all its processes use it: each ranks by the newest version, and one at a time makes the next.

Whoever has admitted something learns from it beside recall, unless the process that made the last version is still at
it and covers it, too. A version is written only upon the newest: who comes second takes that one over, and learns
again. A process that dies loses nothing: what is not covered is learned by whoever admits next.
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
from mindstream.models.embedders.named import width_of
from mindstream.sharing.events import RetrieverTrained
from mindstream.sharing.exemplar import Exemplar
from mindstream.sharing.labelling import LabelCost, Labeller, label, label_cost, unlabelled
from mindstream.sharing.ranking import Retriever
from mindstream.sharing.retriever.ranking import Labels
from mindstream.sharing.state import PoolState
from mindstream.sharing.training import (
    NAME,
    Lessons,
    Newest,
    Outcome,
    StudyStopped,
    Tell,
    Trainer,
    lesson_of,
    publish,
    read_newest,
)

if TYPE_CHECKING:
    from mindstream.sharing.pool import Pool

LEAST = 36
"""A pool of fewer is ranked untrained: with 24 learning costs as often as it gains, with 36 it costs nothing."""
RELEARNED = 1_000
"""A process that takes learning over learns from the newest so many exemplars; those before are ranked all the same."""
LOOK_S = 0.1
LINGER, HEAD_START = 30, 5
"""Looks at the pool: so many without news until a process leaves off, and so many that another one waits for it."""
RECENT_S = 5.0
STAND_IN = "stand-in"
TRIES = 5


@dataclass(frozen=True)
class Base:
    """What a version is made upon: the one before, and which rows of the log it covers."""

    newest: Newest
    after: int
    upto: int


class PoolLearner(Retriever):
    """Ranks a pool by its newest version, and learns from what this process admits.

    Args:
        labeller: which model says which candidates help; None: the stand-in does. Beside recall it labels what is
            admitted once it has taught a version (`train`), for the first time is dear; a version that another one
            taught is left as it is.

    Attributes:
        failure: why it left off learning beside recall; "" where nothing failed.
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
        """Why the newest version does not rank; "" where it does, or there is none."""
        return self._newest.fault

    async def catch_up(self, state: PoolState) -> None:
        newer = [each for each in state.versions if each.number > self._newest.number]
        if newer and self._newest.version and not any(each.held for each in newer):
            self._newest = replace(self._newest, number=state.version)  # the same weights
        elif newer:
            self._newest = await read_newest(self._pool.memory, state.version)

    async def admitted(self, pair: Exemplar) -> None:  # noqa: ARG002 (whatever is not covered is learned from)
        if not self._closing.is_set() and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._run())

    async def settle(self) -> None:
        while self._task and not self._task.done() and await self._is_behind():
            await asyncio.wait({self._task}, timeout=LOOK_S)

    async def close(self) -> None:
        self._closing.set()
        if self._trainer:
            self._trainer.stop()
        if self._task:
            await asyncio.gather(self._task, return_exceptions=True)

    # Beside recall.

    async def _run(self) -> None:
        try:
            idle = 0
            while idle < LINGER and not self._closing.is_set():
                if await self._is_behind() and await self._is_our_turn():
                    async with self._one_at_a_time:
                        await self._learn()
                    idle = 0
                else:
                    idle += 1
                    await self._pause()
        except Exception as error:  # noqa: BLE001 (an embedder, a store: the pair is admitted, whoever cannot learn from it)
            self._trainer, self.failure = None, describe(error)
            with contextlib.suppress(StorageError):  # closed, or what failed was the store itself
                await self._pool.write(Failed(text=describe(error), where=NAME), NAME)

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(LOOK_S):
                await self._closing.wait()
        except TimeoutError:
            pass

    async def _is_behind(self) -> bool:
        """Tell whether something is to be learned, by this process: of another embedder only who trains it does.

        Nor does the stand-in learn on what a model taught, or one model on what another did.
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
            return True  # by the stand-in; a model begins when it is told to
        return self.labeller is not None and self.labeller.key == (newest.basis, newest.labeller)

    def _labels(self, state: PoolState) -> Labels | None:
        """Return by which labels it goes on beside recall: by those that taught the newest version."""
        taught = state.versions and state.versions[-1].labeller
        return self.labeller.labels(lambda: self._pool.last_state) if taught and self.labeller else None

    async def _is_our_turn(self) -> bool:
        """Let the process that made the last version go on, if it is still at it: it has weighed the pool already."""
        for _ in range(HEAD_START):
            state = await self._pool.state()
            since = self._pool.memory.clock.now() - state.trained
            if self._closing.is_set() or state.admitted <= state.covered:
                return False
            if since > RECENT_S or (self._trainer is not None and self._trainer.number == state.version):
                return True
            await self._pause()
        return not self._closing.is_set()

    async def _learn(self) -> None:
        base = await self._base()
        labels = self._labels(self._pool.last_state)
        if labels and self.labeller:
            await label(self._pool, self.labeller, unlabelled(self._pool, self._pool.last_state, self.labeller))
        trainer = await self._ready(labels)
        try:
            outcome = await trainer.study(base.newest, self._lessons(trainer))
            await self._publish(base, trainer, outcome)
        except StudyStopped:
            self._trainer = None
        except Conflict:  # another process was first: what it wrote is taken over, and we look again
            self._newest = await read_newest(self._pool.memory, base.newest.number)

    async def _base(self) -> Base:
        """Return what the next version is to follow, and to cover, as it is now."""
        while (state := await self._pool.state()).version > self._newest.number:
            await self.catch_up(state)  # then look again: it may be newer than that state
        return Base(self._newest, state.covered, max(state.covered, state.admitted))

    async def _ready(self, labels: Labels | None) -> Trainer:
        """Return who learns; another one where the version that it stands on cannot be had by anybody else."""
        ours = self._trainer
        lost = ours is not None and ours.number != self._newest.number and self._newest.version is None
        if ours is None or lost or (ours.labels is None) != (labels is None):
            embedder = self._pool.memory.embedder
            ours = self._trainer = Trainer(embedder, await width_of(embedder), labels)
        return ours

    def _lessons(self, trainer: Trainer, whole: bool = False) -> Lessons:
        """Return what is to be learned, as the state was last read; `whole`: from all, else what is not covered."""
        state = self._pool.last_state
        ids = state.teaching(self._pool.guarded)
        pairs = [lesson_of(state, id_) for id_ in ids if id_ not in trainer.taken]
        if not trainer.taken:
            return Lessons(seed=pairs if whole else pairs[-RELEARNED:])
        oldest = min(state.standings[id_].judged for id_ in trainer.taken)
        fresh = [each for each in pairs if state.standings[each.id].judged > oldest]
        lost = [id_ for id_ in ids if id_ in trainer.taken and state.standings[id_].judged > state.covered]
        return Lessons(admit=fresh, again=lost, gone=sorted(trainer.taken - set(ids)))

    async def _publish(self, base: Base, trainer: Trainer, outcome: Outcome) -> RetrieverTrained:
        """Write the next version; it covers what was admitted when its lessons were chosen."""
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

    # When somebody asks for it.

    async def cost(self, by: str) -> LabelCost | None:
        """Estimate what `train` will ask of the labeller; None: there is none.

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
        """Learn from all now, for a member, and write what comes of it; broken off, what held until then is written.

        What the labeller has not read yet it labels first; where it fails, what it labelled is kept for the next time.

        Raises:
            InputError: there is too little to learn from, or `by` is no member.
            ModelError: the labeller failed; nothing is taught in its place.
        """
        self._check_size(state := await self._pool.member_state(by))
        if self.labeller:
            await label(self._pool, self.labeller, unlabelled(self._pool, state, self.labeller), tell_labelled)
        async with self._one_at_a_time:
            return await self._train(tell)

    async def _train(self, tell: Tell) -> RetrieverTrained:
        for _ in range(TRIES):
            base = await self._base()
            self._check_size(self._pool.last_state)
            self._trainer = None
            trainer = await self._ready(self.labeller.labels(lambda: self._pool.last_state) if self.labeller else None)
            try:
                outcome = await trainer.study(base.newest, self._lessons(trainer, whole=True), tell)
                return await self._publish(base, trainer, outcome)
            except Conflict:
                self._newest = await read_newest(self._pool.memory, base.newest.number)
            except asyncio.CancelledError:
                if (outcome := await trainer.leave_off()).held:
                    await self._publish(base, trainer, outcome)
                raise
        raise Conflict(f"{TRIES} times another process has written a version first; try again")
