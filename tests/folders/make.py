"""Make a data folder with the imported code, with every kind of data of a version, for later versions to open.

    python tests/folders/make.py NAME [INTO]

Writes INTO/NAME.tar.gz (INTO: next to this file), tens of kB. Run it with the code of the folder's version,
as PYTHONPATH=…/src; keep its output, and never remake an old one.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from mindstream import FakeModel, ManualClock, Memory, SqliteStore
from mindstream.identifiers import StreamName
from mindstream.log.events import Heard
from mindstream.memory.store.record import RecordDraft
from mindstream.memory.store.store import Commit, Entry, NewWork
from mindstream.models.embedders.embedder import WordLlama
from mindstream.reasoners.reflect.reflect import reflect

ENGLISH = [
    "I wake at three and my thoughts race.", "Can you make me a plan?", "I don't like that step.",
    "I drink coffee at night, and the neighbours are loud.", "next", "I want to sleep through until six.",
]  # fmt: skip
CHINESE = ["我凌晨三点就醒了,脑子停不下来。", "给我一个计划吧。", "晚上我喝咖啡。", "下一步"]
START = 1_700_000_000.0
DAY = 86_400.0


def talk(folder: Path, user: str, session: str, lines: list[str]) -> None:
    """Talk through the command, with the gate `learned`."""
    command = [sys.executable, "-m", "mindstream.cli", "chat", "--data", str(folder), "--user", user]
    flags = ["--session", session, "--gate", "learned"]
    subprocess.run([*command, *flags], input="\n".join(lines) + "\n", text=True, check=True, capture_output=True)


async def remember(folder: Path) -> None:
    """Write what conversations alone do not: all kinds, corrections, forgetting, dreams, reflections, open work."""
    store, clock = SqliteStore(folder), ManualClock(START)
    async with Memory(store, "carol", WordLlama(), clock) as stream:
        seen = await stream.retain_all(
            [RecordDraft(text=f"Carol was in the garden at {n} o'clock.", importance=6.0) for n in range(8, 14)]
        )
        note = await stream.retain("Carol goes to bed at eleven.", "note", keywords=["bed"], evidence=[seen[0].id])
        await stream.retain("A good answer is short.", "exemplar")
        await stream.retain("园艺手册：春天播种。", "document", by="图书馆")
        await stream.retain("Studies say that gardens calm.", "evidence", evidence=[note.id])
        replies = {
            "salient_questions": [json.dumps({"questions": ["What does Carol do?"]})],
            "insights": [json.dumps({"insights": [{"text": "Carol gardens in the morning.", "because": [1, 2]}]})],
        }
        await reflect(stream, FakeModel(replies))
        clock.advance(DAY)
        await stream.supersede(note.id, "Carol goes to bed at ten.")
        await stream.recall("garden", k=2)
        clock.advance(40 * DAY)
        await stream.sleep(n=100)  # archives records that were not returned, and dreams of them
        await stream.retain("Carol has a new greenhouse.", "note")
        heard = (
            await stream.build_records(
                [RecordDraft(text="What was in my garden?", kind="chat", by="carol", episode="s")]
            )
        )[0]
        event = Heard(text=heard.text, session="s", record=heard.id)
        entries, wake = (Entry(event, "carol", (heard,)),), NewWork(("sleep", "facts"), "a process that is gone", 0.0)
        await store.commit(Commit(mind=StreamName("user", "carol").key, at=clock.now(), entries=entries, wake=wake))
    await store.close()


def make(name: str, into: Path) -> Path:
    """Make the folder and pack it."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "data"
        talk(folder, "ann", "monday", ENGLISH)
        talk(folder, "ann", "星期二", CHINESE)
        talk(folder, "bob", "monday", ENGLISH[:2])
        asyncio.run(remember(folder))
        with contextlib.closing(sqlite3.connect(folder / "mindstream.db")) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        packed = into / f"{name}.tar.gz"
        with tarfile.open(packed, "w:gz", compresslevel=9) as tar:
            for path in sorted(folder.iterdir()):
                if path.is_file() and not path.name.endswith(("-wal", "-shm")):
                    tar.add(path, path.name)
    return packed


if __name__ == "__main__":
    made = make(sys.argv[1], Path(sys.argv[2]) if len(sys.argv) > 2 else Path(__file__).parent)
    print(f"{made}: {made.stat().st_size / 1000:.0f} kB")
