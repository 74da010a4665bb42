"""Data of an earlier version (tests/folders) works with every command, or is refused in a sentence."""

from __future__ import annotations

import shutil
import sqlite3
import tarfile
from collections import Counter
from pathlib import Path

import pytest
from keys import key_of
from running import Done, run

from mindstream import Coach, Mind
from mindstream.coach.events import Alarmed
from mindstream.log.events import Said, Unknown, every_kind
from mindstream.memory.store.sqlite import SqliteStore

PACKED = sorted((Path(__file__).parents[1] / "folders" / "rooms").glob("*.tar.gz"))


@pytest.fixture(scope="module", params=PACKED, ids=lambda path: path.name.removesuffix(".tar.gz"))
def unpacked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("written")
    with tarfile.open(request.param) as tar:
        tar.extractall(folder, filter="data")
    return folder


@pytest.fixture
def written(unpacked: Path, tmp_path: Path) -> Path:
    """Two data folders of an earlier version: `people` (chat, plans, lives, pools) and `town`."""
    return shutil.copytree(unpacked, tmp_path / "written")


def on(folder: Path, *words: str) -> Done:
    """Run a command on a folder; check that a problem is reported in a sentence."""
    done = run(*words, "--data", folder)
    assert done.code in (0, 1, 2), done.err
    assert "Traceback" not in done.err and (done.code != 2 or len(done.err.splitlines()) == 1), done.err
    return done


@pytest.mark.parametrize("place", ["people", "town"])
async def test_every_row_is_read_and_rows_of_removed_kinds_are_kept(written: Path, place: str) -> None:
    with sqlite3.connect(written / place / "mindstream.db") as connection:
        before = connection.execute("SELECT seq, kind, payload FROM log ORDER BY seq").fetchall()
    store = SqliteStore(written / place)
    rows = await store.events(limit=100_000)
    await store.close()
    assert [(row.seq, row.event.kind if not isinstance(row.event, Unknown) else row.event.named) for row in rows] == [
        (seq, kind) for seq, kind, _ in before
    ]
    unread = Counter(row.event.named for row in rows if isinstance(row.event, Unknown))
    assert not set(unread) & every_kind().keys(), "unreadable rows of kinds that still exist"
    for row, (_, kind, payload) in zip(rows, before, strict=True):
        if isinstance(row.event, Unknown):
            assert row.event.entry() == (kind, payload), "it is written unchanged"


def test_the_doctor_finds_no_damage_and_the_log_is_printed(written: Path) -> None:
    for place in ("people", "town"):
        found = [row for row in on(written / place, "doctor", "--json").rows if row["topic"] == "data"]
        assert found and all(row["state"] != "broken" for row in found), found
        assert on(written / place, "log", "--all").code == 0
        assert on(written / place, "log", "--all", "--json").rows


async def test_a_conversation_continues_with_its_belief_and_plan(written: Path) -> None:
    async with Mind.open(written / "people", user="ann", session="later", responder=Coach.using()) as mind:
        belief, plan = Coach.of(mind).belief, Coach.of(mind).plan
        assert belief.version > 5 and belief.value.phase == "planning" and plan.now is not None
        said = [row.event async for row in mind.hear("It is too hot in my bedroom.")]
        assert isinstance(said[-1], Said) and said[-1].text
        await mind.settled()
        assert Coach.of(mind).belief.version >= belief.version and Coach.of(mind).plan.steps


async def test_alarms_of_a_resumed_session_are_known(written: Path) -> None:
    async with Mind.open(written / "people", user="bob", session="night", responder=Coach.using()) as mind:
        alarms = [row.event for row in await mind.memory.store.events(key_of("bob"), kinds=["alarmed"])]
        assert [event.strength for event in alarms if isinstance(event, Alarmed)] == ["hint", "sure"]
        assert [each.event async for each in mind.hear("hello again")]
        await mind.settled()


ROOMS = {
    "memory recall noise --user ann": "noise machine",
    "mind export - --user ann": "ann",
    "solve --list --user dora": "stopped",
    "pool recall tongues saber --user olga": "ser and estar",
    "pool rubric tongues --user olga": "Decision rule",
    "town status": "11:30 (day 1, step 4,140)",
    "town why Ada --at 06:20": "repairing the leaking shower",
    "town timeline Ada": "reading evening",
}


def test_every_command_group_shows_its_stored_data(written: Path) -> None:
    for words, shown in ROOMS.items():
        done = on(written / ("town" if words.startswith("town") else "people"), *words.split())
        assert done.code == 0 and shown in done.out, words


def test_a_stored_life_can_be_shown_and_controlled(written: Path) -> None:
    emil = ("--user", "emil")
    stands = on(written / "people", "life", "status", *emil)
    assert "ferry Marta" in stands.out and "lunch" in stands.out
    for words in (("tasks",), ("turn", "1"), ("drop", "4"), ("resume",)):
        assert on(written / "people", "life", *words, *emil).code == 0
    lived = on(written / "people", "live", "--turns", "1", *emil)
    assert lived.code in (0, 1, 2)
    assert "ferry Marta" in on(written / "people", "life", "status", *emil).out


def test_a_stored_town_can_be_continued(written: Path) -> None:
    done = on(written / "town", "town", "resume", "--hours", "1")
    assert done.code == 0 and "12:30" in done.out
    assert "12:30" in on(written / "town", "town", "status").out
