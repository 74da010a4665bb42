"""Search in a folder of documents, on a stream: passages are records of kind `document`, kept in step with the files.

What stands in a document is data of whoever wrote it: each record says so in its data (`tainted`).
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, nullcontext
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import Field, TypeAdapter

from mindstream.errors import Conflict, ToolError
from mindstream.location import AnyData
from mindstream.log.events import DocumentsRead, Failed
from mindstream.log.names import StreamName
from mindstream.memory.memory import Memory
from mindstream.memory.store.checkpoints import Checkpoint
from mindstream.memory.store.record import TAINTED, Record, RecordDraft
from mindstream.memory.store.store import Entry, read_all
from mindstream.models.embedders.embedder import Embedder
from mindstream.tools.extracts import Portion, extract
from mindstream.tools.folder import MOST_FILES, Folder, is_parsed, passages
from mindstream.tools.tool import FROM_STRANGERS, FunctionTool, Words, tool

MOST_PASSAGES, AT_ONCE = 20_000, 50
SHOWN = 5
PART = 6_000
"""So many characters of a document are given at once."""
PASSAGES, LINES = 8, 5
"""From so many passages that a search finds, so many lines are given."""
NAMED = 800
"""So much is said of what a folder holds, in characters."""
READ_S = 20.0
"""Maximum time in seconds for which a search reads changed files; the others are searched, and the rest is read by the
next searches. Text files come first."""
Stamp: TypeAlias = tuple[int, int]
FAILURES, FAILED = "unparsed", TypeAdapter(dict[str, tuple[Stamp, str]])
"""The checkpoint with the files that cannot be parsed: by name, the stamp at which that was found, and why."""
LONGEST_FAILURE = 2_000
"""Maximum length of what the log says of files that cannot be parsed, in characters."""
LineNumber = Annotated[int, Field(ge=1, le=10_000_000)]


class Documents:
    """The documents of a folder, searched in a stream of their own."""

    def __init__(self, folder: Folder, memory: Memory) -> None:
        self.folder = folder
        self.memory = memory
        self.unread: dict[str, str] = {}
        """Which files could not be read, and why."""
        self.notes: dict[str, str] = {}
        """What is to be known of files that were read: an encoding that was assumed, a part that was left out."""
        self._stamps: dict[str, Stamp] = {}
        self._lock = asyncio.Lock()

    async def refresh(self) -> None:
        """Bring the stream into step with the folder: what changed is read anew, what is gone is erased."""
        async with self._lock:
            stamps = await asyncio.to_thread(lambda: {name: self.folder.stamp(name) for name in self.folder.names()})
            if stamps == self._stamps:
                return
            held = await self._held()
            gone = [record for name in held.keys() - stamps.keys() for record in held[name]]
            self._stamps = {name: stamp for name, stamp in self._stamps.items() if stamps.get(name) == stamp}
            self.unread = {name: why for name, why in self.unread.items() if name in self._stamps}
            self.notes = {name: note for name, note in self.notes.items() if name in self._stamps}
            await self._erase(gone)
            left = MOST_PASSAGES - sum(len(records) for name, records in held.items() if name in stamps)
            failures = await self._failures(stamps)
            waiting = sorted((name for name in stamps if name not in self._stamps), key=is_parsed)
            name, parsed = "", 0
            try:
                async with asyncio.timeout(READ_S):
                    for name in waiting:
                        parsed += is_parsed(name) and name not in failures
                        left -= await self._read(name, held.get(name, []), left, failures.get(name, ""))
                        self._stamps[name] = stamps[name]
            except TimeoutError:
                late = [each for each in waiting if each not in self._stamps]
                self.unread |= {each: f"{each} is not read yet: search again" for each in late}
                if parsed == 1 and is_parsed(name):  # it had all the time
                    self.unread[name] = f"{name}: that takes longer than {READ_S} seconds"
                    self._stamps[name] = stamps[name]
            new = {each: why for each, why in self.unread.items() if is_parsed(each) and each in self._stamps}
            await self._keep_failures(failures, new)

    async def _failures(self, stamps: Mapping[str, Stamp]) -> dict[str, str]:
        """Return which files could not be parsed before, as they are now, and why."""
        kept = await self.memory.store.checkpoint(self.memory.key, FAILURES)
        found = FAILED.validate_json(kept.data) if kept is not None else {}
        return {name: why for name, (stamp, why) in found.items() if stamps.get(name) == stamp}

    async def _keep_failures(self, before: Mapping[str, str], now: Mapping[str, str]) -> None:
        """Write down which files cannot be parsed, so that no process tries again until they change."""
        if now == before:
            return
        kept = await self.memory.store.checkpoint(self.memory.key, FAILURES)
        found = {name: (self._stamps[name], why) for name, why in now.items()}
        next_one = Checkpoint(FAILURES, kept.version + 1 if kept else 1, FAILED.dump_json(found))
        with contextlib.suppress(Conflict):  # another process has written its own
            await self.memory.commit(
                Entry(Failed(text="; ".join(now.values())[:LONGEST_FAILURE], where="documents"), self.memory.name),
                checkpoint=next_one,
            )

    async def _held(self) -> dict[str, list[Record]]:
        held: dict[str, list[Record]] = {}
        async for portion in read_all(self.memory.store, self.memory.key):
            for record in portion:
                if record.kind == "document":
                    held.setdefault(str(record.data.get("file")), []).append(record)
        return held

    async def _read(self, name: str, there: list[Record], room: int, failed: str) -> int:
        """Read one file where it is not the one that is held; return how many passages there are more.

        Args:
            failed: why it cannot be parsed, as was found before.
        """
        self.unread.pop(name, None)
        try:
            if failed:
                raise ToolError(failed)
            digest, document = await self.folder.read(name)
            if document.note:
                self.notes[name] = document.note
            is_same = all(record.data.get("hash") == digest for record in there)
            if there and is_same and len(there) == there[0].data.get("parts"):  # all were written
                return 0
            found = await asyncio.to_thread(passages, document)  # a large file is seconds of work
            if len(found) > room + len(there):
                raise ToolError(f"{name} is not searched: at most {MOST_PASSAGES:,} passages are kept of a folder")
        except ToolError as error:
            self.unread[name] = str(error)
            digest, found = "", []
        await self._erase(there)
        parts = len(found)
        news = [
            RecordDraft(
                text=f"{name}, {each.place}:\n{each.headed}",
                kind="document",
                by=name[:200],
                data={
                    "file": name,
                    "place": each.place,
                    "under": each.under,
                    "hash": digest,
                    "parts": parts,
                    TAINTED: True,
                },
            )
            for each in found
        ]
        for start in range(0, parts, AT_ONCE):
            await self.memory.retain_all(news[start : start + AT_ONCE])
        return parts - len(there)

    async def _erase(self, records: Iterable[Record]) -> None:
        if ids := [record.id for record in records]:
            await self.memory.store.erase(self.memory.key, ids)

    def _skipped(self) -> list[str]:
        """Name the files that could not be read, and those of which only a part or an uncertain text was."""
        unsure = [f"{name} is {note}" for name, note in self.notes.items() if "assumed" in note or "only" in note]
        lists = (("not searched", [*self.unread.values()]), ("uncertain", unsure))
        return [
            f"({what}: {'; '.join(each[:SHOWN])}{f'; and {len(each) - SHOWN:,} more' * (len(each) > SHOWN)})"
            for what, each in lists
            if each
        ]

    def _named(self) -> str:
        """Name the files, as many as fit: whoever plans a search knows then what there is."""
        names = list(self.folder.names())
        shown = list[str]()
        for name in names:
            if sum(map(len, shown)) + len(name) > NAMED:
                return f"{'; '.join(shown)}; and {len(names) - len(shown):,} more"
            shown.append(name)
        return "; ".join(shown) or "none yet"

    def tools(self) -> tuple[FunctionTool, ...]:
        """Make the tools `search_documents`, `list_documents` and `read_document`."""

        async def search_documents(query: Words) -> str:
            await self.refresh()
            found = await self.memory.recall(query, PASSAGES, kinds=["document"], touch=False)
            if not found:
                raise ToolError(" ".join(["there is nothing to read in the folder", *self._skipped()]))
            held = [_portion(each.record) for each in found]
            return "\n\n".join([await extract(held, query, LINES), *self._skipped()])

        search_documents.__doc__ = f"Give the few lines that fit a query best, of: {self._named()}."

        async def list_documents() -> str:
            """List the documents, and which of them cannot be read."""
            await self.refresh()
            names = list(self.folder.names())
            lines = [
                self.unread.get(name, f"{name} ({self.notes[name]})" if name in self.notes else name) for name in names
            ]
            full = [f"… and perhaps more: at most {MOST_FILES:,} files are read"] * (len(names) == MOST_FILES)
            return "\n".join(lines + full) or "there are no documents"

        async def read_document(name: str, from_line: LineNumber = 1) -> str:
            """Read a whole document by its name, for what no few lines say: it costs much. Long ones come in parts."""
            _, document = await self.folder.read(name)
            return _part(document.lines, from_line)

        return tuple(tool(each, FROM_STRANGERS) for each in (search_documents, list_documents, read_document))


def _portion(record: Record) -> Portion:
    """Return a record of a document as the part of it that it was made of."""
    head, _, text = record.text.partition(":\n")
    under = str(record.data.get("under") or "")
    return Portion(head, under, text.removeprefix(f"# {under}\n\n"))


def _part(lines: tuple[str, ...], from_line: int) -> str:
    if from_line > max(len(lines), 1):
        raise ToolError(f"that document has {len(lines):,} lines")
    taken, size = list[str](), 0
    for line in lines[from_line - 1 :]:
        size += len(line) + 1
        if taken and size > PART:
            break
        taken.append(line if len(line) <= PART else f"{line[:PART]}… (the line is cut)")
    end = from_line + len(taken)
    more = f"\n… (lines {from_line} to {end - 1} of {len(lines)}; the next part is from line {end})"
    return "\n".join(taken) + (more if end <= len(lines) else "") or "the document is empty"


@asynccontextmanager
async def open_documents(
    folder: Path | str, data: AnyData | None = None, *, embed: Embedder | str = "wordllama", reader: str = ""
) -> AsyncIterator[Documents]:
    """Open a folder's documents; what was read of them is kept in `data`, or else until this is closed.

    Args:
        reader: for whom they are kept; what nobody reads any more is erased.

    Raises:
        ToolError: there is no such folder.
    """
    found = Folder(folder)
    name = StreamName("documents", blake2b(str(found.root).encode(), digest_size=8).hexdigest())
    with tempfile.TemporaryDirectory(prefix="mindstream-") if data is None else nullcontext(data) as kept:
        async with Memory.open(kept, name, embed=embed) as stream:
            if reader and data is not None:
                known = await stream.store.events(stream.key, kinds=[DocumentsRead.kind])
                if reader not in {row.by for row in known}:
                    await stream.commit(Entry(DocumentsRead(), reader))
            yield Documents(found, stream)
