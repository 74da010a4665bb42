"""Operations on data folders, each killed at one step after the other.

python killing.py WORK POINTS [THING...]  ->  a line of JSON for each thing: {"thing", "steps", "killed", "wrong"}

Each is tried in a folder of its own, once to the end and then at POINTS of its steps. A step is a
statement of SQL, or a file that is opened to be written, renamed, removed, made or cut: before it the process, a fork
with everything imported, is killed by SIGKILL. The surviving process reports faults.
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
import shutil
import signal
import sqlite3
import sys
import tarfile
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mindstream import Coach, FakeModel, ManualClock, Memory, Mind, SqliteStore, Timeouts
from mindstream.cli.shell.files import write_lines
from mindstream.coach.packs.check import new as new_pack
from mindstream.coach.packs.load import load
from mindstream.identifiers import StreamName
from mindstream.log import erasure
from mindstream.log.database import FILE
from mindstream.log.work import ANSWER
from mindstream.memory.facts import ExtractFacts
from mindstream.memory.store.record import Record, RecordDraft
from mindstream.memory.store.store import Revision
from mindstream.models.embedders.embedder import WordLlama
from mindstream.models.model import Request
from mindstream.models.recording import Cache, Playback, Recorder
from mindstream.service import backup, transfer
from mindstream.service import prompts as words
from mindstream.service.doctor import repair
from mindstream.service.doctor.repair import mend
from mindstream.service.privacy import erase as erasing
from mindstream.service.transfer import Header, read_export
from mindstream.settings import Settings

NOW = 1_800_000_000.0
PATIENCE_S = 100.0
OLD = Path(__file__).parents[1] / "folders" / "0.1.0-schema-2.tar.gz"
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.link", "os.chmod", "shutil.copyfile"}

Doing = Callable[[Path], object]


class Death:
    """Counts the steps of this process and kills it before one of them."""

    def __init__(self) -> None:
        self.at = self.steps = 0
        self.armed = False

    def step(self) -> None:
        if self.armed:
            self.steps += 1
            if self.steps == self.at:
                os.kill(os.getpid(), signal.SIGKILL)

    def hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in CHANGES or (event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITING):
            self.step()


DEATH = Death()
LIGHT = "Ann saw light 7 at the river"
CAROLS = sorted(f"Carol saw light {n} at the river" for n in range(40))


class Counted(sqlite3.Connection):
    """A connection that counts each statement as a step."""

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        DEATH.step()
        return super().execute(*arguments)

    def executemany(self, *arguments: Any) -> sqlite3.Cursor:
        DEATH.step()
        return super().executemany(*arguments)


@dataclass(frozen=True)
class Thing:
    """What is done, and what must be so afterwards, done to the end or not; `again`: then it is done once more."""

    doing: Doing
    holds: Doing = lambda _: None
    again: bool = True


def memory(folder: Path, user: str = "ann") -> Memory:
    return Memory(SqliteStore(folder), user, WordLlama(), ManualClock(NOW))


def with_stream(doing: Callable[[Memory], Any]) -> Doing:
    """Run a function with Ann's stream."""

    async def run(folder: Path) -> None:
        store = SqliteStore(folder)
        async with Memory(store, "ann", WordLlama(), ManualClock(NOW)) as stream:
            await doing(stream)
        await store.close()

    return lambda folder: asyncio.run(run(folder))


def with_memory(doing: Callable[[Memory, Path], Any], user: str = "ann") -> Doing:
    async def run(folder: Path) -> None:
        opened = memory(folder, user)
        await doing(opened, folder)
        await opened.store.close()

    return lambda folder: asyncio.run(run(folder))


def talking(*texts: str, pack: str = "sleep", gate: str = "belief") -> Doing:
    async def run(folder: Path) -> None:
        timeouts = Timeouts(lease_s=0.5)
        async with Mind.open(
            folder, user="ann", session="s", responder=Coach.using(pack=pack, gate=gate), timeouts=timeouts
        ) as mind:
            for text in texts:
                async for _ in mind.hear(text):
                    pass
            await mind.settled()

    return lambda folder: asyncio.run(run(folder))


