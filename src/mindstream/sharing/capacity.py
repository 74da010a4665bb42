"""What a full pool keeps: what was graded well, what helped, what is unlike the rest (too many memories can hurt)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mindstream.errors import InputError
from mindstream.sharing.events import ExemplarEvicted
from mindstream.sharing.pool import Pool
from mindstream.sharing.state import PoolState
from mindstream.sharing.utility import values

DIVERSITY = 0.5
"""What being like an exemplar that stays takes, at most."""


async def trim(pool: Pool, size: int, by: str) -> list[str]:
    """Let go of what is least worth keeping until `size` exemplars are left; return their ids.

    What was laid in by hand stays. What was drawn from those that go stays, too; they are still to be read in the log.

    Raises:
        InputError: the size is below 1, or somebody else than the owner trims the pool.
    """
    state = await pool.state()
    if size < 1 or (state.created and by != state.created.owner):
        raise InputError(f"a pool's owner trims it, to 1 exemplar or more; this is {by!r} and {size}")
    held = [id_ for id_, each in state.standings.items() if _is_held(state, id_)]
    if len(held) <= size:
        return []
    texts = [f"{state.standings[id_].exemplar.query}\n{state.standings[id_].exemplar.answer}" for id_ in held]
    kept = await _choose(pool, state, held, texts, size)
    gone = [id_ for at, id_ in enumerate(held) if at not in kept]
    if gone:
        await pool.write(ExemplarEvicted(ids=tuple(gone)), by)
    return gone


async def _choose(pool: Pool, state: PoolState, held: Sequence[str], texts: Sequence[str], size: int) -> set[int]:
    """Choose one after another: the best of what is left, where being like what was chosen counts against it."""
    vectors = np.asarray(await pool.stream.embedder.embed(texts), np.float64)
    verdicts = [state.standings[id_].verdict for id_ in held]
    worth = np.array([each.score / 100 if each else 0.0 for each in verdicts]) + values(state.helped, held)
    chosen = {at for at, each in enumerate(verdicts) if each and each.by_hand}
    likeness = (vectors @ vectors[sorted(chosen)].T).max(axis=1) if chosen else np.zeros(len(held))
    while len(chosen) < size:
        gains = worth - DIVERSITY * likeness
        gains[sorted(chosen)] = -np.inf
        best = int(gains.argmax())
        chosen.add(best)
        likeness = np.maximum(likeness, vectors @ vectors[best])
    return chosen


def _is_held(state: PoolState, id_: str) -> bool:
    standing = state.standings[id_]
    return bool(standing.verdict and standing.verdict.verdict == "admitted") and id_ not in state.evicted
