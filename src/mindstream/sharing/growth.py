"""How large a pool does best, and how it learns as it grows: how well its own pairs are helped at each size.

Of a size are the exemplars that the capacity policy keeps, or those that were admitted first. Some pairs are held out,
and asked for their shots, each without itself and its like; a retriever that has learned from the others ranks, and the
stand-in says how near the shots' answers come to theirs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mindstream.chance import fraction
from mindstream.errors import InputError
from mindstream.sharing.capacity import keeping_order
from mindstream.sharing.events import Form
from mindstream.sharing.learning import LEAST as LEARNING
from mindstream.sharing.pool import Pool
from mindstream.sharing.retriever.ranking import ALIKE, Floats, Head, StandIn
from mindstream.sharing.state import PoolState
from mindstream.sharing.training import Lesson, Lessons, Newest, Tell, Trainer, form_of, lesson_of

SHOTS = 3
LEAST, MOST = 20, 100
"""A curve wants so many exemplars; at most so many pairs are asked for."""
HELD_OUT, LEAST_HELD_OUT = 0.15, 12
"""Where fewer are held out, all are asked for."""
TENTHS = 10

Helps = NDArray[np.float64]


@dataclass(frozen=True)
class SizePoint:
    """How well pairs are helped by a pool of a size: 0 to 1, the mean of their first shots.

    Attributes:
        untrained: the same by the cosine.
    """

    size: int
    helped: float
    untrained: float


@dataclass(frozen=True)
class SizeCurve:
    """How well pairs are helped by pools of each size.

    Attributes:
        asked: so many pairs were asked for, by a retriever that learned as the pool's does;
            held_out: it learned from the others alone.
        by_hand: so many were laid in by hand: a pool is not made smaller.
        best: the smallest size that does no worse than the best by more than the standard error of the difference.
    """

    form: Form
    points: tuple[SizePoint, ...]
    asked: int
    held_out: bool
    by_hand: int
    best: int


@dataclass(frozen=True)
class Probes:
    """Pairs that are asked for their shots, against exemplars in an order.

    Attributes:
        rows: which of the exemplars are asked for.
        hidden: which exemplars a pair is not shown: itself, and its like; helps: how much each helps.
    """

    rows: list[int]
    held_out: bool
    questions: Floats
    memories: Floats
    hidden: NDArray[np.bool_]
    helps: Helps

    def others(self, lessons: Sequence[Lesson]) -> list[Lesson]:
        """Return what is learned from: all but the pairs held out."""
        out = set(self.rows) if self.held_out else set()
        return [each for at, each in enumerate(lessons) if at not in out]

    def helped(self, size: int, head: Head) -> Helps:
        """Return how much its first shots of the first so many exemplars help each pair, on average."""
        near = (head.ask(self.questions) @ head.project(self.memories[:size]).T).astype(np.float64)
        near[self.hidden[:, :size]] = -np.inf
        order = np.argsort(-near, axis=1, kind="stable")[:, :SHOTS]
        shown = np.take_along_axis(near, order, 1) > -np.inf
        helped: Helps = (np.take_along_axis(self.helps, order, 1) * shown).sum(1) / SHOTS
        return helped


async def size_curve(pool: Pool, reader: str, form: Form | None = None) -> SizeCurve:
    """Measure a pool at tenths of its size; `form`: of what is embedded, None: the pool's own.

    Raises:
        InputError: it is too small, or the reader is no member.
    """
    state, ids = await _state_of(pool, reader)
    by_hand = sum(bool(each.verdict and each.verdict.by_hand) for each in map(state.standings.__getitem__, ids))
    lessons = [lesson_of(state, id_, form) for id_ in await keeping_order(pool, state, ids)]
    asked = await _ask(pool, lessons)
    plain = Head.untrained(asked.memories.shape[1])
    trainer = Trainer(pool.memory.embedder, plain.width)
    if len(ids) >= LEARNING:
        in_order = sorted(asked.others(lessons), key=lambda each: state.standings[each.id].judged)
        await trainer.study(Newest(), Lessons(seed=in_order))
    sizes = _tenths(len(ids))
    helped = {size: asked.helped(size, trainer.head) for size in sizes}
    points = [SizePoint(n, float(each.mean()), float(asked.helped(n, plain).mean())) for n, each in helped.items()]
    best = _best({size: each for size, each in helped.items() if size >= min(by_hand, sizes[-1])})
    return SizeCurve(form or form_of(state), tuple(points), len(asked.rows), asked.held_out, by_hand, best)


async def growth_curve(pool: Pool, reader: str, tell: Tell = lambda _: None) -> list[SizePoint]:
    """Let a retriever learn from a pool as it grew, and measure it at each tenth, always by the same pairs.

    Raises:
        InputError: the pool is too small, or the reader is no member.
    """
    state, ids = await _state_of(pool, reader)
    lessons = [lesson_of(state, id_) for id_ in ids]
    asked = await _ask(pool, lessons)
    plain = Head.untrained(asked.memories.shape[1])
    others = {each.id for each in asked.others(lessons)}
    trainer, points, done = Trainer(pool.memory.embedder, plain.width), list[SizePoint](), 0
    for size in _tenths(len(ids)):
        if size >= LEARNING:
            more = [each for each in lessons[done:size] if each.id in others]
            await trainer.study(Newest(), Lessons(admit=more) if done else Lessons(seed=more))
            done = size
        tell(size)
        trained, untrained = (float(asked.helped(size, head).mean()) for head in (trainer.head, plain))
        points.append(SizePoint(size, trained, untrained))
    return points


async def _state_of(pool: Pool, reader: str) -> tuple[PoolState, list[str]]:
    state = await pool.member_state(reader)
    ids = state.teaching(pool.guarded)
    if len(ids) < LEAST:
        raise InputError(f"the pool has {len(ids)} exemplars that all may read, and a curve wants {LEAST}")
    return state, ids


def _tenths(count: int) -> list[int]:
    return sorted({max(SHOTS + 1, round(count * tenth / TENTHS)) for tenth in range(1, TENTHS + 1)})


async def _ask(pool: Pool, lessons: list[Lesson]) -> Probes:
    """Choose who is asked for shots, and weigh what each exemplar would help."""
    held_out = [at for at, each in enumerate(lessons) if fraction("held out", each.id) < HELD_OUT]
    rows = (held_out if len(held_out) >= LEAST_HELD_OUT else list(range(len(lessons))))[:MOST]
    embedder = pool.memory.embedder
    memories = await embedder.embed([each.text for each in lessons])
    prompts = await embedder.embed([each.query for each in lessons])
    questions = prompts[rows]
    hidden = questions @ prompts.T >= ALIKE
    hidden[np.arange(len(rows)), rows] = True
    stand_in, helps = StandIn(embedder), np.zeros(hidden.shape)
    for row, at in enumerate(rows):
        helps[row] = 1 - await stand_in.p_not(lessons[at], lessons)
        hidden[row] |= [each.answer == lessons[at].answer for each in lessons]
        await asyncio.sleep(0)
    return Probes(rows, len(held_out) >= LEAST_HELD_OUT, questions, memories, hidden, helps)


def _best(helped: dict[int, Helps]) -> int:
    """Choose by the one-standard-error rule (Breiman 1984)."""
    top = max(helped, key=lambda size: float(helped[size].mean()))
    for size in sorted(helped):
        worse = helped[top] - helped[size]
        if worse.mean() <= worse.std() / np.sqrt(len(worse)):
            return size
    return top
