"""A folder of documents: which files lie in it, and their text; nothing outside of it is read."""

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

LARGEST, LARGEST_PDF, MOST_FILES = 2_000_000, 30_000_000, 2_000
PASSAGE = 1_000
"""How long a passage gets, in characters."""
PARSER_SECONDS, PARSER_MEGABYTES = 15, 2_000
PDF_SCRIPT, HTML_SCRIPT, OFFICE_SCRIPT = (
    Path(__file__).with_name(name) for name in ("pdf_text.py", "html_text.py", "office_text.py")
)
HTML = (".html", ".htm", ".xhtml")
OFFICE = (
    ".docx",
    ".docm",
    ".dotx",
    ".pptx",
    ".pptm",
    ".ppsx",
    ".xlsx",
    ".xlsm",
    ".xlsb",
    ".xltx",
    ".xls",
    ".ods",
)
UNREAD: Mapping[str, tuple[str, str]] = {
    ".doc": ("a Word 97-2003 document", ".docx"),
    ".dot": ("a Word 97-2003 template", ".docx"),
    ".ppt": ("a PowerPoint 97-2003 presentation", ".pptx"),
    ".pps": ("a PowerPoint 97-2003 presentation", ".pptx"),
    ".odt": ("an OpenDocument text", ".docx"),
    ".odp": ("an OpenDocument presentation", ".pptx"),
    ".rtf": ("a Rich Text file", ".docx"),
    ".pages": ("a Pages document", ".docx"),
    ".wpd": ("a WordPerfect document", ".docx"),
    ".key": ("a Keynote presentation", ".pptx"),
    ".numbers": ("a Numbers spreadsheet", ".xlsx"),
    ".epub": ("an EPUB book", ".html"),
    ".mht": ("a web archive", ".html"),
    ".mhtml": ("a web archive", ".html"),
}
"""Formats that are not read: what they are, and what to save them as."""
DECLARED = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]{2,40})", re.IGNORECASE)
"""The encoding that an HTML page names for itself."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a document; `place` says where in it: `lines 3-9`, `page 2`.

    Attributes:
        under: the headings that it stands under and does not hold itself, the title first.
    """

    text: str
    place: str
    under: str = ""

    @property
    def headed(self) -> str:
        """The text below what heads it: who reads a part alone knows what it is a part of."""
        return f"# {self.under}\n\n{self.text}" if self.under else self.text


@dataclass(frozen=True, slots=True)
class Document:
    """A file of the folder: its lines.

    Attributes:
        units: of each line, the part of the file that it is in: "page 2", "slide 2", "sheet Prices"; "": none.
        numbers: of each line, the number of its line, paragraph or row; 0: it has none.
        noun: what the numbers count.
        note: what the user is told of the file: an encoding that was assumed, a part that was not read.
        tables: where a table with the names of its columns begins, and its length in characters; it stays whole.
    """

    lines: tuple[str, ...]
    units: tuple[str, ...]
    numbers: tuple[int, ...]
    noun: str = "line"
    note: str = ""
    tables: Mapping[int, int] = field(default_factory=dict)


