"""Measure how well a pool helps at different sizes, and how its retriever learns as it grows.

A pool of a given size consists of the exemplars that the capacity policy keeps (`size_curve`, `keeping_order`), or of
those admitted first (`growth_curve`). Some pairs are held out from training, and their queries are used as questions; a
query is never shown its own pair or similar pairs. A retriever that was trained on the other pairs ranks the exemplars.
`StandIn` then measures, by ROUGE-L and cosine, how similar the answers of the exemplars ranked first are to the query's
own answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mindstream.arrays import Doubles, Floats, Mask
from mindstream.chance import fraction
from mindstream.errors import InputError
from mindstream.sharing.events import ExemplarEvicted, Form
from mindstream.sharing.learning import LEAST as LEARNING
from mindstream.sharing.learning import Newest, Tell, Trainer, TrainingInput, TrainingPair, training_pair
from mindstream.sharing.pool import Pool
from mindstream.sharing.ranking import values
from mindstream.sharing.retriever import SAME_PROBLEM, Head, StandIn
from mindstream.sharing.state import PoolState
from mindstream.text.words import count_of

SHOTS = 3
"""Number of exemplars whose answers are compared with each query's own answer: those ranked first."""

LEAST, MAX_QUERIES = 20, 100
"""LEAST: minimum number of exemplars of a pool for its curves to be measured. MAX_QUERIES: maximum number of pairs
whose queries are used to measure the curves."""
HELD_OUT, MIN_HELD_OUT = 0.15, 12
"""Share of the pairs that are held out: the retriever is tested with their queries and not trained on them. If fewer
than MIN_HELD_OUT would be held out, all pairs are used for both, the test and the training."""
TENTHS = 10
"""Maximum number of pool sizes on a curve: a tenth of the pool, two tenths, up to the whole pool."""


Helps = Doubles


@dataclass(frozen=True)
class SizePoint:
    """How much a pool of a given size helps.

    Attributes:
        helped: mean similarity (½ ROUGE-L + ½ cosine, at most 1) of exemplars' answers to the query's own answer, for
            the SHOTS exemplars that are ranked first.
        untrained: the same mean, with the exemplars ranked by plain cosine.
    """

    size: int
    helped: float
    untrained: float


@dataclass(frozen=True)
class SizeCurve:
    """How much pools of different sizes help.

    Attributes:
        form: the form in which exemplars were embedded.
        asked: number of queries.
        held_out: whether the pairs of the queries were excluded from training.
        by_hand: number of seed exemplars (added by the owner), which a pool always keeps.
        best: the recommended size: of the sizes from `by_hand` on, the smallest whose result is nearly the best. Nearly
            the best means: at most one standard error of the difference below the best result.
    """

    form: Form
    points: tuple[SizePoint, ...]
    asked: int
    held_out: bool
    by_hand: int
    best: int


@dataclass(frozen=True)
class Probes:
    """Pairs used as queries, and the exemplars that are ranked for the queries.

    For a smaller pool, only the first exemplars are ranked.

    Attributes:
        rows: the positions of the exemplars whose queries are used.
        held_out: whether the exemplars in `rows` are excluded from training.
        questions: vectors of the queries. memories: vectors of all exemplars.
        hidden: for each query, the exemplars that must not be shown: the query's own pair, and similar pairs.
        helps: for each query and exemplar, the similarity of the exemplar's answer to the query's own answer.
    """

    rows: list[int]
    held_out: bool
    questions: Floats
    memories: Floats
    hidden: Mask
    helps: Helps

    def others(self, lessons: Sequence[TrainingPair]) -> list[TrainingPair]:
        """Return the pairs that may be used for training: all but the held-out ones."""
        out = set(self.rows) if self.held_out else set()
        return [each for at, each in enumerate(lessons) if at not in out]

    def helped(self, size: int, head: Head) -> Helps:
        """Return for each query the mean of `helps` over the SHOTS exemplars that `head` ranks first.

        Only the first `size` exemplars are ranked.
        """
        near = (head.ask(self.questions) @ head.project(self.memories[:size]).T).astype(np.float64)
        near[self.hidden[:, :size]] = -np.inf
        order = np.argsort(-near, axis=1, kind="stable")[:, :SHOTS]
        shown = np.take_along_axis(near, order, 1) > -np.inf
        helped: Helps = (np.take_along_axis(self.helps, order, 1) * shown).sum(1) / SHOTS
        return helped


