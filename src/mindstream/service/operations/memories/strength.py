"""How a memory is held, and how it will fade if it is not recalled any more."""

from __future__ import annotations

import numpy as np

from mindstream.clock import Moment
from mindstream.memory.fading import Strength, curve
from mindstream.memory.store.record import FADING
from mindstream.service.operations.house import House
from mindstream.service.operations.memories.memory import MemoryId, find
from mindstream.service.operations.shapes import Reply
from mindstream.service.operations.table import operation
from mindstream.service.operations.who import Who

DAYS = 90
DRAWN_BY_A_SLEEP = 20
"""So many records a sleep is taken to draw, once a day, as the operation `memory.sleep` does by itself."""


class Kept(Reply):
    """The chance that it is held still, so many days after it was last recalled."""

    day: float
    kept: float


class Held(Reply):
    """How a memory is held.

    `fades`: false for kinds that never do. `level` of `lasting_level`: there it never fades. `rises_after_s`: a recall
    counts when so long has passed since the last one. `curve`: with one sleep a day, each of which draws it with the
    chance `drawn`.
    """

    fades: bool
    level: int
    lasting_level: int
    lasting: bool
    last_recalled: Moment
    rises_after_s: float
    drawn: float
    curve: list[Kept]


@operation("memory.strength", "read", "GET /users/{user}/memories/{id}/strength", cli="memory curve")
async def strength(house: House, who: Who, ask: MemoryId) -> Held:
    """Say how well a memory is held, and predict how it fades if it is not recalled any more."""
    memory = await house.memory(who)
    record = await find(memory, ask.id)
    laws = memory.strength or Strength()
    there = (await memory.columns()).holding(FADING, house.clock.now())
    drawn = min(1.0, DRAWN_BY_A_SLEEP / max(1, int(np.count_nonzero(there))))
    fades = record.kind in FADING and record.forgotten is None
    lasting = record.lasting or not fades
    level = laws.lasting_level if lasting else max(0, record.level)
    points = curve(laws, level, days=DAYS, drawn=drawn) if fades else []
    return Held(
        fades=fades, level=level, lasting_level=laws.lasting_level, lasting=lasting, last_recalled=record.accessed,
        rises_after_s=laws.interval_s(level), drawn=drawn, curve=[Kept(day=day, kept=kept) for day, kept in points],
    )  # fmt: skip
