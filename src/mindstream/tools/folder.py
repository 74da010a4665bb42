"""A folder of documents: its files and their text. Files outside of the folder are never read."""

from __future__ import annotations

import asyncio
import codecs
import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mindstream.encodings import Decoded, decode_text
from mindstream.errors import InputError, ToolError
from mindstream.log.database import FILE
from mindstream.paths import read_bytes
from mindstream.text.context import JOINT, find_headings, open_headings
from mindstream.tools.child import run_child

MAX_BYTES, MAX_PARSED_BYTES, MAX_FILES = 2_000_000, 30_000_000, 2_000
"""Maximum size in bytes of a text file, and of a PDF or Office file; maximum number of files that are read."""
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
"""Formats that are not read, by file ending: the name of the format, and a format in which the user should save the
file."""
DECLARED = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]{2,40})", re.IGNORECASE)
"""Finds the encoding that an HTML page declares."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a document.

    Attributes:
        place: the position in the document: `lines 3-9`, `page 2`.
        under: the headings above the passage that it does not contain, the title first.
    """

    text: str
    place: str
    under: str = ""

    @property
    def headed(self) -> str:
        """The text with the headings in front, so that it can be understood by itself."""
        return f"# {self.under}\n\n{self.text}" if self.under else self.text


@dataclass(frozen=True, slots=True)
class Document:
    """The lines of a file.

    Attributes:
        units: the part of the file that each line is in: "page 2", "slide 2", "sheet Prices"; "": none.
        numbers: the number of each line, paragraph or row; 0: it has none.
        noun: what the numbers count.
        note: a message for the user: an encoding that was assumed, a part that was not read.
        tables: the length in characters of each table with column names, by the position of its first line. A passage
        that has no room left for a whole table ends before the table.
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
        """Yield the names of at most MAX_FILES files; links that lead out of the folder are left out."""
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
            raise ToolError(f"{name} is {found[0]}, which is not read: save it as {found[1]}")
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
            raise ToolError("a file name has 1 to 1,000 characters and no NUL")
        path = self.root / name
        if Path(name).is_absolute() or not self._holds(path) or not path.is_file():
            raise ToolError(f"there is no document {name[:200]!r} in this folder: list_documents names them")
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
            text = content.decode("cp1252" if codec == "iso8859-1" else codec)  # browsers do so too
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