async def size_curve(pool: Pool, reader: str, form: Form | None = None) -> SizeCurve:
    """Measure how much a pool would help if it kept a tenth of its exemplars, two tenths, and so on up to all.

    Args:
        reader: the member who asks.
        form: which text of an exemplar is embedded; None: the pool's own form.

    Raises:
        InputError: the pool is too small, or the reader is not a member.
    """
    state, ids = await _state_of(pool, reader)
    by_hand = sum(state.standings[id_].by_hand for id_ in ids)
    served = frozenset(ids)
    lessons = [training_pair(state, id_, served, form) for id_ in await keeping_order(pool, state, ids)]
    asked = await _ask(pool, lessons)
    plain = Head.untrained(asked.memories.shape[1])
    trainer = Trainer(pool.memory.embedder, plain.width)
    if len(ids) >= LEARNING:
        in_order = sorted(asked.others(lessons), key=lambda each: state.standings[each.id].judged)
        await trainer.study(Newest(), TrainingInput(seed=in_order))
    sizes = _tenths(len(ids))
    helped = {size: asked.helped(size, trainer.version.head) for size in sizes}
    points = [SizePoint(n, float(each.mean()), float(asked.helped(n, plain).mean())) for n, each in helped.items()]
    best = _best({size: each for size, each in helped.items() if size >= min(by_hand, sizes[-1])})
    return SizeCurve(form or state.form, tuple(points), len(asked.rows), asked.held_out, by_hand, best)


async def growth_curve(pool: Pool, reader: str, tell: Tell = lambda _: None) -> list[SizePoint]:
    """Train a retriever on a pool in the order of admission, and measure it at each tenth with the same queries.

    `tell`: called with each size before it is measured.

    Raises:
        InputError: the pool is too small, or the reader is not a member.
    """
    state, ids = await _state_of(pool, reader)
    served = frozenset(ids)
    lessons = [training_pair(state, id_, served) for id_ in ids]
    asked = await _ask(pool, lessons)
    plain = Head.untrained(asked.memories.shape[1])
    others = {each.id for each in asked.others(lessons)}
    trainer, points, done = Trainer(pool.memory.embedder, plain.width), list[SizePoint](), 0
    for size in _tenths(len(ids)):
        if size >= LEARNING:
            more = [each for each in lessons[done:size] if each.id in others]
            await trainer.study(Newest(), TrainingInput(admit=more) if done else TrainingInput(seed=more))
            done = size
        tell(size)
        trained, untrained = (float(asked.helped(size, head).mean()) for head in (trainer.version.head, plain))
        points.append(SizePoint(size, trained, untrained))
    return points


async def _state_of(pool: Pool, reader: str) -> tuple[PoolState, list[str]]:
    state = await pool.member_state(reader)
    ids = state.teaching(pool.guarded)
    if len(ids) < LEAST:
        raise InputError(
            f"the pool has {count_of(len(ids), 'exemplar')} served to all members; a curve needs at least {LEAST}"
        )
    return state, ids


def _tenths(count: int) -> list[int]:
    return sorted({max(SHOTS + 1, round(count * tenth / TENTHS)) for tenth in range(1, TENTHS + 1)})


