"""A folder of documents: which files lie in it, and their text; nothing outside of it is read."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mindstream.errors import InputError, ToolError
from mindstream.log.database import FILE
from mindstream.paths import read_bytes
from mindstream.text.headings import JOINT, find_headings, open_headings
from mindstream.tools.child import run_child

LARGEST, LARGEST_PDF, MOST_FILES = 2_000_000, 30_000_000, 2_000
PASSAGE = 1_000
"""How long a passage gets, in characters."""
PARSER_SECONDS, PARSER_MEGABYTES = 30, 2_000
PDF_SCRIPT, HTML_SCRIPT = (Path(__file__).with_name(name) for name in ("pdf_text.py", "html_text.py"))
HTML = (".html", ".htm", ".xhtml")


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
    """A file of the folder: its lines, each with the page (0: no pages)."""

    lines: tuple[str, ...]
    pages: tuple[int, ...]


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
            return read_bytes(self._path(name), LARGEST_PDF if _is_pdf(name) else LARGEST)
        except InputError as error:
            raise ToolError(f"{name} {error}") from None

    async def read(self, name: str) -> tuple[str, Document]:
        """Return a file's hash and its text.

        Raises:
            ToolError: it is not in the folder, or is no text.
        """
        content = await asyncio.to_thread(self.content, name)
        is_html = name.lower().endswith(HTML)
        digest = hashlib.blake2b(content, digest_size=16, salt=b"html" * is_html).hexdigest()
        if _is_pdf(name):
            found = await _parsed(name, PDF_SCRIPT, str(self._path(name)))
            numbered = [(line, n) for n, page in enumerate(found["pages"], 1) for line in page.splitlines()]
        elif b"\0" in content[:8_000]:
            raise ToolError(f"{name} is no text")
        else:
            text = content.decode("utf-8", "replace").lstrip("\ufeff")
            if is_html:
                text = str((await _parsed(name, HTML_SCRIPT, text))["text"])
            return digest, await asyncio.to_thread(_unpaged, text)
        return digest, Document(tuple(line for line, _ in numbered), tuple(page for _, page in numbered))

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


def _unpaged(text: str) -> Document:
    lines = tuple(text.splitlines())
    return Document(lines, (0,) * len(lines))


def _is_pdf(name: str) -> bool:
    return name.lower().endswith(".pdf")


def passages(document: Document) -> list[Passage]:
    """Cut a document at empty lines, headings and pages into passages of about a thousand characters."""
    found: list[Passage] = []
    headings = {at: (level, words) for at, level, words in find_headings(document.lines)}
    above: list[tuple[int, str]] = []
    for held in _portions(document):
        text = "\n".join(document.lines[at] for at in held).strip()
        place = _place(document, held[0], held[-1])
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
        turns = held and document.pages[at] != document.pages[held[0]]
        begins = re.match(r"#{1,6}\s", line) and size > PASSAGE // 4
        full = size + len(line) > PASSAGE and (not line.strip() or size > PASSAGE)
        if held and (turns or begins or full):
            yield held
            held, size = [], 0
        if line.strip() or held:
            held.append(at)
            size += len(line) + 1
    if held:
        yield held


def _place(document: Document, first: int, last: int) -> str:
    if page := document.pages[first]:
        return f"page {page}"
    return f"lines {first + 1}-{last + 1}" if last > first else f"line {first + 1}"
