"""Levels follow the law of strength exactly through the loop's own tools, whatever is recalled and slept on."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from laws import Law
from lives import call, living, rows, script
from world import LAWS

from mindstream.clock import DAY_S, HOUR_S, ManualClock
from mindstream.life.life import Habits
from mindstream.life.memory_tools import MARK, RETURNED
from mindstream.memory.stream import Stream

NAMES = ("fox", "boat", "song", "clock", "tree", "star", "bell")
spans = st.one_of(
    st.floats(1, 3 * HOUR_S), st.floats(1, 40 * DAY_S),
    st.sampled_from([LAWS.asleep_s, LAWS.passed_over_s, *map(LAWS.interval_s, range(6))]),
)  # fmt: skip
steps = st.lists(st.tuples(spans, st.sampled_from(["R", "R", "S"]), st.sampled_from(NAMES)), min_size=1, max_size=8)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps)
def test_levels_are_what_the_law_says(taken: list[tuple[float, str, str]]) -> None:
    asyncio.run(live_by(taken))


async def live_by(taken: list[tuple[float, str, str]]) -> None:
    looks = [call("I", tip=f"look {n}", timeout=0) for n in range(len(taken))]  # the same again would be refused
    lines = [
        [look, call("S") if tool == "S" else call("R", query=f"the {name}, {n}")]
        for n, (look, (_, tool, name)) in enumerate(zip(looks, taken, strict=True))
    ]
    begin = [call("U", memory=f"The {name} of the keeper is number {n}.") for n, name in enumerate(NAMES)]
    model = script([begin, "remembered", *(part for line in lines for part in (line, "done"))], dream=["a dream"] * 9)
    clock, law = ManualClock(), Law()
    with tempfile.TemporaryDirectory() as folder:
        async with living(Path(folder), model, clock=clock, habits=Habits(drawn=99)) as life:
            await life.run(turns=1)
            await take_in(life.stream, law)
            for n, (seconds, tool, name) in enumerate(taken):
                clock.advance(seconds)
                await follow(life.stream, law, tool, f"the {name}, {n}", clock.now())
                await life.run(turns=1)
                await take_in(life.stream, law)
                held = await life.stream.store.records("keeper", list(law.held))
                assert {each.id: [each.level, each.lasting, each.accessed] for each in held} == law.held
                assert {each.id for each in await life.stream.archive()} == law.forgotten
            assert len(await rows(life.stream, "turn_ended")) == len(taken) + 1


async def follow(stream: Stream, law: Law, tool: str, query: str, now: float) -> None:
    """Do to the model what the turn is about to do."""
    if tool == "S":
        law.fade(list(law.held), now, 14 * DAY_S)
        return
    found = await stream.recall(query, RETURNED, kinds=("note", "dream"), where=MARK, touch=False)
    if found.touch is not None:
        law.recall(found.touch)


async def take_in(stream: Stream, law: Law) -> None:
    """Add what was written to the model: notes at first, then dreams, whose evidence is what was forgotten."""
    for record in [*await stream.latest("note", 99), *await stream.latest("dream", 99)]:
        if record.id not in law.held:
            law.held[record.id] = [0, False, record.created]
            assert set(record.evidence) <= law.forgotten
