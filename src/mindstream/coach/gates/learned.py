"""The learned gate: begins as the quick gate, and learns from what came of each decision (see outcomes)."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from mindstream import caches, chance
from mindstream.coach.events import Decided, Judged
from mindstream.coach.gates.features import Features
from mindstream.coach.gates.gate import Decision, Situation
from mindstream.coach.gates.logistic import Logistic, Row
from mindstream.coach.gates.outcomes import situation_of
from mindstream.coach.gates.quick import QuickGate, classifier_input, shipped_classifier
from mindstream.coach.gates.weights import GateWeights, pack_weights, read_bounded, unpack_weights, write_private
from mindstream.coach.packs.pack import Pack
from mindstream.coach.packs.reading import read_utterance
from mindstream.coach.step_question import plan_answers
from mindstream.errors import InputError
from mindstream.log.events import Heard, Logged
from mindstream.memory.store import Store
from mindstream.models.embedders.wordllama import WIDTH, vectors

VERSION = 3
"""Changes with what a number in a row means: weights of another version are learned anew."""
NAMES = ("always", "quick waits", "quick thinks", *Features.names())
"""The numbers of a row that have a name; the words' embedding follows them."""
CLIPPED = 3.0
"""The most that the quick gate's word counts, in log odds: its mistakes can be unlearned."""
QUICK, NAMED, WORDS = 0.1, 0.3, 2.0
"""How far from the prior the weights may be: of the quick gate's word, of features with a name, of the embedding."""
SKIPS_BELOW = 0.1
"""The Reasoner is left asleep where it is less likely than this to come to anything."""
CHECKED = 0.1
"""The share of such utterances that it is woken for all the same, so that the gate notices when it is wrong."""
SAVED_EVERY = 25
OPEN = 500
"""How many utterances without an outcome are remembered."""


