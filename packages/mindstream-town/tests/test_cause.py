"""Causes of an outcome, the first difference of two towns, and beliefs against what happened."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hamlet import hamlet
from mindstream_town.forking import fork
from mindstream_town.inspect.cause import CONTROL, Job, find_causes, find_outcome, first_difference, live_fork
from mindstream_town.inspect.history import read_history
from mindstream_town.inspect.why import beliefs_of, condition_at
from mindstream_town.town import Town

from mindstream.cli import edge
from mindstream.errors import InputError
from mindstream.location import Location
from mindstream.settings import Settings

EIGHT, NINE, NOON, EVENING = (hour * 360 for hour in (8, 9, 12, 43))
PIANO = "Hamlet:Oak Cafe:cafe:piano"


@pytest.fixture
async def lived(tmp_path: Path) -> Path:
    """Return the folder of a hamlet after a day and the reading evening of the next."""
    async with Town.open(tmp_path / "town", hamlet()) as town:
        await town.run(until=EVENING + 10)
    return tmp_path / "town"


async def test_the_invitation_is_a_cause_and_an_unrelated_memory_is_none(lived: Path) -> None:
    history = await read_history(lived)
    came = [
        name for name in history.names if find_outcome(history, f"{name} at the reading evening", None).happens(history)
    ]
    assert came, "someone comes to the evening"
    outcome = find_outcome(history, f"{came[-1]} at the reading evening", None)
    first, *_, control = find_causes(history, outcome, 3)
    assert "reading evening" in first.text and control.how == CONTROL and control.text != first.text
    settings = Settings(data=Location(lived))
    assert await live_fork(Job(settings, outcome, first.step, (), history.setting.seed))
    assert await live_fork(Job(settings, outcome, control.step, control.records, history.setting.seed))
    assert not await live_fork(Job(settings, outcome, first.step, first.records, history.setting.seed))


async def planted(lived: Path, tmp_path: Path, number: int) -> tuple[Path, str]:
    """Fork a town, change one thing at a time of its own, and run it; return the fork and a word of the change."""
    step, there = EIGHT + 97 * number, tmp_path / f"fork{number}"
    name, text = ("Ada Brook", "Ben Hale", "Cleo Marsh")[number % 3], f"There are {number} foxes in the garden."
    if number % 3 == 2:
        history = await read_history(lived)
        lost = next(each for each in history.records[name] if history.step_of(each.created) >= step)
        await fork(lived, there, history.step_of(lost.created), [lost.id])
        return there, lost.text
    await fork(lived, there, step)
    async with Town.open(there) as town:
        if number % 3:
            await town.set_object(PIANO, f"missing {number} keys", danger=False)
        else:
            await town.whisper(name, text)
        await town.run(until=town.step + 1_000)
    return there, text if number % 3 == 0 else f"missing {number} keys"


@pytest.mark.parametrize("number", range(20))
async def test_the_first_of_planted_differences_is_named(number: int, lived: Path, tmp_path: Path) -> None:
    there, said = await planted(lived, tmp_path, number)
    found = await first_difference(lived, there)
    assert found is not None and said in (found.here + found.there), found


async def test_a_fork_without_a_change_does_not_differ(lived: Path, tmp_path: Path) -> None:
    await fork(lived, tmp_path / "same", NINE)
    async with Town.open(tmp_path / "same") as town:
        await town.run(until=NOON)
    assert await first_difference(lived, tmp_path / "same") is None


async def test_false_beliefs_are_traced_to_their_beginning(tmp_path: Path) -> None:
    async with Town.open(tmp_path, hamlet()) as town:
        await town.run(until=EIGHT)
        await town.whisper("Ben Hale", "The bridge is closed.")
        await town.run(until=int(9.5 * 360))
        await town.set_object(PIANO, "locked", danger=False)
        await town.set_object(PIANO, "out of tune", danger=False)
        changed = town.step
        await town.run(until=NOON)
    history = await read_history(tmp_path)
    assert condition_at(history, PIANO, changed) == "out of tune"
    found = {each.about: each for name in history.names for each in beliefs_of(history, name, NOON)}
    assert (
        found["Ben Hale"].is_false is None and "whispered to Ben Hale on Mon Feb 13 08:00" in found["Ben Hale"].origin
    )
    seen = found[PIANO]
    assert (
        seen.believed == "out of tune" and seen.is_false == (seen.happened != "out of tune") and "saw it" in seen.origin
    )


def test_causes_and_beliefs_from_the_command_line(
    lived: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = [
        "town",
        "cause",
        "Ben at the reading evening",
        "--seeds",
        "1",
        "--most",
        "1",
        "--data",
        str(lived),
        "--json",
    ]
    into = ["--into", str(tmp_path / "kept.jsonl")]
    assert edge.run([*asked, *into]) == 0
    report = json.loads(capsys.readouterr().out)
    kept = (tmp_path / "kept.jsonl").read_text()
    assert report["who"] == "Ben Hale" and report["effects"][0]["seeds"] == 1
    assert edge.run([*asked, *into]) == 0 and (tmp_path / "kept.jsonl").read_text() == kept, "nothing runs again"
    assert edge.run(["town", "beliefs", "ben", "--data", str(lived)]) == 0
    assert edge.run(["town", "cause", "Ben", "--data", str(lived)]) == 2


async def test_an_unknown_outcome_is_refused(lived: Path) -> None:
    history = await read_history(lived)
    for typed in ("Ben", "Zoe at the reading evening", "Ben at zzz", "Ben knows zzz"):
        with pytest.raises(InputError):
            find_outcome(history, typed, None)
    with pytest.raises(InputError, match="half of the words"):  # the first of " at " and " knows " counts
        find_outcome(history, "Ben knows qqq www at zzz", None)
