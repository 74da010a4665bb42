"""What happens to things changes what residents do, in a running town and at once; then the plan goes on."""

from __future__ import annotations

from pathlib import Path

import pytest
from hamlet import HAMLET, hamlet

from mindstream.town.events import Act, Acted, ObjectChanged
from mindstream.town.formats.town_file import parse_town
from mindstream.town.journal import rows_after
from mindstream.town.profile import Profile
from mindstream.town.prompts.see_to import Remedy, SeeTo
from mindstream.town.rules.conditions import is_danger, kind_of
from mindstream.town.rules.mishaps import see_to
from mindstream.town.setting import Setting
from mindstream.town.source import setting_of
from mindstream.town.town import Town

HOUR = 360
ROOM = "Hamlet:Mill House:room:"


def village(seed: int = 1, **profile: object) -> Setting:
    """Return the hamlet with a fridge in Mill House, and a shop where the café was."""
    text = HAMLET.replace(".1...s.1...t.k....p.", ".1.f.s.1...t.k....p.").replace(
        's = "shower"', 's = "shower"\nf = "fridge"'
    )
    text = text.replace("Oak Cafe", "Oak Market").replace(':cafe"', ':store"').replace(":cafe:", ":store:")
    text = text.replace('k = "counter"', 'k = "grocery shelf"').replace(":counter", ":grocery shelf")
    text = text.replace('["Oak Market:store:piano"]', '["Oak Market:store:grocery shelf"]')
    return setting_of(parse_town(text, Path()), seed=seed, profile=Profile.model_validate(profile))


async def lived(
    folder: Path, setting: Setting, start: float, minutes: int, *things: tuple[str, str]
) -> tuple[dict[str, list[Act]], list[ObjectChanged], str]:
    """Live up to an hour of the first day, put things into conditions, live on: what was done since, what changed."""
    begun = int(start * HOUR)
    async with Town.open(folder, setting) as town:
        await town.run(until=begun)
        for thing, condition in things:
            await town.set_object(thing, condition)
        await town.run(until=begun + minutes * 6)
        rows = [row async for row in rows_after(town.store) if getattr(row.event, "step", -1) > begun]
        digest = await town.digest()
    acts: dict[str, list[Act]] = {name: [] for name in setting.people}
    for row in rows:
        if isinstance(row.event, Acted):
            acts[row.mind].append(row.event.act)
    return acts, [row.event for row in rows if isinstance(row.event, ObjectChanged)], digest


def about(acts: list[Act], thing: str) -> list[Act]:
    return [act for act in acts if act.sees_to == thing]


@pytest.mark.parametrize(
    ("condition", "does"),
    [
        ("leaking", "repairing"), ("burning", "putting out the fire"), ("a broken handle", "broken handle"),
        ("overflowing", "mopping up"), ("covered in mud", "cleaning"), ("smoke coming out of it", "putting out"),
    ],
)  # fmt: skip
async def test_what_is_wrong_at_home_is_mended_by_one_and_right_again(
    tmp_path: Path, condition: str, does: str
) -> None:
    acts, changes, _ = await lived(tmp_path, hamlet(talks=False), 6.5, 70, (ROOM + "shower", condition))
    mine = about(acts["Ada Brook"], ROOM + "shower")
    assert mine and mine[0].since <= 6.5 * HOUR + 30 and any(does in act.what for act in mine)
    assert not about(acts["Ben Hale"], ROOM + "shower") or is_danger(condition), "he sleeps, or leaves it to her"
    assert changes[0].by == "Ada Brook" and {each.condition for each in changes} == {""}
    assert acts["Ada Brook"][-1].why == "plan", "then the day goes on"
    spent = sum(act.until - act.since for act in mine) / 6
    assert 9 <= spent <= 60


@pytest.mark.parametrize("condition", ["freshly polished", "clean and tidy", "newly painted green"])
async def test_what_is_fine_changes_nothing(tmp_path: Path, condition: str) -> None:
    plain, _, _ = await lived(tmp_path / "plain", hamlet(talks=False), 6.5, 30)
    acts, changes, _ = await lived(tmp_path / "odd", hamlet(talks=False), 6.5, 30, (ROOM + "shower", condition))
    assert acts == plain and not changes


@pytest.mark.parametrize("condition", ["leaking", "burning", "occupied", "empty"])
async def test_who_observes_nothing_goes_on(tmp_path: Path, condition: str) -> None:
    town = hamlet(observes=False)
    plain, _, _ = await lived(tmp_path / "plain", town, 6.1, 30)
    acts, _, _ = await lived(tmp_path / "odd", hamlet(observes=False), 6.1, 30, (ROOM + "shower", condition))
    assert acts == plain


async def test_two_who_see_the_same_do_not_both_mend_it(tmp_path: Path) -> None:
    acts, changes, _ = await lived(tmp_path, hamlet(talks=False), 7.1, 60, (ROOM + "shower", "dripping"))
    mending = {name for name, done in acts.items() if any(act.leaves for act in about(done, ROOM + "shower"))}
    assert len(mending) == 1 and [each.condition for each in changes] == [""]


async def test_fire_wakes_and_a_leak_does_not(tmp_path: Path) -> None:
    night = 3.0
    asleep, _, _ = await lived(tmp_path / "leak", hamlet(), night, 30, (ROOM + "shower", "leaking"))
    assert not any(asleep.values())
    acts, changes, _ = await lived(tmp_path / "fire", hamlet(), night, 60, (ROOM + "shower", "on fire"))
    assert "putting out the fire" in acts["Ada Brook"][0].what and changes[0].step <= night * HOUR + 30
    assert acts["Ada Brook"][-1].asleep and acts["Ben Hale"][-1].asleep, "then they go back to bed"
    assert not acts["Cleo Marsh"], "she sleeps in another house"


