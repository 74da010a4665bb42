"""Text of HTML, PDF, Word, Excel and PowerPoint files.

These functions run in a child process (`child.run_child`), because a malicious file can crash a parser or keep it busy
for minutes. This module imports nothing from mindstream. `SystemExit` carries the error message for the caller.

A file is read as lines. Each line has a unit, the part of the file that it is in ("sheet Prices", "slide 2"), and the
number of its paragraph or row. Tables are written in Markdown; long tables repeat their column names every few rows.
"""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

NOT_CONTENT = "script, style, noscript, template, svg, iframe, nav, aside, form, button, [hidden], [aria-hidden=true]"
MAIN = "main, article, [role=main]"
INLINE = frozenset({
    "a", "abbr", "b", "bdi", "bdo", "cite", "code", "data", "dfn", "em", "font", "i", "kbd", "mark", "q", "s", "small",
    "span", "strong", "sub", "sup", "time", "u", "var", "wbr", "-text", "_comment",
})  # fmt: skip
MAX_PAGES, MAX_CHARACTERS = 1_000, 4_000_000
"""Maximum pages of a PDF file, and characters of any file, that are read."""
MAX_UNPACKED = 300 << 20
"""Maximum size of all parts of an Office file after unpacking, in bytes."""
MAX_CELL, MAX_COLUMNS, MAX_MERGED = 500, 100, 10_000
"""Maximum characters of a cell, columns of a sheet, and cells of a merged range that is filled."""
BLOCK = 800
"""Number of characters of a table's rows after which its column names are repeated."""
OLE, PASSWORD = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "EncryptedPackage".encode("utf-16-le")
SHEETS = (".xlsx", ".xlsm", ".xlsb", ".xltx", ".xls", ".ods")
W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
PARTS = {"header": "Header", "footer": "Footer", "footnotes": "Footnote", "endnotes": "Endnote", "comments": "Comment"}
"""Parts of a Word document in addition to its body."""

Line = tuple[str, str, int]
"""A line of a file: its text, the unit that contains it, such as a page or sheet ("": none), and the number of the
paragraph or row (0: none)."""


def read_html(html: str) -> str:
    """Return the title and the main content of a page, one paragraph per line."""
    try:
        from selectolax.lexbor import LexborHTMLParser
    except ImportError:
        sys.exit("HTML needs a package: pip install 'mindstream[web]' (or [documents])")
    tree = LexborHTMLParser(html)
    title = tree.css_first("title")
    lines, line = [title.text()[:300] if title else ""], list[str]()
    for node in tree.css(NOT_CONTENT):
        node.decompose()
    root = max(tree.css(MAIN), key=lambda node: len(node.text()), default=tree.body)
    for node in root.traverse(include_text=True) if root else ():
        if node.tag not in INLINE:
            lines.append("".join(line))
            line = []
        if node.tag == "-text":
            line.append(node.text_content or "")
    lines.append("".join(line))
    return "\n".join(tidy for each in lines if (tidy := " ".join(each.split())))


def read_file(path: str) -> dict[str, Any]:
    """Read a PDF or Office file, and return a dictionary with `lines`, `noun` and `note`.

    - `lines`: the lines of the file.
    - `noun`: what the numbers of the lines count: "row", "paragraph" or "" (nothing).
    - `note`: a message for the user; "": none.

    Raises:
        SystemExit: the file contains no text or cannot be read here, or a package is not installed. The message says
            why.
    """
    ending = Path(path).suffix.lower()
    reader = pdf if ending == ".pdf" else sheets if ending in SHEETS else slides if "pp" in ending else word
    if reader is not pdf:
        _check_office(path, ending)
    lines, size, note = list[Line](), 0, ""
    try:
        for text, unit, number in reader(path):
            lines += [(line, unit, number) for line in text.splitlines() or [""]]
            size += len(text) + 1
            if size > MAX_CHARACTERS:
                note = f"only its first {MAX_CHARACTERS:,} characters are read"
                break
    except ImportError as error:
        sys.exit(f"{error.name} is not installed: pip install 'mindstream[documents]'")
    if not any(text.strip() for text, _, _ in lines):
        sys.exit("no text (a scan?)" if reader is pdf else "the file contains no text")
    noun = "row" if reader is sheets else "paragraph" if reader is word else ""
    return {"lines": lines, "noun": noun, "note": note}


def _check_office(path: str, ending: str) -> None:
    """Refuse protected files, old formats, and archives that unpack to too much."""
    with Path(path).open("rb") as file:
        if file.read(8) == OLE and ending != ".xls":
            locked = PASSWORD in file.read(1 << 20)
            sys.exit("the file is protected by a password" if locked else f"the file has an older format than {ending}")
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            if (size := sum(each.file_size for each in archive.infolist())) > MAX_UNPACKED:
                sys.exit(f"the file unpacks to {size >> 20:,} MB, but at most {MAX_UNPACKED >> 20} MB are read")


