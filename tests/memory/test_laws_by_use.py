"""Random recalls and sleeps: levels, times and archived records follow the decay rules exactly."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from keys import key_of
from laws import Law
from world import LAWS, World

from mindstream.clock import DAY_S, HOUR_S
from mindstream.log.events import Remembered
from mindstream.memory.store.record import RecordDraft

NAMES = ("fox", "boat", "song", "clock", "tree", "fox boat")
spans = st.one_of(
    st.floats(0, 3 * HOUR_S), st.floats(0, 40 * DAY_S),
    st.sampled_from([LAWS.asleep_s, LAWS.passed_over_s, *map(LAWS.interval_s, range(6))]),
)  # fmt: skip
steps = st.lists(
    st.tuples(spans, st.sampled_from(["recall", "commit", "look", "sleep"]), st.sampled_from(NAMES), st.integers(1, 2)),
    min_size=1, max_size=12,
)  # fmt: skip


async def use(world: World, law: Law, doing: str, query: str, k: int) -> None:
    """Apply an operation to a stream, and the corresponding rule to the model."""
    stream = world.stream
    if doing == "sleep":
        before = {record.id for record in await stream.latest("dream", 99)}
        words = {record.id: record.text for record in await stream.store.records(key_of("ann"), list(law.held))}
        dream = await stream.sleep(n=99)
        gone = law.fade(list(law.held), world.clock.now(), 14 * DAY_S)
        made = [record for record in await stream.latest("dream", 99) if record.id not in before]
        assert [record.text for record in made] == [dream][: bool(gone)]
        for record in made:
            law.held[record.id] = [0, False, record.accessed]
            drawn = await stream.evidence_of(record.id)  # the archived texts, word for word
            assert {each.record.id: each.record.text for each in drawn.evidence} == {id_: words[id_] for id_ in gone}
        return
    found = await stream.recall(query, k, touch=doing == "recall")
    if found.touch is None:
        assert not found
    elif doing != "look":
        law.recall(found.touch)
        if doing == "commit":
            await stream.commit(Remembered(count=0, kinds={}), touch=found.touch)


async def live(folder: Path, done: list[tuple[float, str, str, int]]) -> None:
    world, law = World(folder), Law()
    texts = [RecordDraft(text=f"a {name}, seen on day {n}", importance=3) for n, name in enumerate(NAMES * 2)]
    for record in await world.stream.retain_all(texts):
        law.held[record.id] = [0, False, record.accessed]
    for span, doing, query, k in done:
        world.clock.advance(span)
        await world.stream.settle()
        await use(world, law, doing, query, k)
        await world.stream.settle()
        records = (await world.store.changes(key_of("ann"), 0)).records
        holds = {each.id: [each.level, each.lasting, each.accessed] for each in records if each.forgotten is None}
        assert holds == law.held
        assert {each.id for each in await world.stream.archive()} == law.forgotten
    await world.close()


@given(steps)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_levels_follow_the_decay_rules_under_random_use(done: list[tuple[float, str, str, int]]) -> None:
    with tempfile.TemporaryDirectory() as place:
        asyncio.run(live(Path(place) / "data", done))
