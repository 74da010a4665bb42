"""Choose which exemplars a full pool keeps: well graded, helpful and diverse ones.

A pool that is too large can make answers worse.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mindstream.errors import InputError
from mindstream.sharing.events import ExemplarEvicted
from mindstream.sharing.feedback import values
from mindstream.sharing.pool import Pool
from mindstream.sharing.state import PoolState

DIVERSITY = 0.5
"""Factor of the penalty for similarity to an exemplar that is already chosen to be kept."""
FIRST = 100.0
"""Bonus of seed exemplars (those that the owner added); higher than any other value, so that they come first."""


async def trim(pool: Pool, size: int, by: str) -> list[str]:
    """Evict the least valuable exemplars until `size` are left; return the evicted ids.

    Seed exemplars are never evicted, so more than `size` can be left. Exemplars that were derived from evicted ones
    are still served. The log keeps the evicted exemplars.

    Raises:
        InputError: the size is below 1, or `by` is not the owner.
    """
    state = await pool.state()
    if size < 1 or (by != state.owner):
        raise InputError(
            f"only the owner {state.owner!r} can trim the pool, and to at least 1 exemplar;"
            f" it was requested by {by!r} for {size}"
        )
    held = [id_ for id_, each in state.standings.items() if _is_held(state, id_)]
    if len(held) <= size:
        return []
    order = await keeping_order(pool, state, held)
    by_hand = sum(_is_by_hand(state, id_) for id_ in held)
    if gone := order[max(size, by_hand) :]:
        await pool.write(ExemplarEvicted(ids=tuple(gone)), by)
    return gone


async def keeping_order(pool: Pool, state: PoolState, ids: Sequence[str]) -> list[str]:
    """Return exemplar ids in the order of their value: a pool of n exemplars keeps the first n.

    Seed exemplars come first. Then the best remaining exemplar is chosen repeatedly, with a penalty for similarity to
    those already chosen.
    """
    texts = [f"{state.standings[id_].exemplar.query}\n{state.standings[id_].exemplar.answer}" for id_ in ids]
    vectors = np.asarray(await pool.memory.embedder.embed(texts), np.float64)
    verdicts = [state.standings[id_].verdict for id_ in ids]
    worth = np.array([each.score / 100 if each else 0.0 for each in verdicts]) + values(state.helped, ids)
    worth += np.array([FIRST * _is_by_hand(state, id_) for id_ in ids])
    likeness, order = np.zeros(len(ids)), list[str]()
    for _ in ids:
        best = int((worth - DIVERSITY * likeness).argmax())
        order.append(ids[best])
        worth[best] = -np.inf
        likeness = np.maximum(likeness, vectors @ vectors[best])
    return order


def _is_by_hand(state: PoolState, id_: str) -> bool:
    verdict = state.standings[id_].verdict
    return bool(verdict and verdict.by_hand)


def _is_held(state: PoolState, id_: str) -> bool:
    standing = state.standings[id_]
    return bool(standing.verdict and standing.verdict.verdict == "admitted") and id_ not in state.evicted