def pdf(path: str) -> Iterator[Line]:
    """Yield the text of each of the first MAX_PAGES pages."""
    from pypdf import PdfReader
    from pypdf.errors import DependencyError, FileNotDecryptedError

    try:
        for number, page in enumerate(PdfReader(path).pages[:MAX_PAGES], 1):
            if text := page.extract_text():
                yield text, f"page {number}", 0
    except (FileNotDecryptedError, DependencyError):
        sys.exit("encrypted")


def table(rows: Iterable[tuple[int, Sequence[str]]], unit: str) -> Iterator[Line]:
    """Yield a table in blocks, each below the column names.

    A row that has only one cell and comes before the column names is yielded as a paragraph.
    """
    names, head, size = list[str](), 0, 0
    for number, row in rows:
        filled = [cell for cell in row if cell]
        if not filled:
            continue
        if not names and len(filled) == 1:
            yield filled[0], unit, number
            continue
        if not names and not any(map(_is_number, filled)):
            names, head, size = list(row), number, BLOCK
            continue
        if len(row) > len(names):
            names += [_letters(at) for at in range(len(names), len(row))]
            head, size = head or number, BLOCK
        if size >= BLOCK:
            yield from (("", unit, number), (_row(names), unit, number), (_row(["---"] * len(names)), unit, number))
            head, size = 0, 0
        text = _row([*row, *[""] * (len(names) - len(row))])
        yield text, unit, number
        size += len(text)
    if head:  # the column names are the last row
        yield _row(names), unit, head
    yield "", unit, 0


def _is_number(cell: str) -> bool:
    return cell.replace(".", "", 1).replace(",", "").lstrip("-").isdigit()


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(' '.join(each.split()).replace('|', chr(92) + '|')[:MAX_CELL] for each in cells)} |"


