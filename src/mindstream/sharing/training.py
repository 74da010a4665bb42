"""Train a pool's retriever in a thread with its own event loop, so that recall never waits for training."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pydantic import ValidationError

from mindstream.memory.memory import Memory
from mindstream.memory.recall.ranking import Policy
from mindstream.memory.store.checkpoints import Checkpoint
from mindstream.memory.store.store import Entry
from mindstream.models.embedders.embedder import Embedder
from mindstream.sharing.events import Form, RetrieverTrained
from mindstream.sharing.exemplar import embedded_text
from mindstream.sharing.retriever import (
    AboutMean,
    ByHead,
    Labels,
    LearnedRetriever,
    Pair,
    Version,
)
from mindstream.sharing.state import PoolState

NAME = "retriever"


@dataclass(frozen=True)
class Newest:
    """The newest version of a pool's retriever, as far as this process can use it.

    Attributes:
        number: the number of the version; 0: there is none.
        version: the version; None: there is none that can be used, so the pool is ranked untrained.
        policy: the ranking policy.
        fault: why the newest version cannot be used; "" if it can.
        foreign: whether the reason is that it belongs to another embedder.
    """

    number: int = 0
    version: Version | None = None
    policy: Policy = field(default_factory=AboutMean)
    fault: str = ""
    foreign: bool = False


async def read_newest(stream: Memory, number: int) -> Newest:
    """Read the newest version from the checkpoint; `number`: the newest number according to the log."""
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
    data = named.model_dump_json().encode()
    await stream.commit(Entry(row, NAME), checkpoint=Checkpoint(NAME, row.number, data))


Tell = Callable[[int], None]


class StudyStopped(Exception):  # noqa: N818 (not a failure: the caller asked for it)
    """Training was stopped by `Trainer.stop`."""


@dataclass(frozen=True, slots=True)
class TrainingPair:
    """A pair with the text of it that is embedded."""

    id: str
    query: str
    answer: str
    text: str


def training_pair(state: PoolState, id_: str, form: Form | None = None) -> TrainingPair:
    """Return the training pair of an exemplar; `form`: the form of its embedded text, None: the pool's form."""
    exemplar = state.standings[id_].exemplar
    text = embedded_text(exemplar.query, exemplar.answer, state.examples_of(exemplar), form or state.form)
    return TrainingPair(id_, exemplar.query, exemplar.answer, text)


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
        version: the version that ranks now; held: whether the run produced it, because an update passed the check.
        before: share of held-out exemplars for which the candidate that the previous version ranked first is helpful;
            0 if too few are held out.
    """

    version: Version
    held: bool
    before: float


class Trainer(LearnedRetriever):
    """A retriever that learns in a thread with its own event loop.

    Attributes:
        number: number of the stored version that it continues from.
        taken: ids of the pairs that were added so far.
    """

    def __init__(self, embedder: Embedder, width: int, labels: Labels | None = None) -> None:
        self.number = 0
        self.taken: set[str] = set()
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
            tell: called from the thread with the number of labelled pairs.

        Raises:
            StudyStopped: `stop` was called.
        """
        self.taken.update(each.id for each in (*given.seed, *given.admit))
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
