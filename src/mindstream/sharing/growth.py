"""How large a pool does best: how well its own pairs are helped by smaller pools of the same exemplars.

The exemplars of each size are those that the capacity policy keeps. Pairs that were held out from training are asked
for their shots, each without itself and its like, and the stand-in says how near the shots' answers come to theirs.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mindstream.chance import fraction
from mindstream.errors import InputError
from mindstream.sharing.capacity import keeping_order
from mindstream.sharing.events import Form
from mindstream.sharing.pool import Pool
from mindstream.sharing.retriever.corpus import ALIKE
from mindstream.sharing.retriever.head import Head
from mindstream.sharing.retriever.learned import Recipe
from mindstream.sharing.retriever.unlikely import StandIn
from mindstream.sharing.training import Lesson, lesson_of
from mindstream.sharing.versions import read_newest

SHOTS = 3
LEAST, MOST = 20, 100
"""A curve wants so many exemplars; at most so many pairs are asked for."""
LEAST_HELD_OUT = 12
"""Where fewer are held out, all are asked for."""
TENTHS = 10

Helps = NDArray[np.float64]


@dataclass(frozen=True)
class SizePoint:
    """How well pairs are helped by a pool of a size: 0 to 1, the mean of their first shots."""

    size: int
    helped: float


@dataclass(frozen=True)
class SizeCurve:
    """How well pairs are helped by pools of each size.

    Attributes:
        asked: so many pairs were asked for; held_out: the retriever was not trained on them.
        by_hand: so many were laid in by hand: a pool is not made smaller.
        version: of the retriever that ranked, the same at each size; 0: untrained.
        best: the smallest size that does no worse than the best by more than the standard error of the difference.
    """

    form: Form
    points: tuple[SizePoint, ...]
    asked: int
    held_out: bool
    by_hand: int
    version: int
    best: int


async def size_curve(pool: Pool, form: Form | None = None) -> SizeCurve:
    """Measure a pool at tenths of its size; `form`: of what is embedded, None: the pool's own.

    Raises:
        InputError: it is too small.
    """
    state = await pool.state()
    ids = state.teaching(pool.guarded)
    if len(ids) < LEAST:
        raise InputError(f"the pool has {len(ids)} exemplars that all may read, and a curve wants {LEAST}")
    by_hand = sum(bool(each.verdict and each.verdict.by_hand) for each in map(state.standings.__getitem__, ids))
    lessons = [lesson_of(state, id_, form) for id_ in await keeping_order(pool, state, ids)]
    held_out = [at for at, each in enumerate(lessons) if fraction("held out", each.id) < Recipe().held_out]
    asked = (held_out if len(held_out) >= LEAST_HELD_OUT else list(range(len(lessons))))[:MOST]
    newest = await read_newest(pool.stream, state.version)
    head = newest.version.head if newest.version else None
    near, helps = await _compare(pool, lessons, asked, head)
    sizes = sorted({max(SHOTS + 1, round(len(ids) * tenth / TENTHS)) for tenth in range(1, TENTHS + 1)})
    helped = {size: _helped(near[:, :size], helps[:, :size]) for size in sizes}
    points = tuple(SizePoint(size, float(each.mean())) for size, each in helped.items())
    own = state.created.form if state.created else "composed"
    return SizeCurve(
        form or own, points, len(asked), asked == held_out[:MOST], by_hand, newest.number if head else 0,
        _best({size: each for size, each in helped.items() if size >= min(by_hand, sizes[-1])}),
    )  # fmt: skip


async def _compare(pool: Pool, lessons: list[Lesson], asked: list[int], head: Head | None) -> tuple[Helps, Helps]:
    """Return how near each pair that is asked for ranks each exemplar, and how much that one helps."""
    embedder = pool.stream.embedder
    texts, queries = [each.text for each in lessons], [lessons[at].query for at in asked]
    memories, questions = await embedder.embed(texts), await embedder.embed(queries)
    prompts = await embedder.embed([each.query for each in lessons])
    alike = questions @ prompts.T >= ALIKE
    head = head if head is not None and head.width == memories.shape[1] else None
    near = (head.project(questions) @ head.project(memories).T if head else questions @ memories.T).astype(np.float64)
    near[alike] = -np.inf
    near[np.arange(len(asked)), asked] = -np.inf
    stand_in, helps = StandIn(embedder), np.zeros(near.shape)
    for row, at in enumerate(asked):
        helps[row] = 1 - await stand_in.p_not(lessons[at], lessons)
        near[row, [i for i, each in enumerate(lessons) if each.answer == lessons[at].answer]] = -np.inf
        await asyncio.sleep(0)
    return near, helps


def _helped(near: Helps, helps: Helps) -> Helps:
    """Return how much its first shots help each pair, on average; nothing where it has none."""
    order = np.argsort(-near, axis=1, kind="stable")[:, :SHOTS]
    shown = np.take_along_axis(near, order, 1) > -np.inf
    helped: Helps = (np.take_along_axis(helps, order, 1) * shown).sum(1) / SHOTS
    return helped


def _best(helped: dict[int, Helps]) -> int:
    """Choose by the one-standard-error rule (Breiman 1984)."""
    top = max(helped, key=lambda size: float(helped[size].mean()))
    for size in sorted(helped):
        worse = helped[top] - helped[size]
        if worse.mean() <= worse.std() / np.sqrt(len(worse)):
            return size
    return top
