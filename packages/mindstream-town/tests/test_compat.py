"""What the published code does where it is not what was meant: the default does what was meant, compat does that."""

from __future__ import annotations

from pathlib import Path

from hamlet import hamlet
from keys import key_of_resident
from mindstream_town.compat import NEVER, act_end, talk_end
from mindstream_town.events import DayPlanned, Perceived
from mindstream_town.journal import resident_of, rows_after
from mindstream_town.profile import COMPAT, Profile
from mindstream_town.residents.person import ByRank, policy_of
from mindstream_town.residents.plan import plan_day
from mindstream_town.residents.sight import is_in_sight
from mindstream_town.residents.turn import ResidentTurn
from mindstream_town.setting import Setting
from mindstream_town.state import applied
from mindstream_town.town import Town

from mindstream.clock import ManualClock
from mindstream.memory.memory import Memory
from mindstream.memory.recall.policies import Policy
from mindstream.memory.store.record import RecordDraft

DAY = 8_640


def published_hamlet() -> Setting:
    return hamlet(1, **COMPAT.model_dump())


async def lived(folder: Path, until: int) -> list[tuple[str, object]]:
    async with Town.open(folder, hamlet()) as town:
        await town.run(until=until)
        return [(resident_of(row), row.event) async for row in rows_after(town.store)]


async def policy_in(stream: Memory, profile: Profile) -> Policy:
    policy = policy_of(profile)
    return await policy.within(stream) if isinstance(policy, ByRank) else policy


async def recency(folder: Path, profile: Profile) -> dict[str, float]:
    """Return the part that recency has in the score of three memories, by their texts."""
    clock = ManualClock(1_000_000.0)
    async with Memory.open(folder, "ada", clock=clock) as stream:
        for text in ("a first walk", "a second walk", "a third walk"):
            await stream.retain(text, importance=3)
            clock.advance(3_600)
        found = await stream.recall("walk", 9, policy=await policy_in(stream, profile), touch=False)
        return {each.record.text: round(each.parts["recency"], 6) for each in found}


async def test_the_newest_is_the_most_recent_and_under_compat_the_oldest(tmp_path: Path) -> None:
    meant = await recency(tmp_path / "meant", Profile())
    published = await recency(tmp_path / "compat", COMPAT)
    assert meant["a third walk"] == 1.0 and meant["a first walk"] == 0.0
    assert published["a first walk"] == 0.5 and published["a third walk"] == 0.0
    assert 0 < published["a second walk"] < 0.5


async def test_what_is_idle_is_not_seen_and_under_compat_is_stored_with_poignancy_one(tmp_path: Path) -> None:
    assert not [seen for _, event in await lived(tmp_path / "a", 3_000) if isinstance(event, Perceived)
                for seen in event.seen if "idle" in seen]  # fmt: skip
    async with Town.open(tmp_path / "b", published_hamlet()) as town:
        await town.run(until=3_000)
        stream = town.residents["Ada Brook"].memory
        records = await stream.store.latest(key_of_resident("Ada Brook"), ["observation"], 100, now=stream.clock.now())
        idle = [record for record in records if record.text.endswith(" is idle")]
        policy = await policy_in(stream, COMPAT)
        found = await stream.recall("What is idle?", 50, policy=policy, touch=False)
    assert idle and {record.importance for record in idle} == {1.0}
    assert found and not {each.record.id for each in found} & {record.id for record in idle}, "and never comes to mind"


async def test_keywords_are_found_whatever_their_case_and_under_compat_only_in_lower_case(tmp_path: Path) -> None:
    async with Town.open(tmp_path, hamlet()) as town:
        ada = town.residents["Ada Brook"]
        await ada.memory.retain_all([RecordDraft(text="Ben Hale is singing", keywords=("ben hale", "singing"))])
        turn = ResidentTurn(ada, 0, town.setting, ada.state)
        assert [each.text for each in await turn.recall_about(["Ben Hale"], 5)] == ["Ben Hale is singing"]
        published = ResidentTurn(ada, 0, published_hamlet(), ada.state)
        assert await published.recall_about(["Ben Hale"], 5) == []
        assert [each.text for each in await published.recall_about(["singing"], 5)] == ["Ben Hale is singing"]


def test_an_act_ends_and_under_compat_only_at_a_step_of_exactly_that_time() -> None:
    """With steps of seven seconds, hardly any nine o'clock is hit."""
    meant, published = hamlet(step_s=7), hamlet(step_s=7, compat=True)
    assert meant.when(act_end(meant, 0, 540)).strftime("%d %H:%M:%S") == "13 09:00:03"
    late = published.when(act_end(published, 0, 540))
    assert late.strftime("%H:%M:%S") == "09:00:00" and late.day > 13
    assert act_end(hamlet(compat=True), 0, 540) == act_end(hamlet(), 0, 540) == 540 * 6
    odd = hamlet(step_s=3_500, compat=True)
    assert act_end(odd, 0, 1) == NEVER


def test_talks_last_as_long_as_their_words_and_under_compat_by_the_published_formula() -> None:
    lines = [("Ada Brook", "x" * 400), ("Ben Hale", "y" * 100)]
    meant, published = hamlet(), published_hamlet()
    assert talk_end(meant, 7, lines) == 7 + 3 * 6
    assert talk_end(published, 7, lines) == 12 + 3 * 6, "from the next whole minute on"
    assert COMPAT.talk_lines == 16


def test_the_last_column_and_row_are_seen_and_under_compat_are_not() -> None:
    meant, published = hamlet(), hamlet(compat=True)
    corner = (19, 7)
    assert is_in_sight(meant, corner, corner) and not is_in_sight(published, corner, corner)


async def test_a_new_day_has_new_goals_and_under_compat_the_first_days(tmp_path: Path) -> None:
    for name, profile in (("a", Profile()), ("b", COMPAT)):
        async with Town.open(tmp_path / name, hamlet(1, **profile.model_dump())) as town:
            ada = town.residents["Ada Brook"]
            first = DayPlanned(step=0, day=0, currently="", broad=("08:00 singing",), blocks=())
            turn = ResidentTurn(ada, DAY, town.setting, applied(ada.state, first, profile))
            await plan_day(turn, 1)
            assert (turn.state.broad == ("08:00 singing",)) is profile.compat
