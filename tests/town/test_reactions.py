"""What happens to things changes what residents do, in a running town and at once; then the plan goes on."""

from __future__ import annotations

from pathlib import Path

import pytest
from hamlet import hamlet

from mindstream.models.prompt import RULES
from mindstream.models.rules import Rules
from mindstream.town.events import Act, Acted, ObjectChanged
from mindstream.town.journal import rows_after
from mindstream.town.prompts.see_to import Remedy, SeeTo
from mindstream.town.prompts.should_act import ShouldAct
from mindstream.town.setting import Setting
from mindstream.town.town import Town

HOUR = 360
ROOM = "Hamlet:Mill House:room:"


async def lived(
    folder: Path, setting: Setting, start: float, minutes: int, *things: tuple[str, str], danger: bool | None = None
) -> tuple[dict[str, list[Act]], list[ObjectChanged], str]:
    """Live up to an hour of the first day, put things into conditions, live on: what was done since, what changed."""
    begun = int(start * HOUR)
    async with Town.open(folder, setting) as town:
        await town.run(until=begun)
        for thing, condition in things:
            await town.set_object(thing, condition, danger=danger)
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
    ("condition", "does"), [("leaking", "mending"), ("burning", "ending a danger"), ("kaputt", "mending")]
)
async def test_what_is_wrong_at_home_is_mended_by_one_and_right_again(
    tmp_path: Path, condition: str, does: str
) -> None:
    acts, changes, _ = await lived(tmp_path, hamlet(talks=False), 6.5, 70, (ROOM + "shower", condition))
    mine = about(acts["Ada Brook"], ROOM + "shower")
    assert mine and mine[0].since <= 6.5 * HOUR + 30 and any(does in act.what for act in mine)
    assert not about(acts["Ben Hale"], ROOM + "shower") or condition == "burning", "he sleeps, or leaves it to her"
    assert changes[0].by == "Ada Brook" and {each.condition for each in changes} == {""}
    assert acts["Ada Brook"][-1].why == "plan", "then the day goes on"


@pytest.mark.parametrize("condition", ["freshly polished", "Clean and tidy"])
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
    assert [each.by for each in changes] == ["Ada Brook"]
    assert all(act.since < changes[0].step for act in about(acts["Ben Hale"], ROOM + "shower")), "he leaves it to her"


async def test_fire_wakes_and_a_leak_does_not(tmp_path: Path) -> None:
    night = 3.0
    asleep, _, _ = await lived(tmp_path / "leak", hamlet(), night, 30, (ROOM + "shower", "leaking"))
    assert not any(asleep.values())
    acts, changes, _ = await lived(tmp_path / "fire", hamlet(), night, 60, (ROOM + "shower", "on fire"))
    assert "ending a danger" in acts["Ada Brook"][0].what and changes[0].step <= night * HOUR + 30
    assert acts["Ada Brook"][-1].asleep and acts["Ben Hale"][-1].asleep, "then they go back to bed"
    assert not acts["Cleo Marsh"], "she sleeps in another house"


async def test_what_was_slept_through_is_seen_to_in_the_morning(tmp_path: Path) -> None:
    acts, _, _ = await lived(tmp_path, hamlet(), 3.0, 3 * 60 + 5, (ROOM + "shower", "leaking"))
    first = about(acts["Ada Brook"], ROOM + "shower")[0]
    assert first.since >= 6 * HOUR


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
    assert [act.what for act in waits][3:] == ["doing without"] and sum(
        act.until - act.since for act in waits
    ) <= 40 * 6
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


def remedy(**more: object) -> Remedy:
    ask = {
        "who": "Jo",
        "identity": "",
        "sees": "the shower is kaputt",
        "doing": "",
        "when": "08:00",
        "at": 1,
        "around": ("a", "b"),
    }
    reply: Remedy = Rules().answer(SeeTo.model_validate(ask | more))
    return reply


def test_what_is_done_follows_from_whose_it_is_and_what_keys_say() -> None:
    (mend,) = remedy().tasks
    assert mend.place == 1 and mend.mends and "the shower is kaputt" in mend.what
    assert remedy(danger=True, in_charge=False).tasks[0].minutes <= 5
    wait = remedy(taken=True, aside=2)
    assert wait.waits and wait.tasks[0].place == 2 and wait.resumes
    assert not remedy(taken=True, waited=15).resumes
    assert remedy(others=("Al",)).waits and remedy(in_charge=False).waits
    assert not any(task.mends for task in (*remedy(in_charge=False).tasks, *wait.tasks))


@pytest.mark.parametrize(
    ("more", "acts"),
    [
        ({"danger": True}, 1.0), ({"uses_it": True}, 1.0), ({"in_charge": True}, 1.0), ({}, 0.6),
        ({"in_charge": True, "fine": True}, 0.0), ({"in_charge": True, "others": ("Al",)}, 0.0),
        ({"taken": True}, 0.0), ({"taken": True, "uses_it": True}, 1.0),
    ],
)  # fmt: skip
def test_who_does_something_about_it(more: dict[str, object], acts: float) -> None:
    ask = {"who": "Ada", "identity": "", "doing": "", "sees": "the stove is kaputt", **more}
    assert RULES[ShouldAct](ShouldAct.model_validate(ask))["yes"] == acts