async def erase(opened: Memory, folder: Path) -> None:
    if await opened.store.events(opened.key, limit=1):
        await erasing.erase(opened, folder, await erasing.find_user_data(opened, folder))


async def take_in(opened: Memory, folder: Path) -> None:
    lines = (folder.parent / "export.jsonl").read_bytes().splitlines(keepends=True)
    with read_export(lines, "x", Header) as found:
        await transfer.import_records(opened, found, lambda _: None)


async def take_in_mind(opened: Memory, folder: Path) -> None:
    packed = backup.parse_backup((folder.parent / "mind.jsonl").read_bytes().splitlines(keepends=True), "x")
    await transfer.import_records(opened, packed, lambda _: None)


async def export(opened: Memory, folder: Path) -> None:
    await write_lines(folder / "out.jsonl", transfer.export(opened))


def ask(model: Callable[[Path], Any]) -> Doing:
    async def run(folder: Path) -> None:
        async for _ in model(folder).reply(Request(ExtractFacts(utterances=("tea",)))):
            pass

    return lambda folder: asyncio.run(run(folder))


def scripted() -> FakeModel:
    return FakeModel({"extract_facts": ['{"facts": []}']})


async def fade(stream: Memory) -> None:
    found = await stream.latest("note", 3)
    await stream.commit(revisions=[Revision(id=each.id, forgotten=NOW) for each in found])


async def forget(stream: Memory) -> None:
    for note in await stream.latest("note", 40):
        if note.text == LIGHT:
            await stream.retain(f"It seems that {LIGHT}", "thought", evidence=[note.id])
            await stream.believe("sleep", {"goals": [LIGHT]}, load("sleep").belief, evidence=[note.id])
    await stream.remove(await stream.find_removal(about="light 7"))


async def correct(stream: Memory) -> None:
    await stream.supersede((await stream.latest("note"))[0].id, "Ann saw better")


async def believe(stream: Memory) -> None:
    await stream.believe("sleep", {"goals": ["sleep through"]}, load("sleep").belief)


def records(folder: Path, user: str) -> list[Record]:
    async def read() -> list[Record]:
        store = SqliteStore(folder)
        try:
            return (await store.changes(StreamName("user", user).key, 0)).records
        finally:
            await store.close()

    return asyncio.run(read())


def texts(folder: Path, user: str = "ann") -> list[str]:
    return sorted(record.text for record in records(folder, user))


def keeps(least: int) -> Doing:
    """All records of Ann exist."""

    def holds(folder: Path) -> None:
        assert len([text for text in texts(folder) if "saw" in text]) >= least, "records are lost"

    return holds


def taken_in(folder: Path) -> None:
    """Carol has some of the records or none, whole, and the rest when it is done again."""
    assert set(texts(folder, "carol")) <= set(CAROLS), "torn"
    with_memory(take_in, "carol")(folder)
    assert texts(folder, "carol") == CAROLS, "not all of it"


def whole_lines(name: str) -> Doing:
    """A file is missing or complete."""

    def holds(folder: Path) -> None:
        path = folder / name
        lines = path.read_text().splitlines() if path.exists() else []
        assert not lines or len(lines) == json.loads(lines[0])["records"] + 1, f"{name} has {len(lines)} lines"

    return holds


def erased(folder: Path) -> None:
    """The next opener of the folder finishes the erasure; then no byte is left, or all of Ann is there."""
    begun = erasure.pending(folder, StreamName("user", "ann").key)
    erasure.finish_all(folder, StreamName("user", "ann").key)
    bytes_ = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert not begun or b"Ann saw" not in bytes_, "words are left"
    assert len(records(folder, "ann")) in (0, 46), "half erased"


def forgotten(folder: Path) -> None:
    """All or none; the next opener finishes it; after a repetition no byte is left."""
    erasure.finish_all(folder, StreamName("user", "bob").key)
    there = LIGHT in texts(folder)
    assert there or not _holds(folder), "words are left"
    with_stream(forget)(folder)
    assert not _holds(folder), "words are left, though it was done again"
    keeps(39)(folder)