class Folder:
    """Files in a folder and the folders in it; what is hidden, and a memory that lies there, is left out.

    Raises:
        ToolError: there is no such folder.
    """

    def __init__(self, path: Path | str) -> None:
        self.root = Path(path).expanduser().resolve()
        if not self.root.is_dir():
            raise ToolError(f"there is no folder {str(path)!r}" + ": it is a file" * self.root.is_file())

    def names(self) -> Iterator[str]:
        """Yield the names of its files, so many at most; links that lead out are left out."""
        found = 0
        for folder, folders, files in os.walk(self.root):
            folders[:] = sorted(each for each in folders if not each.startswith("."))
            for file in sorted(files):
                path = Path(folder) / file
                if not file.startswith((".", FILE)) and path.name.isprintable() and self._is_inside(path):
                    found += 1
                    if found > MOST_FILES:
                        return
                    yield path.relative_to(self.root).as_posix()

    def _is_inside(self, path: Path) -> bool:
        try:
            return path.resolve(strict=True).is_relative_to(self.root)
        except (OSError, RuntimeError):
            return False

    def stamp(self, name: str) -> tuple[int, int]:
        """Return what changes when a file does, mostly: its time and size; (0, 0) where it is gone."""
        try:
            found = (self.root / name).stat()
        except OSError:
            return 0, 0
        return found.st_mtime_ns, found.st_size

    def content(self, name: str) -> bytes:
        """Return the bytes of a file.

        Raises:
            ToolError: it is not in the folder, cannot be read, or is too large.
        """
        try:
            return read_bytes(self._path(name), LARGEST_PDF if _is(name, (".pdf", *OFFICE)) else LARGEST)
        except InputError as error:
            raise ToolError(f"{name} {error}") from None

    async def read(self, name: str) -> tuple[str, Document]:
        """Return a file's hash and its text.

        Raises:
            ToolError: it is not in the folder, or is no text.
        """
        if (found := UNREAD.get(Path(name).suffix.lower())) is not None:
            raise ToolError(f"{name} is {found[0]}, which is not read: save it as {found[1]}")
        content = await asyncio.to_thread(self.content, name)
        is_html = _is(name, HTML)
        digest = hashlib.blake2b(content, digest_size=16, salt=b"html" * is_html).hexdigest()
        if _is(name, (".pdf",)):
            pages = (await _parsed(name, PDF_SCRIPT, str(self._path(name))))["pages"]
            return digest, _numbered(
                [(line, f"page {n}", 0) for n, page in enumerate(pages, 1) for line in page.splitlines()]
            )
        if _is(name, OFFICE):
            parsed = await _parsed(name, OFFICE_SCRIPT, str(self._path(name)))
            return digest, await asyncio.to_thread(_numbered, parsed["lines"], parsed["noun"], parsed["note"])
        try:
            decoded = await asyncio.to_thread(_decoded_page if is_html else decode_text, content)
        except InputError as error:
            raise ToolError(f"{name} {error}") from None
        text = str((await _parsed(name, HTML_SCRIPT, decoded.text))["text"]) if is_html else decoded.text
        return digest, await asyncio.to_thread(_of_text, text, decoded.note)

    def _path(self, name: str) -> Path:
        if "\0" in name or not name or len(name) > 1_000:
            raise ToolError("that is no name of a file")
        path = self.root / name
        if Path(name).is_absolute() or not self._is_inside(path) or not path.is_file():
            raise ToolError(f"there is no document {name[:200]!r} in this folder: list_documents names them")
        return path.resolve()


async def _parsed(name: str, script: Path, given: str) -> Any:
    """Have a file read by a foreign parser, in a process of its own.

    Raises:
        ToolError: it cannot be read.
    """
    try:
        return await run_child(script, given, seconds=PARSER_SECONDS, megabytes=PARSER_MEGABYTES)
    except ToolError as error:
        raise ToolError(f"{name}: {error}") from None


def _decoded_page(content: bytes) -> Decoded:
    """Decode an HTML page, in the encoding that it names where that is possible."""
    if (declared := DECLARED.search(content[:4_096])) is not None:
        try:
            codec = codecs.lookup(declared[1].decode("ascii")).name
            text = content.decode("cp1252" if codec == "iso8859-1" else codec)  # as browsers do
            return Decoded(text.removeprefix("\ufeff"), "UTF-8")
        except (LookupError, UnicodeError):
            pass  # it names another one than it has
    return decode_text(content)


def _of_text(text: str, note: str) -> Document:
    lines = tuple(text.splitlines())
    return Document(lines, ("",) * len(lines), tuple(range(1, len(lines) + 1)), note=note)


def _numbered(lines: Sequence[tuple[str, str, int]], noun: str = "", note: str = "") -> Document:
    texts, units, numbers = (tuple(each) for each in zip(*lines, strict=True)) if lines else ((), (), ())
    tables = dict[int, int]()
    for at, text in enumerate(texts):
        if text.startswith("| --- "):
            end = next((n for n in range(at, len(texts)) if not texts[n]), len(texts))
            tables[at - 1] = sum(map(len, texts[at - 1 : end]))
    return Document(texts, units, numbers, noun, note, tables)


def is_parsed(name: str) -> bool:
    """Return whether a file is read by a parser in a process of its own, which takes its time."""
    return _is(name, (*HTML, *OFFICE, ".pdf"))


def _is(name: str, endings: tuple[str, ...]) -> bool:
    return name.lower().endswith(endings)


def passages(document: Document) -> list[Passage]:
    """Cut a document at empty lines, headings and pages into passages of about a thousand characters."""
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
    """Yield the lines of a passage each time."""
    held, size = list[int](), 0
    for at, line in enumerate(document.lines):
        turns = held and document.units[at] != document.units[held[0]]
        begins = re.match(r"#{1,6}\s", line) and size > PASSAGE // 4
        full = size + len(line) > PASSAGE and (not line.strip() or size > PASSAGE)
        tables = size + document.tables.get(at, 0) > PASSAGE and at in document.tables
        if held and (turns or begins or full or tables):
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