async def _ask(pool: Pool, lessons: list[TrainingPair]) -> Probes:
    """Choose the pairs that are used as queries, and compute how much each exemplar helps each of them."""
    held_out = [at for at, each in enumerate(lessons) if fraction("held out", each.id) < HELD_OUT]
    rows = (held_out if len(held_out) >= MIN_HELD_OUT else list(range(len(lessons))))[:MAX_QUERIES]
    embedder = pool.memory.embedder
    memories = await embedder.embed([each.text for each in lessons])
    prompts = await embedder.embed([each.query for each in lessons])
    questions = prompts[rows]
    hidden = questions @ prompts.T >= SAME_PROBLEM
    hidden[np.arange(len(rows)), rows] = True
    stand_in, helps = StandIn(embedder), np.zeros(hidden.shape)
    for row, at in enumerate(rows):
        helps[row] = 1 - await stand_in.p_not(lessons[at], lessons)
        hidden[row] |= [each.answer == lessons[at].answer for each in lessons]
        await asyncio.sleep(0)
    return Probes(rows, len(held_out) >= MIN_HELD_OUT, questions, memories, hidden, helps)


def _best(helped: dict[int, Helps]) -> int:
    """Return the smallest size that is not clearly worse than the best: the one-standard-error rule (Breiman 1984)."""
    top = max(helped, key=lambda size: float(helped[size].mean()))
    for size in sorted(helped):
        worse = helped[top] - helped[size]
        if worse.mean() <= worse.std() / np.sqrt(len(worse)):
            return size
    return top


DIVERSITY = 0.5
"""Factor of the penalty for an exemplar that is similar to one already chosen: the penalty is this times their
cosine."""
FIRST = 100.0
"""Bonus of seed exemplars (added by the owner). It is higher than any other value: seed exemplars are kept first."""


async def trim(pool: Pool, size: int, by: str) -> list[str]:
    """Evict the least valuable exemplars until `size` are left; return the ids of the evicted exemplars.

    Seed exemplars are never evicted; more than `size` exemplars can be left. Exemplars that were derived from evicted
    exemplars are still served. The log keeps the evicted exemplars.

    Raises:
        InputError: the size is below 1, or `by` is not the owner.
    """
    state = await pool.state()
    if size < 1 or (by != state.owner):
        raise InputError(
            f"only the owner {state.owner!r} can trim the pool, and at least 1 exemplar must be left;"
            f" {by!r} requested to leave {size}"
        )
    held = [
        id_
        for id_, each in state.standings.items()
        if each.verdict and each.verdict.verdict == "admitted" and id_ not in state.evicted
    ]
    if len(held) <= size:
        return []
    order = await keeping_order(pool, state, held)
    by_hand = sum(state.standings[id_].by_hand for id_ in held)
    if gone := order[max(size, by_hand) :]:
        await pool.write(ExemplarEvicted(ids=tuple(gone)), by)
    return gone


async def keeping_order(pool: Pool, state: PoolState, ids: Sequence[str]) -> list[str]:
    """Return exemplar ids in the order of their value: a pool of n exemplars keeps the first n.

    Seed exemplars come first. Then the best remaining exemplar is chosen repeatedly. The value of an exemplar is the
    score of its verdict and the feedback on it, less a penalty for similarity to exemplars already chosen.
    """
    texts = [f"{state.standings[id_].exemplar.query}\n{state.standings[id_].exemplar.answer}" for id_ in ids]
    vectors = np.asarray(await pool.memory.embedder.embed(texts), np.float64)
    verdicts = [state.standings[id_].verdict for id_ in ids]
    worth = np.array([each.score / 100 if each else 0.0 for each in verdicts]) + values(state.helped, ids)
    worth += np.array([FIRST * state.standings[id_].by_hand for id_ in ids])
    likeness, order = np.zeros(len(ids)), list[str]()
    for _ in ids:
        best = int((worth - DIVERSITY * likeness).argmax())
        order.append(ids[best])
        worth[best] = -np.inf
        likeness = np.maximum(likeness, vectors @ vectors[best])
    return order