def _holds(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and LIGHT.encode() in path.read_bytes()]


def mended(folder: Path) -> None:
    assert len(texts(folder)) == 46 and not list(folder.glob("*.tmp")), "mended halfway"


def answers(pack: str = "sleep") -> Doing:
    """The mind continues and no stored message is lost."""
    return lambda folder: asyncio.run(_answers(folder, pack))


async def _answers(folder: Path, pack: str) -> None:
    async with Mind.open(
        folder, user="ann", session="s", responder=Coach.using(pack=pack), timeouts=Timeouts(lease_s=0.5)
    ) as mind:
        async for _ in mind.hear("Are you there?"):
            pass
        left: list[object] = [...]
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                while left:  # work of the dead process is resumed when its lease ends
                    await mind.settled()
                    work = await mind.memory.store.open_work(StreamName("user", "ann").key)
                    left = [each for each in work if not each.slot.startswith(ANSWER)]  # these are answered by a server
                    await asyncio.sleep(0.05)
        assert not left, f"open work is left: {left}"


THINGS: dict[str, Thing] = {
    "remember": Thing(with_stream(lambda stream: stream.retain("Ann saw more", "note")), keeps(40)),
    "remember many": Thing(
        with_stream(
            lambda stream: stream.retain_all([RecordDraft(text=f"more {n}", kind="note") for n in range(30)])
        ),
        lambda folder: _check(sum("more" in text for text in texts(folder)) in (0, 30), "some of many"),
    ),
    "supersede": Thing(
        with_stream(correct), keeps(40)
    ),
    "believe": Thing(with_stream(believe), keeps(40)),
    "recall": Thing(with_stream(lambda stream: stream.recall("river", k=5)), keeps(40)),
    "fade": Thing(with_stream(fade), keeps(40)),
    "forget": Thing(with_stream(forget), forgotten),
    "sleep": Thing(with_stream(lambda stream: stream.sleep(n=40)), keeps(40)),
    "purge": Thing(with_stream(lambda stream: stream.purge())),
    "reembed": Thing(with_stream(lambda stream: stream.reembed(batch=4)), keeps(40)),
    "compact": Thing(with_memory(lambda opened, _: opened.store.compact()), keeps(40)),
    "erase": Thing(with_memory(erase), erased),
    "an import": Thing(with_memory(take_in, "carol"), taken_in),
    "an import of a mind": Thing(with_memory(take_in_mind, "carol"), taken_in),
    "an export": Thing(with_memory(export), whole_lines("out.jsonl")),
    "mending": Thing(lambda folder: mend(folder), mended),
    "hearing": Thing(talking("Noise keeps me awake."), answers()),
    "a plan": Thing(talking("Noise keeps me awake.", "Make me a plan."), answers()),
    "an alarm": Thing(talking("I want to kill myself."), answers()),
    "another pack": Thing(talking("I would like to learn Spanish.", pack="tutor"), answers("tutor")),
    "a new folder": Thing(lambda folder: asyncio.run(SqliteStore(folder / "new").close())),
    "a folder of an earlier version": Thing(
        lambda folder: asyncio.run(SqliteStore(folder / "old" / "0.1.0-schema-2").close())
    ),
    "a recording": Thing(
        ask(lambda folder: Recorder(scripted(), folder / "run.jsonl")),
        lambda folder: Playback(folder / "run.jsonl") if (folder / "run.jsonl").exists() else None,
    ),
    "a cached answer": Thing(ask(lambda folder: Cache(scripted(), folder / "answers"))),
    "a new pack": Thing(lambda folder: new_pack(folder / "pack"), again=False),
    "own words": Thing(lambda folder: words.copy(folder / "words"), lambda folder: words.copy(folder / "words")),
}  # fmt: skip


def _check(is_so: bool, wrong: str) -> None:
    assert is_so, wrong


