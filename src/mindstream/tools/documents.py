"""Search in a folder of documents.

The passages of the files are records of kind `document` in a memory of their own. Each search first updates this memory
for files that have changed. A document may contain third-party content, so each record is marked as `tainted`. The
result of a search is extracts: the few lines that fit a query best. Files outside of the folder are never read.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import hashlib
import os
import re
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import numpy as np
from pydantic import Field, TypeAdapter

from mindstream.encodings import Decoded, decode_text
from mindstream.errors import Conflict, InputError, ToolError
from mindstream.identifiers import StreamName
from mindstream.json_values import JsonObject
from mindstream.location import AnyData
from mindstream.log.database import FILE
from mindstream.log.events import DocumentsRead, Failed
from mindstream.memory.memory import Memory
from mindstream.memory.store.checkpoints import Checkpoint
from mindstream.memory.store.record import TAINTED, Record, RecordDraft
from mindstream.memory.store.store import Entry, read_all
from mindstream.models.embedders.embedder import Embedder, shared_embedder
from mindstream.paths import read_bytes
from mindstream.text.lexical import Lexical
from mindstream.text.words import CJK, batches, count_of, sentences, terms
from mindstream.tools.child import run_child
from mindstream.tools.tool import PLAIN, UNTRUSTED, FunctionTool, Words, tool

MAX_BYTES, MAX_PARSED_BYTES, MAX_FILES = 2_000_000, 30_000_000, 2_000
"""MAX_BYTES: maximum size of a text file in bytes. MAX_PARSED_BYTES: the same for a PDF or Office file. MAX_FILES:
maximum number of files that are read."""
PASSAGE = 1_000
"""Approximate length of a passage in characters."""
PARSER_SECONDS, PARSER_MEGABYTES = 15, 2_000
PARSER = Path(__file__).with_name("file_text.py")
HTML = (".html", ".htm", ".xhtml")
BINARY = (
    ".pdf", ".docx", ".docm", ".dotx", ".pptx", ".pptm", ".ppsx", ".xlsx", ".xlsm", ".xlsb", ".xltx", ".xls", ".ods",
)  # fmt: skip
UNREAD = {
    ".doc": ("a Word 97-2003 document", ".docx"),
    ".dot": ("a Word 97-2003 template", ".docx"),
    ".ppt": ("a PowerPoint 97-2003 presentation", ".pptx"),
    ".pps": ("a PowerPoint 97-2003 presentation", ".pptx"),
    ".odt": ("an OpenDocument text", ".docx"),
    ".odp": ("an OpenDocument presentation", ".pptx"),
    ".rtf": ("a Rich Text file", ".docx"),
    ".pages": ("a Pages document", ".docx"),
    ".key": ("a Keynote presentation", ".pptx"),
    ".numbers": ("a Numbers spreadsheet", ".xlsx"),
    ".epub": ("an EPUB book", ".html"),
}
"""Formats that are not read, by file ending. Each has the name of the format, and the ending of a format in which the
user should save the file."""
DECLARED = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]{2,40})", re.IGNORECASE)
"""Finds the encoding that an HTML page declares."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a document.

    Attributes:
        place: the position in the document (`lines 3-9`, `page 2`), or in the folder (`boat.md, lines 3-9`).
        under: the headings above the passage that it does not contain, the title first.
    """

    text: str
    place: str
    under: str = ""

    @property
    def headed(self) -> str:
        """The text with the headings in front, so that it can be understood by itself."""
        return f"# {self.under}\n\n{self.text}" if self.under else self.text

    def lines(self) -> Iterator[Line]:
        """Yield the passage's lines, each with the headings above the line.

        A line is a paragraph, some whole sentences of a long paragraph, a list item, or a table row.
        """
        above = open_headings([], 1, self.under) if self.under else []
        texts = self.text.splitlines()
        headings = {
            at: (level, words)
            for at, level, words in find_headings(texts)
            if texts[at].lstrip().startswith("#") or not "".join(texts[at + 1 : at + 2]).strip()
        }
        for number, (kind, lines) in enumerate(_blocks(texts, headings)):
            if isinstance(kind, int):
                above = open_headings(above, max(headings[kind][0], 1), headings[kind][1])
                continue
            columns = lines.pop(0) if kind == "table" else ""
            parts = _sentences(" ".join(lines)) if kind == "text" else lines
            under = JOINT.join(words for _, words in above)
            shown = [text for text in parts if not RULE.fullmatch(text)]
            of = {"table": count_of(len(shown), "row"), "list": count_of(len(shown), "item")}.get(kind, "")
            yield from (Line(text, under, number, of, columns) for text in shown)


@dataclass(frozen=True, slots=True)
class Document:
    """The lines of a file.

    Attributes:
        units: the part of the file that contains each line: "page 2", "slide 2", "sheet Prices"; "": none.
        numbers: the number of each line, paragraph or row; 0: none.
        noun: what the numbers count, such as "line".
        note: a message for the user about an encoding that was assumed, or a part that was not read.
        tables: the length in characters of each table with column names, by the position of the table's first line. A
            passage that has no room left for a whole table ends before the table.
    """

    lines: tuple[str, ...]
    units: tuple[str, ...]
    numbers: tuple[int, ...]
    noun: str = "line"
    note: str = ""
    tables: Mapping[int, int] = field(default_factory=dict)


class Folder:
    """The files in a folder and its subfolders, without hidden files and the database files of mindstream.

    Raises:
        ToolError: there is no such folder.
    """

    def __init__(self, path: Path | str) -> None:
        self.root = Path(path).expanduser().resolve()
        if not self.root.is_dir():
            raise ToolError(f"there is no folder {str(path)!r}" + ": it is a file" * self.root.is_file())

    def names(self) -> Iterator[str]:
        """Yield the names of at most MAX_FILES files. Left out are hidden files and folders, unprintable names,
        databases of mindstream, and links that lead out of the folder."""
        found = 0
        for folder, folders, files in os.walk(self.root):
            folders[:] = sorted(each for each in folders if not each.startswith("."))
            for file in sorted(files):
                path = Path(folder) / file
                if found < MAX_FILES and not file.startswith((".", FILE)) and file.isprintable() and self._holds(path):
                    found += 1
                    yield path.relative_to(self.root).as_posix()

    def _holds(self, path: Path) -> bool:
        try:
            return path.resolve(strict=True).is_relative_to(self.root)
        except (OSError, RuntimeError):
            return False

    def stamp(self, name: str) -> tuple[int, int]:
        """Return the modification time and size of a file; (0, 0) if there is none."""
        try:
            found = (self.root / name).stat()
        except OSError:
            return 0, 0
        return found.st_mtime_ns, found.st_size

    async def read(self, name: str) -> tuple[str, Document]:
        """Return the hash of a file's content, and its text.

        Raises:
            ToolError: the file is not in the folder, is too large, or cannot be read as text.
        """
        if (found := UNREAD.get(Path(name).suffix.lower())) is not None:
            raise ToolError(f"{name} is {found[0]}, which cannot be read: save it as {found[1]}")
        path, is_html = self._path(name), name.lower().endswith(HTML)
        is_binary = is_parsed(name) and not is_html
        try:
            content = await asyncio.to_thread(read_bytes, path, MAX_PARSED_BYTES if is_binary else MAX_BYTES)
            digest = hashlib.blake2b(content, digest_size=16, salt=b"html" * is_html).hexdigest()
            if is_binary:
                return digest, await asyncio.to_thread(_of_lines, **await _parsed(name, "read_file", str(path)))
            decoded = await asyncio.to_thread(_decoded_page if is_html else decode_text, content)
        except InputError as error:
            raise ToolError(f"{name} {error}") from None
        text = await _parsed(name, "read_html", decoded.text) if is_html else decoded.text
        return digest, await asyncio.to_thread(_of_text, text, decoded.note)

    def _path(self, name: str) -> Path:
        if "\0" in name or not name or len(name) > 1_000:
            raise ToolError("a file name must have 1 to 1,000 characters, none of them NUL")
        path = self.root / name
        if Path(name).is_absolute() or not self._holds(path) or not path.is_file():
            raise ToolError(f"there is no document {name[:200]!r} in this folder: list_documents lists the names")
        return path.resolve()


async def _parsed(name: str, function: str, given: str) -> Any:
    try:
        return await run_child(PARSER, function, given, seconds=PARSER_SECONDS, megabytes=PARSER_MEGABYTES)
    except ToolError as error:
        raise ToolError(f"{name}: {error}") from None


def _decoded_page(content: bytes) -> Decoded:
    """Decode an HTML page in the encoding that it declares, if possible."""
    if (declared := DECLARED.search(content[:4_096])) is not None:
        try:
            codec = codecs.lookup(declared[1].decode("ascii")).name
            text = content.decode("cp1252" if codec == "iso8859-1" else codec)  # as browsers read ISO 8859-1
            return Decoded(text.removeprefix("\ufeff"), "UTF-8")
        except (LookupError, UnicodeError):
            pass  # the declaration is wrong
    return decode_text(content)


def _of_text(text: str, note: str) -> Document:
    lines = tuple(text.splitlines())
    return Document(lines, ("",) * len(lines), tuple(range(1, len(lines) + 1)), note=note)


def _of_lines(lines: Sequence[tuple[str, str, int]], noun: str, note: str) -> Document:
    texts, units, numbers = (tuple(each) for each in zip(*lines, strict=True))
    tables = dict[int, int]()
    for at, text in enumerate(texts):
        if text.startswith("| --- "):
            end = next((n for n in range(at, len(texts)) if not texts[n]), len(texts))
            tables[at - 1] = sum(map(len, texts[at - 1 : end]))
    return Document(texts, units, numbers, noun, note, tables)


def is_parsed(name: str) -> bool:
    """Return whether a file is read by a parser in a child process, which is slow."""
    return name.lower().endswith((*HTML, *BINARY))


def passages(document: Document) -> list[Passage]:
    """Split a document at empty lines, headings and pages into passages of about PASSAGE characters."""
    found: list[Passage] = []
    headings = {at: (level, words) for at, level, words in find_headings(document.lines)}
    above: list[tuple[int, str]] = []
    for held in _portions(document):
        text = "\n".join(document.lines[at] for at in held).strip()
        place = _place(document, held)
        for start in range(0, len(text), 2 * PASSAGE):
            own = headings.get(held[0]) if start == 0 else None
            under = [words for level, words in above if own is None or level < own[0]]
            found.append(Passage(text[start : start + 2 * PASSAGE], place, JOINT.join(under)))
        for at in held:
            above = open_headings(above, *headings[at]) if at in headings else above
    return found


def _portions(document: Document) -> Iterator[list[int]]:
    """Yield for each passage the positions of its lines in the document, from 0."""
    held, size = list[int](), 0
    for at, line in enumerate(document.lines):
        if held and (
            document.units[at] != document.units[held[0]]
            or (size > PASSAGE // 4 and re.match(r"#{1,6}\s", line))
            or (size + len(line) > PASSAGE and (not line.strip() or size > PASSAGE))
            or (at in document.tables and size + document.tables[at] > PASSAGE)
        ):
            yield held
            held, size = [], 0
        if line.strip() or held:
            held.append(at)
            size += len(line) + 1
    if held:
        yield held


def _place(document: Document, held: Sequence[int]) -> str:
    numbers = [number for at in held if (number := document.numbers[at])]
    counted = ""
    if document.noun and numbers:
        first, last = min(numbers), max(numbers)
        counted = f"{document.noun}s {first}-{last}" if last > first else f"{document.noun} {first}"
    return ", ".join(filter(None, (document.units[held[0]], counted)))


MAX_LINE = 220
"""Length in characters above which a paragraph is divided into parts of whole sentences."""
WHOLE = 400
"""Maximum length in characters of a table, list or paragraph that is returned as a whole."""
SIMILARITY = 0.5
"""Weight of the similarity of vectors in the score of a line, relative to shared words."""
RANK = 0.3
"""Approximate advantage in score that a line of the first passage, which fits best, has over a line of the last one."""
MIN_LINES, MIN_SCORE = 2, 0.4
"""MIN_LINES: number of lines that are always returned. MIN_SCORE: share of the best line's score that each further line
needs."""
GAP = "…"
ITEM = re.compile(r"\s*(?:[-*+]|\d{1,3}[.)])\s+\S")
RULE = re.compile(r"[|\s:-]+")


@dataclass(frozen=True, slots=True)
class Line:
    """The unit of an extract: a row of a table, an item of a list, a paragraph, or a part of a long paragraph.

    Attributes:
        under: the headings above the line.
        block: the number of the table, list or paragraph with this line, in its passage.
        of: the number of rows of the table, or of items of the list, as in "7 rows"; "": in a paragraph.
        columns: the header row of the table; "": outside of tables.
    """

    text: str
    under: str
    block: int
    of: str = ""
    columns: str = ""

    @property
    def headed(self) -> str:
        """The line with its headings and columns; this text is compared with a query."""
        return " ".join(filter(None, (self.under, self.columns, self.text)))


def _blocks(lines: Sequence[str], headings: Mapping[int, object]) -> Iterator[tuple[int | str, list[str]]]:
    """Yield the blocks of a text, each as its kind and its lines.

    The kind of a heading is its line number; other kinds are `table`, `list` and `text` (a paragraph).
    """
    kind: int | str = ""
    held: list[str] = []
    for at, line in enumerate([*lines, ""]):
        words = " ".join(line.split())
        new: int | str = "text" if words else ""
        if at in headings:
            new = at
        elif words.startswith("|"):
            new = "table"
        elif ITEM.match(line):
            new = "list"
        elif words and kind == "list":  # the line continues a list item
            held[-1] += f" {words}"
            continue
        if new != kind:
            if held:
                yield kind, held
            kind, held = new, []
        held += [words] if words else []


def _sentences(paragraph: str) -> Iterator[str]:
    """Yield a paragraph as a whole, or in parts of whole sentences if it is long."""
    held = ""
    for sentence in sentences(paragraph) if len(paragraph) > MAX_LINE else [paragraph]:
        if held and len(held) + len(sentence) > MAX_LINE:
            yield held
            held = ""
        held = f"{held} {sentence}".strip()
    if held:
        yield held


async def extract(found: Sequence[Passage], query: str, count: int) -> str:
    """Return about `count` lines of the passages found, in their order, below their places and headings.

    The score of a line has three parts:

    - the words that the line with its headings and columns shares with the query (BM25);
    - the similarity of the vectors of the line (with its headings and columns) and of the query;
    - the rank of the line's passage (the first passage is the best).

    Lines far below the best score are left out, except for the best MIN_LINES. A short table, list or paragraph is
    returned whole. Above a table or list that is not returned whole, a line says how many of its rows or items are
    shown.
    """
    lines = [(rank, line) for rank, each in enumerate(found) for line in each.lines()]
    if not lines:
        return "\n\n".join(f"{passage.place}:\n{passage.text}" for passage in found[:1])
    index = Lexical()
    for _, line in lines:
        index.add(terms(line.headed))
    words = index.scores(terms(query))
    vectors = await shared_embedder().embed([query, *(line.headed for _, line in lines)])
    ranks = np.array([rank for rank, _ in lines]) / len(found)
    scores = words / max(float(words.max(initial=0.0)), 1e-9) + SIMILARITY * (vectors[1:] @ vectors[0]) - RANK * ranks
    best = np.argsort(-scores, kind="stable")[:count]
    fitting = {*best[:MIN_LINES], *(at for at in best[MIN_LINES:] if scores[at] >= MIN_SCORE * scores[best[0]])}
    for _, block in groupby(range(len(lines)), key=lambda at: (lines[at][0], lines[at][1].block)):
        whole = set(block)
        if whole & fitting and sum(len(lines[at][1].text) for at in whole) <= WHOLE:
            fitting |= whole
    by_head = groupby(sorted(fitting), key=lambda at: (found[lines[at][0]].place, lines[at][1].under))
    return "\n\n".join("\n".join(_shown(*head, {at: lines[at][1] for at in held})) for head, held in by_head)


def _shown(place: str, under: str, lines: Mapping[int, Line]) -> Iterator[str]:
    yield f"{place} ({under}):" if under else f"{place}:"
    counts = Counter(line.block for line in lines.values())
    block = -1
    for at, line in lines.items():
        if line.block != block and line.of:
            count = counts[line.block]
            yield from [f"({count} of {line.of} are shown)"] if not line.of.startswith(f"{count} ") else []
            yield from filter(None, [line.columns])
        elif at - 1 not in lines and at > min(lines):
            yield GAP
        block = line.block
        yield line.text


MAX_PASSAGES, BATCH = 20_000, 50
SHOWN = 5
PART = 6_000
"""Maximum number of characters of a document that one call returns."""
PASSAGES, LINES = 8, 5
"""Maximum number of passages that a search finds, and maximum number of lines that are extracted from them."""
MAX_NAMES = 800
"""Maximum characters of file names in the description of the tool `search_documents`."""
READ_S = 20.0
"""Maximum time in seconds that a search spends on reading changed files; plain text files are read first.