def _letters(at: int) -> str:
    return (_letters(at // 26 - 1) if at >= 26 else "") + chr(65 + at % 26)


def sheets(path: str) -> Iterator[Line]:
    """Yield the rows of each sheet; a formula is given as its value that was last computed."""
    import python_calamine as calamine

    try:
        book = calamine.load_workbook(path)
    except calamine.PasswordError:
        sys.exit("the file is protected by a password")
    for each in book.sheets_metadata:
        if each.typ == calamine.SheetTypeEnum.WorkSheet:
            hidden = "hidden " * (each.visible != calamine.SheetVisibleEnum.Visible)
            yield from table(_filled(book.get_sheet_by_name(each.name)), f"{hidden}sheet {each.name}")


def _filled(sheet: Any) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows with their numbers; the text of a cell that is merged over several rows is repeated in each
    row."""
    below: dict[int, tuple[int, Any]] = {}
    merged = {
        (top, left): bottom
        for (top, left), (bottom, right) in sheet.merged_cell_ranges or ()
        if top < bottom and (bottom - top + 1) * (right - left + 1) <= MAX_MERGED
    }
    for at, row in enumerate(sheet.iter_rows(), (sheet.start or (0, 0))[0]):
        cells = list(row)
        for left, cell in enumerate(cells):
            if (at, left) in merged:
                below[left] = merged[at, left], cell
            elif cell == "" and left in below and at <= below[left][0]:
                cells[left] = below[left][1]
        while cells and cells[-1] == "":
            cells.pop()
        yield at + 1, [_value(cell) for cell in cells[:MAX_COLUMNS]]


def _value(cell: object) -> str:
    if isinstance(cell, bool):
        return str(cell).upper()
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 1e15 else repr(cell)
    if isinstance(cell, datetime):
        return cell.date().isoformat() if cell.time() == time() else cell.isoformat(" ", "minutes")
    return cell.isoformat() if isinstance(cell, date | time) else str(cell)


def word(path: str) -> Iterator[Line]:
    """Yield the paragraphs and tables of a document, then its notes, comments, headers and footers."""
    from docx.opc.constants import RELATIONSHIP_TYPE
    from docx.opc.package import OpcPackage
    from docx.oxml.parser import parse_xml

    main = OpcPackage.open(path).part_related_by(RELATIONSHIP_TYPE.OFFICE_DOCUMENT)
    parts = [(each.reltype.rpartition("/")[2], each) for each in main.rels.values() if not each.is_external]
    levels = {}
    for style in (one for name, each in parts if name == "styles" for one in parse_xml(each.target_part.blob)):
        named = _attribute(style, "name").lower().split()  # Word stores the names of built-in styles in English
        if named == ["title"] or (named[:1] == ["heading"] and named[-1].isdigit()):
            levels[style.get(f"{W}styleId")] = min(int(named[-1]), 6) if len(named) > 1 else 1
    number = 0
    for block in _blocks(parse_xml(main.blob)[0]):
        if block.tag == f"{W}tbl":
            rows = [(number + at, row) for at, row in enumerate(_cells(block), 1)]
            number += len(rows)
            yield from table(rows, "")
        elif text := _words(block, W).strip():
            number += 1
            level = levels.get(_attribute(block, f"pPr/{W}pStyle"), 0)
            item = "- " * (block.find(f"{W}pPr/{W}numPr") is not None and not level)
            yield from ((f"{'#' * level}{' ' * bool(level)}{item}{text}", "", number), ("", "", number))
    found = (f"{PARTS[name]}: {text}" for name, each in parts if name in PARTS for text in _texts(each, parse_xml))
    for at, text in enumerate(dict.fromkeys(found), number + 1):
        yield from ((text, "", at), ("", "", at))


def _texts(part: Any, parse: Any) -> Iterator[str]:
    """Yield the texts of a header, a footer, or a list of notes or comments."""
    yield from (text for each in parse(part.target_part.blob) if (text := _words(each, W).strip()))


def _attribute(element: Any, path: str) -> str:
    found = element.find(f"{W}{path}")
    return (found.get(f"{W}val") or "") if found is not None else ""


def _blocks(parent: Any) -> Iterator[Any]:
    """Yield paragraphs and tables, also those in content controls and in insertions under review."""
    for child in parent:
        if child.tag in (f"{W}p", f"{W}tbl"):
            yield child
        elif child.tag in (f"{W}sdt", f"{W}sdtContent", f"{W}ins", f"{W}customXml", f"{W}moveTo"):
            yield from _blocks(child)


def _cells(block: Any) -> Iterator[list[str]]:
    above: list[str] = []
    for row in block.iter(f"{W}tr"):
        if next(row.iterancestors(f"{W}tbl")) is not block:
            continue  # a row of a table inside a cell: its text belongs to that cell
        cells: list[str] = []
        for cell in (each for each in row.iter(f"{W}tc") if next(each.iterancestors(f"{W}tr")) is row):
            merge = cell.find(f"{W}tcPr/{W}vMerge")
            repeats = merge is not None and merge.get(f"{W}val") != "restart" and len(cells) < len(above)
            width = int(_attribute(cell, f"tcPr/{W}gridSpan") or 1)
            text = above[len(cells)] if repeats else _words(cell, W)
            cells += [text.strip(), *[""] * (min(width, MAX_COLUMNS) - 1)]
        above = cells
        yield cells[:MAX_COLUMNS]


def _words(element: Any, space: str) -> str:
    """Return the text in an element.

    Text that was deleted under review is left out, because it is in elements of other names.
    """
    found = []
    for each in element.iter(f"{space}t", f"{space}tab", f"{space}br", f"{space}p"):
        if each.tag == f"{space}t":
            found.append(each.text or "" if next(each.iterancestors(FALLBACK), None) is None else "")
        else:
            found.append("\n" * bool(found) if each.tag == f"{space}p" else " ")
    return "".join(found)


def slides(path: str) -> Iterator[Line]:
    """Yield the text of each slide: the title, the shapes from top to bottom, the diagrams and the notes."""
    import pptx
    from pptx.oxml import parse_xml

    for number, slide in enumerate(pptx.Presentation(path).slides, 1):
        unit = f"slide {number}" + " (hidden)" * (slide._element.get("show") == "0")
        title = slide.shapes.title
        if title is not None and title.text_frame.text.strip():
            yield from ((f"# {' '.join(title.text_frame.text.split())}", unit, 0), ("", unit, 0))
        for shape in sorted(slide.shapes, key=lambda each: (each.top or 0, each.left or 0)):
            if title is None or shape.shape_id != title.shape_id:
                yield from _shape(shape, unit)
        for rel in slide.part.rels.values():
            if rel.reltype.endswith("/diagramData"):
                yield from ((each.text, unit, 0) for each in parse_xml(rel.target_part.blob).iter(f"{A}t") if each.text)
        if slide.has_notes_slide and (notes := slide.notes_slide.notes_text_frame) is not None and notes.text.strip():
            yield from (("", unit, 0), (f"Notes: {notes.text}", unit, 0))
        yield "", unit, 0


def _shape(shape: Any, unit: str) -> Iterator[Line]:
    if hasattr(shape, "shapes"):
        for each in shape.shapes:
            yield from _shape(each, unit)
    elif getattr(shape, "has_table", False):
        rows = [[cell.text for cell in row.cells] for row in shape.table.rows]
        yield "", unit, 0
        yield from ((text, unit, 0) for text, _, _ in table(enumerate(rows, 1), unit))
    elif shape.has_text_frame and shape.text_frame.text.strip():
        yield from ((" ".join(each.text.split()), unit, 0) for each in shape.text_frame.paragraphs if each.text.strip())
        yield "", unit, 0