def begin(work: Path) -> Path:
    """Create the data folder for all operations."""
    source = work / "source"

    async def write() -> None:
        store = SqliteStore(source)
        for user, count in (("Ann", 40), ("Bob", 10)):
            async with Memory(store, user.lower(), WordLlama(), ManualClock(NOW - 90 * 86_400)) as stream:
                await stream.retain_all(
                    [RecordDraft(text=f"{user} saw light {n} at the river", kind="note") for n in range(count)]
                )
                await stream.retain_all(
                    [RecordDraft(text=f"{user} forgot thing {n}", kind="observation") for n in range(6)]
                )
        forgotten = [each.id for each in await store.latest(StreamName("user", "ann").key, ["observation"], 6, now=NOW)]
        async with Memory(store, "ann", WordLlama(), ManualClock(NOW - 86_400)) as stream:
            await stream.commit(revisions=[Revision(id=id_, forgotten=NOW - 86_400) for id_ in forgotten])
        await store.close()

    asyncio.run(write())
    opened = memory(work / "elsewhere", "carol")
    asyncio.run(opened.retain_all([RecordDraft(text=text, kind="note") for text in CAROLS]))
    asyncio.run(write_lines(work / "export.jsonl", transfer.export(opened)))
    mind = backup.export(opened, Settings(data=source, user="carol"))
    asyncio.run(write_lines(work / "mind.jsonl", mind))
    asyncio.run(opened.close())
    asyncio.run(opened.store.close())
    with tarfile.open(OLD) as tar:
        tar.extractall(source / "old", filter="data")
    return source


def live(thing: Thing, folder: Path, at: int) -> tuple[int, bool]:
    """Do it in a fork that is killed before its step `at`; return how many steps it made, and whether it was killed."""
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        DEATH.at, DEATH.armed = at, True
        try:
            thing.doing(folder)
        except BaseException as error:  # noqa: BLE001 (told to whoever lives)
            os.write(writer, f"{type(error).__name__}: {error}".encode())
            os._exit(1)
        os.write(writer, str(DEATH.steps).encode())
        os._exit(0)
    os.close(writer)
    _, status = os.waitpid(pid, 0)
    with os.fdopen(reader, "rb") as pipe:
        told = pipe.read().decode()
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        raise AssertionError(told)
    return int(told or 0), os.WIFSIGNALED(status)


def after(thing: Thing, folder: Path, bobs: list[str]) -> None:
    """Check the data after the kill, and repeat the operation."""
    thing.holds(folder)
    if thing.again:
        live(thing, folder, 0)
    assert texts(folder, "bob") == bobs, "another user's memory is changed"
    with closing(sqlite3.connect(folder / FILE)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert not (found := list(repair.faults(connection))), f"the doctor finds {found[0]}"


def kill(name: str, source: Path, work: Path, bobs: list[str], points: int) -> dict[str, object]:
    thing, wrong, killed = THINGS[name], [], 0
    shutil.copytree(source, work / "whole")
    steps, _ = live(thing, work / "whole", 0)
    shutil.rmtree(work / "whole")
    for at in sorted({1 + round((steps - 1) * (n + 0.5) / points) for n in range(points)}):
        shutil.copytree(source, folder := work / "folder")
        try:
            killed += live(thing, folder, at)[1]
            after(thing, folder, bobs)
        except Exception as error:  # noqa: BLE001 (told)
            wrong.append(f"step {at}: {type(error).__name__}: {error}")
        shutil.rmtree(folder)
    return {"thing": name, "steps": steps, "killed": killed, "wrong": wrong}


def main() -> None:
    work = Path(sys.argv[1])
    sqlite3.connect = functools.partial(sqlite3.connect, factory=Counted)  # type: ignore[assignment]
    sys.addaudithook(DEATH.hook)
    asyncio.run(WordLlama().embed(["loaded before anybody is forked"]))
    source = begin(work)
    bobs = texts(source, "bob")
    for name in sys.argv[3:] or THINGS:
        print(json.dumps(kill(name, source, work, bobs, int(sys.argv[2]))), flush=True)


if __name__ == "__main__":
    main()
