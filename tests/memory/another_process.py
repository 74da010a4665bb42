"""Another process on the same folder: it reads one commit per line as JSON, writes it, and prints `ok`.

{"folder": ..., "stream": ..., "kind": ..., "id": ..., "text": ..., "at": ...}   writes a record
{"folder": ..., "stream": ..., "forget": ID, "at": ...}                          forgets one
"""

from __future__ import annotations

import asyncio
import json
import sys

from mindstream import Record, SqliteStore
from mindstream.identifiers import StreamName
from mindstream.log.events import Remembered
from mindstream.memory.store.store import Commit, Entry, Revision


async def write(line: dict[str, object]) -> None:
    store, stream, at = SqliteStore(str(line["folder"])), str(line["stream"]), float(str(line["at"]))
    if "forget" in line:
        revision = Revision(id=str(line["forget"]), forgotten=at)
        await store.commit(Commit(mind=StreamName("user", stream).key, at=at, revisions=(revision,)))
    else:
        record = Record(
            id=str(line["id"]), stream=stream, kind=line["kind"], text=str(line["text"]), created=at, accessed=at  # type: ignore[arg-type]
        )  # fmt: skip
        entry = Entry(Remembered(count=1, kinds={}), "another", (record,))
        await store.commit(Commit(mind=StreamName("user", stream).key, at=at, entries=(entry,)))
    await store.close()


if __name__ == "__main__":
    for text in sys.stdin:
        asyncio.run(write(json.loads(text)))
        print("ok", flush=True)