class LearnedGate:
    """Logistic regression on the words and the state of the talk, one update per outcome.

    Args:
        store: whose log it learns from; None: only by `learn`.
        folder: where what it learned is kept; None: it is learned anew from the log.
        mind: from whose outcomes; None: from those of all minds of the data folder together.
    """

    name = "learned"

    def __init__(
        self, pack: Pack, store: Store | None = None, folder: Path | None = None, mind: str | None = None
    ) -> None:
        self._pack, self._store, self._mind = pack, store, mind
        self._quick = QuickGate(pack)
        self._file = folder / f"gate-{pack.name}.npz" if folder else None
        self.needed, self.changed = _begun("quick waits"), _begun("quick thinks")
        self._upto, self._seen = 0, -1
        self._heard: dict[int, str] = {}
        self._open: dict[int, Situation] = {}
        self._load()
        caches.watch(self)

    def forget(self, _: str) -> None:
        """Let go of utterances whose outcome has not come: something was erased."""
        self._heard.clear()
        self._open.clear()

    @property
    def outcomes(self) -> int:
        """How many outcomes it has learned from."""
        return self.needed.outcomes

    def decide(self, situation: Situation) -> Decision:
        row = self._row(situation)
        needed, changed = self.needed.probability(row), self.changed.probability(row)
        answered = plan_answers(self._pack, situation.told, read_utterance(self._pack, situation.text))
        waits, thinks = needed > 0.5 and not answered, max(needed, changed) >= SKIPS_BELOW
        why = f"{self.outcomes} outcomes; quick says {row[NAMES.index('quick waits')]:+.1f}"
        if not thinks and chance.fraction("checked", situation.text, situation.unthought) < CHECKED:
            return Decision(waits, True, f"a check; {why}", needed)
        return Decision(waits, thinks, why, needed)

    async def weigh(self, situation: Situation) -> Decision:
        await self.catch_up()
        return self.decide(situation)

    def learn(self, situation: Situation, needed: bool, changed: bool) -> None:
        """Take in what came of an utterance."""
        row = self._row(situation)
        self.needed.learn(row, needed)
        self.changed.learn(row, changed or needed)

    def stop_learning(self) -> None:
        """Stay as it is from here on."""
        self._store = None

    async def catch_up(self) -> None:
        """Learn from what was logged since the last time, by any process on this data folder."""
        if self._store is None or (version := await self._store.version()) == self._seen:
            return
        before = self.outcomes
        async for logged in self._new():
            self._take(logged)
        self._seen = version
        if self.outcomes // SAVED_EVERY != before // SAVED_EVERY:
            self._save()

    def _row(self, situation: Situation) -> Row:
        """Put a situation into numbers: what the quick gate says of it first."""
        numbers, _ = self._quick.numbers(situation)
        odds = {
            f"quick {kind}": value
            for kind, value in shipped_classifier().log_odds(classifier_input(situation), numbers).items()
        }
        named = {"always": 1.0, **{name: float(np.clip(odds[name], -CLIPPED, CLIPPED)) for name in odds}, **numbers}
        return np.concatenate([[named.get(name, 0.0) for name in NAMES], vectors([situation.text])[0]])

    async def _new(self) -> AsyncIterator[Logged]:
        assert self._store is not None
        while found := await self._store.events(self._mind, self._upto, [Heard.kind, Decided.kind, Judged.kind]):
            for row in found:
                yield row
            self._upto = found[-1].seq

    def _take(self, logged: Logged) -> None:
        event = logged.event
        if isinstance(event, Heard):
            self._heard[logged.seq] = event.text
        elif isinstance(event, Decided) and event.pack == self._pack.name and event.answers in self._heard:
            self._open[event.answers] = situation_of(event, self._heard.pop(event.answers), self._pack)
        elif isinstance(event, Judged) and (situation := self._open.pop(event.about, None)):
            self.learn(situation, event.needed, event.changed)
        for remembered in (self._heard, self._open):
            while len(remembered) > OPEN:
                del remembered[next(iter(remembered))]

    def state(self) -> bytes:
        """Return what it learned as the bytes of a file (see weights)."""
        models = {"needed": self.needed, "changed": self.changed}
        means = {name: model.mean for name, model in models.items()}
        covariances = {name: model.covariance for name, model in models.items()}
        return pack_weights(GateWeights(self.outcomes, self._upto, means, covariances), VERSION, NAMES)

    def _save(self) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):  # it can be learned again from the log
                write_private(self._file, self.state())

    def _load(self) -> None:
        """Take over what was learned before, if it is of this version and about the same features."""
        if self._file is None or not self._file.is_file():
            return
        with contextlib.suppress(OSError, InputError):
            kept = read_weights(read_bounded(self._file))
            for name, model in (("needed", self.needed), ("changed", self.changed)):
                model.mean, model.covariance, model.outcomes = kept.means[name], kept.covariances[name], kept.outcomes
            self._upto = kept.upto


async def learned_from(pack: Pack, store: Store, mind: str) -> LearnedGate:
    """Return a gate that has learned from the outcomes of one mind, and from nobody else's."""
    gate = LearnedGate(pack, store, mind=mind)
    await gate.catch_up()
    return gate


def read_weights(content: bytes) -> GateWeights:
    """Read a gate's file.

    Raises:
        OtherVersion: it is of another version, or about other features.
        InputError: it holds no weights.
    """
    spreads = {name: _spread() for name in ("needed", "changed")}
    return unpack_weights(content, VERSION, NAMES, spreads)


def without_log(content: bytes) -> bytes:
    """Return a gate's file, checked, that has read nothing of the log yet: another log's numbers mean nothing here.

    Raises:
        OtherVersion, InputError: as `read_weights`.
    """
    return pack_weights(replace(read_weights(content), upto=0), VERSION, NAMES)


def _begun(trusted: str) -> Logistic:
    """Return a model that has learned nothing: the quick gate's word counts as it stands, all else nothing."""
    prior = np.zeros(len(NAMES) + WIDTH)
    prior[NAMES.index(trusted)] = 1.0
    return Logistic(prior, _spread())


def _spread() -> Row:
    spread = np.full(len(NAMES) + WIDTH, WORDS)
    spread[: len(NAMES)] = NAMED
    spread[[NAMES.index("quick waits"), NAMES.index("quick thinks")]] = QUICK
    return spread