Files that are not read in this time are read by the next searches.
"""
Stamp: TypeAlias = tuple[int, int]
FAILURES, FAILED = "unparsed", TypeAdapter(dict[str, tuple[Stamp, str]])
"""Name and type of the checkpoint about files that cannot be parsed. For each of these files, the checkpoint has the
reason, and the stamp (time of modification and size) of the file that could not be parsed."""
MAX_FAILURE = 2_000
"""Maximum characters of the row in the log about files that cannot be parsed."""
LineNumber = Annotated[int, Field(ge=1, le=10_000_000)]


class Documents:
    """The documents of a folder; a separate memory has their passages and is searched.

    Attributes:
        unread: for each file that could not be read, the reason.
        notes: messages for the user about files that were read: an assumed encoding, a part that was left out.
    """

    def __init__(self, folder: Folder, memory: Memory) -> None:
        self.folder, self.memory = folder, memory
        self.unread: dict[str, str] = {}
        self.notes: dict[str, str] = {}
        self._stamps: dict[str, Stamp] = {}
        self._lock = asyncio.Lock()

    async def refresh(self) -> None:
        """Update the memory: read files that are new or changed, and erase the passages of deleted files."""
        async with self._lock:
            stamps = await asyncio.to_thread(lambda: {name: self.folder.stamp(name) for name in self.folder.names()})
            if stamps == self._stamps:
                return
            held: dict[str, list[Record]] = {}
            async for portion in read_all(self.memory.store, self.memory.key):
                for record in portion:
                    if record.kind == "document":
                        held.setdefault(str(record.data.get("file")), []).append(record)
            self._stamps = {name: stamp for name, stamp in self._stamps.items() if stamps.get(name) == stamp}
            self.unread = {name: why for name, why in self.unread.items() if name in self._stamps}
            self.notes = {name: note for name, note in self.notes.items() if name in self._stamps}
            await self._erase(record for name in held.keys() - stamps.keys() for record in held[name])
            kept = await self.memory.store.checkpoint(self.memory.key, FAILURES)
            known = FAILED.validate_json(kept.data) if kept is not None else {}
            failures = {name: why for name, (stamp, why) in known.items() if stamps.get(name) == stamp}
            await self._read_changed(stamps, held, failures)
            new = {each: why for each, why in self.unread.items() if is_parsed(each) and each in self._stamps}
            if new != failures:
                await self._keep_failures(new, kept.version + 1 if kept else 1)

    async def _read_changed(
        self, stamps: Mapping[str, Stamp], held: Mapping[str, list[Record]], failures: Mapping[str, str]
    ) -> None:
        """Read the files that changed, for at most READ_S seconds.

        Files that were not reached, and a file that takes all this time by itself, are noted in `unread`.
        """
        left = MAX_PASSAGES - sum(len(records) for name, records in held.items() if name in stamps)
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
            if parsed == 1 and is_parsed(name):  # this file took all the time
                self.unread[name] = f"{name}: reading this file takes longer than {READ_S} seconds"
                self._stamps[name] = stamps[name]

    async def _keep_failures(self, failures: Mapping[str, str], version: int) -> None:
        """Store which files cannot be parsed, and why. No process parses such a file again until the file changes."""
        data = FAILED.dump_json({name: (self._stamps[name], why) for name, why in failures.items()})
        event = Failed(text="; ".join(failures.values())[:MAX_FAILURE], where="documents")
        with contextlib.suppress(Conflict):  # another process has stored its list
            await self.memory.commit(Entry(event, self.memory.name), checkpoint=Checkpoint(FAILURES, version, data))

    async def _read(self, name: str, there: list[Record], room: int, failed: str) -> int:
        """Store the passages of a file, unless the stored passages are current; return the growth of their number.

        Args:
            there: the stored passages of the file.
            room: the number of passages that may still be stored.
            failed: the known reason why the file cannot be parsed; parsing is then not tried. "": no known reason.
        """
        self.unread.pop(name, None)
        try:
            if failed:
                raise ToolError(failed)
            digest, document = await self.folder.read(name)
            if document.note:
                self.notes[name] = document.note
            is_same = all(record.data.get("hash") == digest for record in there)
            if there and is_same and len(there) == there[0].data.get("parts"):
                return 0
            found = await asyncio.to_thread(passages, document)  # seconds of work for a large file
            if len(found) > room + len(there):
                raise ToolError(f"{name} is not searched: a folder may have at most {MAX_PASSAGES:,} passages")
        except ToolError as error:
            self.unread[name] = str(error)
            digest, found = "", []
        await self._erase(there)
        data: JsonObject = {"file": name, "hash": digest, "parts": len(found), TAINTED: True}
        drafts = [
            RecordDraft(
                text=f"{name}, {each.place}:\n{each.headed}",
                kind="document",
                by=name[:200],
                data={**data, "place": each.place, "under": each.under},
            )
            for each in found
        ]
        for some in batches(drafts, BATCH):
            await self.memory.retain_all(some)
        return len(drafts) - len(there)

    async def _erase(self, records: Iterable[Record]) -> None:
        if ids := [record.id for record in records]:
            await self.memory.store.erase(self.memory.key, ids)

    def _skipped(self) -> list[str]:
        """Return lines that name the files that were not searched, or only in part or with an uncertain encoding."""
        unsure = [f"{name} is {note}" for name, note in self.notes.items() if "assumed" in note or "only" in note]
        return [
            f"({what}: {'; '.join(each[:SHOWN])}{f'; and {len(each) - SHOWN:,} more' * (len(each) > SHOWN)})"
            for what, each in (("not searched", [*self.unread.values()]), ("uncertain", unsure))
            if each
        ]

    def _named(self) -> str:
        """Return the names of as many files as fit into MAX_NAMES characters, for the description of a tool."""
        names, shown = list(self.folder.names()), list[str]()
        for name in names:
            if sum(map(len, shown)) + len(name) > MAX_NAMES:
                return f"{'; '.join(shown)}; and {len(names) - len(shown):,} more"
            shown.append(name)
        return "; ".join(shown) or "none yet"

    def tools(self, *, trusted: bool = False) -> tuple[FunctionTool, ...]:
        """Make the tools `search_documents`, `list_documents` and `read_document`.

        Args:
            trusted: whether the user vouches for the documents; otherwise their texts are third-party content.
        """

        async def search_documents(query: Words) -> str:
            await self.refresh()
            found = await self.memory.recall(query, PASSAGES, kinds=["document"], touch=False)
            if not found:
                raise ToolError(" ".join(["there is nothing to read in the folder", *self._skipped()]))
            held = [_passage(each.record) for each in found]
            return "\n\n".join([await extract(held, query, LINES), *self._skipped()])

        search_documents.__doc__ = f"Give the lines that fit a query best, of: {self._named()}."

        async def list_documents() -> str:
            """List the documents, also those that cannot be read."""
            await self.refresh()
            names = list(self.folder.names())
            lines = [
                self.unread.get(name, f"{name} ({self.notes[name]})" if name in self.notes else name) for name in names
            ]
            full = [f"… and perhaps more: at most {MAX_FILES:,} files are read"] * (len(names) == MAX_FILES)
            return "\n".join(lines + full) or "there are no documents"

        async def read_document(name: str, from_line: LineNumber = 1) -> str:
            """Read a document by its name, where its best lines are not enough. Long ones come in parts."""
            _, document = await self.folder.read(name)
            return _part(document.lines, from_line)

        traits = PLAIN if trusted else UNTRUSTED
        return tuple(tool(each, traits) for each in (search_documents, list_documents, read_document))


def _passage(record: Record) -> Passage:
    head, _, text = record.text.partition(":\n")
    under = str(record.data.get("under") or "")
    return Passage(text.removeprefix(f"# {under}\n\n"), head, under)


def _part(lines: tuple[str, ...], from_line: int) -> str:
    if from_line > max(len(lines), 1):
        raise ToolError(f"that document has only {count_of(len(lines), 'line')}: start at an earlier line")
    taken, size = list[str](), 0
    for line in lines[from_line - 1 :]:
        size += len(line) + 1
        if taken and size > PART:
            break
        taken.append(line if len(line) <= PART else f"{line[:PART]}… (the line is cut)")
    end = from_line + len(taken)
    more = f"\n… (lines {from_line} to {end - 1} of {len(lines)}; the next part is from line {end})"
    return "\n".join(taken) + (more if end <= len(lines) else "") or "the document is empty"


@contextlib.asynccontextmanager
async def open_documents(
    folder: Path | str, data: AnyData | None = None, *, embed: Embedder | str = "wordllama", reader: str = ""
) -> AsyncIterator[Documents]:
    """Open a folder's documents.

    Args:
        data: where the passages are stored; None: a temporary folder, which is deleted when the block ends.
        reader: the name of the memory that uses the documents. It is recorded in `data`: the passages can be erased
            when no memory uses them any more. "": nothing is recorded.

    Raises:
        ToolError: there is no such folder.
    """
    found = Folder(folder)
    name = StreamName("documents", blake2b(str(found.root).encode(), digest_size=8).hexdigest())
    with tempfile.TemporaryDirectory(prefix="mindstream-") if data is None else contextlib.nullcontext(data) as kept:
        async with Memory.open(kept, name, embed=embed) as stream:
            if reader and data is not None:
                known = await stream.store.events(stream.key, kinds=[DocumentsRead.kind])
                if reader not in {row.by for row in known}:
                    await stream.commit(Entry(DocumentsRead(), reader))
            yield Documents(found, stream)


JOINT = " › "
"""Separator between a heading and the headings below it."""
MAX_HEADING, MAX_HEADING_ZH, MAX_HEADING_BEFORE_TEXT = 80, 24, 40
MARKED = re.compile(r"(#{1,6})\s+(?=[^\s#])")
UNDERLINE = re.compile(r"\A[=-]{3,}\Z")
LIST_ITEM = re.compile(r"\A(?:[-*>|+]|\d{1,3}[.)])")
CLOSING, STOPS = "\"'”’」』)]）", ".!?…:;,。！？：；，、"
CLAUSE = re.compile(r"[，；。]")


def find_headings(lines: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """Yield the headings in `lines`, each as its position, its level, and its text.

    The level of a heading with marks is the number of its marks (#). A heading without a mark has level 0 in the first
    line with text (the title), and level 2 in any other line.
    """
    is_first = True
    for at, line in enumerate(lines):
        words = line.strip()
        if marked := MARKED.match(words):
            yield at, len(marked[1]), words[marked.end() :].rstrip("# ")
        elif words and _stands_alone(lines, at, words):
            yield at, 0 if is_first else 2, words
        is_first = is_first and not words


def open_headings(held: Sequence[tuple[int, str]], level: int, words: str) -> list[tuple[int, str]]:
    """Return the headings that apply to the text below a new heading.

    These are the headings of `held` above the new heading's level, and the new heading.
    """
    return [
        *(each for each in held if each[0] < level),
        *((level + n, each) for n, each in enumerate(words.split(JOINT))),
    ]


def _stands_alone(lines: Sequence[str], at: int, words: str) -> bool:
    """Return whether a line is a heading without a mark.

    Such a heading is short and no sentence, comes after an empty line or at the beginning, and has text below it.
    """
    longest = MAX_HEADING_ZH if CJK.search(words[:MAX_HEADING]) else MAX_HEADING
    if len(words) > longest or LIST_ITEM.match(words) or UNDERLINE.match(words):
        return False
    if words.rstrip(CLOSING).endswith(tuple(STOPS)) or CLAUSE.search(words):
        return False
    before, after = lines[at - 1].strip() if at else "", lines[at + 1].strip() if at + 1 < len(lines) else ""
    if before or not any(line.strip() for line in lines[at + 1 : at + 4]):
        return False
    begins = after[:1].isupper() or after[:1].isdigit() or bool(CJK.match(after))
    return not after or bool(UNDERLINE.match(after)) or (begins and len(words) <= MAX_HEADING_BEFORE_TEXT)