async def test_what_was_slept_through_is_seen_to_in_the_morning(tmp_path: Path) -> None:
    acts, _, _ = await lived(tmp_path, hamlet(), 3.0, 3 * 60 + 5, (ROOM + "shower", "leaking"))
    first = about(acts["Ada Brook"], ROOM + "shower")[0]
    assert first.since >= 6 * HOUR


async def test_what_is_missing_is_bought_where_a_shop_is_known(tmp_path: Path) -> None:
    acts, changes, _ = await lived(tmp_path, village(talks=False), 9.5, 90, (ROOM + "fridge", "empty"))
    at_home = about(acts["Ben Hale"], ROOM + "fridge")
    assert [act.what for act in at_home][:2] == ["buying food", "refilling the fridge"]
    assert at_home[0].place == "Hamlet:Oak Market:store:grocery shelf" and changes[-1].condition == ""


async def test_what_is_taken_is_waited_for_and_then_used(tmp_path: Path) -> None:
    setting = hamlet(talks=False)
    async with Town.open(tmp_path, setting) as town:
        await town.run(until=6 * HOUR)
        ada = town.residents["Ada Brook"].state
        shower = next(block for block in ada.blocks if block.place == ROOM + "shower")
        begin = setting.step_at(0, shower.start)
        await town.run(until=begin - 12)
        await town.set_object(ROOM + "shower", "occupied")
        await town.run(until=begin + 20)
        waits = town.residents["Ada Brook"].state.act
        assert waits is not None and waits.why == "wait" and waits.sees_to == ROOM + "shower"
        await town.set_object(ROOM + "shower", "")
        await town.run(until=begin + 60)
        used = town.residents["Ada Brook"].state.act
    assert used is not None and used.place == ROOM + "shower" and used.why == "plan"


async def test_who_waits_long_does_without(tmp_path: Path) -> None:
    acts, _, _ = await lived(tmp_path, hamlet(talks=False), 6.0, 120, (ROOM + "shower", "occupied"))
    waits = about(acts["Ada Brook"], ROOM + "shower")
    assert waits[-1].what.startswith("doing without") and sum(act.until - act.since for act in waits) <= 30 * 6
    tried = [n for n, act in enumerate(acts["Ada Brook"][:-1]) if act.place == ROOM + "shower"]
    assert tried and all(acts["Ada Brook"][n + 1].since - acts["Ada Brook"][n].since <= 12 for n in tried)


async def test_the_same_seed_gives_the_same_journal_also_when_resumed(tmp_path: Path) -> None:
    things = ((ROOM + "shower", "leaking"), (ROOM + "bed", "burning"))
    *_, straight = await lived(tmp_path / "a", hamlet(), 7.2, 40, *things)
    *_, again = await lived(tmp_path / "b", hamlet(), 7.2, 40, *things)
    assert straight == again
    begun = int(7.2 * HOUR)
    async with Town.open(tmp_path / "c", hamlet()) as town:
        await town.run(until=begun)
        for thing, condition in things:
            await town.set_object(thing, condition)
    for step in (*range(begun + 1, begun + 60, 7), begun + 240):
        async with Town.open(tmp_path / "c") as town:
            await town.run(until=step)
            digest = await town.digest()
    assert digest == straight


AROUND = (
    "shower in the bathroom of Mill House", "bed in the room of Mill House", "closet in the hall of Mill House",
    "fridge in the kitchen of Mill House", "grocery shelf in the store of Oak Market", "table in the cafe of Elm Cafe",
)  # fmt: skip


def remedy(sees: str, at: int, **more: object) -> Remedy:
    ask = SeeTo(who="Jo", identity="Jo", sees=sees, at=at, around=AROUND, when="08:00", **{"doing": "resting", **more})
    reply: Remedy = see_to(ask)
    return reply


def test_what_is_done_fits_what_is_the_matter() -> None:
    tools, mend = remedy("the shower is leaking", 1).tasks
    assert AROUND[tools.place - 1].startswith("closet") and mend.place == 1 and mend.leaves
    assert remedy("the stove is burning", 1).tasks[0].minutes <= 5
    assert "turning off" in remedy("the stove is burning", 1).tasks[0].what
    wait = remedy("the shower is occupied", 1)
    assert wait.waits and AROUND[wait.tasks[0].place - 1].startswith("bed") and wait.resumes
    assert not remedy("the shower is occupied", 1, waited=15).resumes
    assert remedy("the fridge is empty", 4, sells=(5,)).tasks[0].place == 5
    out = remedy("the fridge is empty", 4, serves=(6,), doing="having dinner (cooking)")
    assert out.tasks[0].place == 6 and not out.resumes
    assert "Kim" in remedy("the fridge is empty", 4, present=("Kim Lee",)).tasks[0].what
    told = remedy("the table has a broken leg", 6, in_charge=False).tasks
    assert "telling" in told[0].what and not any(task.leaves for task in told)


@pytest.mark.parametrize(
    ("condition", "kind"),
    [
        ("", "fine"), ("as it should be", "fine"), ("not clean", "broken"), ("out of order", "broken"),
        ("out of milk", "missing"), ("in flames", "fire"), ("being used", "taken"), ("left on", "on"),
        ("sticky with jam", "dirty"), ("flooded", "flowing"), ("newly repaired and working", "fine"),
        ("warm from the sun", "fine"), ("humming softly", "fine"), ("smelling of gas", "fire"),
    ],
)  # fmt: skip
def test_conditions_are_told_apart(condition: str, kind: str) -> None:
    assert kind_of(condition) == kind
