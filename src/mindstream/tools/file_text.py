"""Text of HTML, PDF, Word, Excel and PowerPoint files.

A page that is nested a hundred thousand deep, or made to crash a parser in C, costs that process and no more.

imported.

Prints blocks of lines; a block is a paragraph, or some rows of a table below the names of its columns, in Markdown.
Each line has a unit ("sheet Prices", "slide 2") and the number of its paragraph or row.
"""

from __future__ import annotations

import json
import re
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

from pypdf import PdfReader
from pypdf.errors import DependencyError, FileNotDecryptedError, PyPdfError
from selectolax.lexbor import LexborHTMLParser

ASIDE = "script, style, noscript, template, svg, iframe, nav, aside, form, button, [hidden], [aria-hidden=true]"
"""What is on a page and not meant to be read."""
MAIN = "main, article, [role=main]"
INLINE = frozenset({
    "a", "abbr", "b", "bdi", "bdo", "cite", "code", "data", "dfn", "em", "font", "i", "kbd", "mark", "q", "s", "small",
    "span", "strong", "sub", "sup", "time", "u", "var", "wbr", "-text", "_comment",
})  # fmt: skip


def read_html(html: str) -> str:
    """Return the title and what is to be read, a paragraph a line."""
    tree = LexborHTMLParser(html)
    title = tree.css_first("title")
    heading = title.text()[:300] if title else ""
    for node in tree.css(ASIDE):
        node.decompose()
    root = max(tree.css(MAIN), key=lambda node: len(node.text()), default=tree.body)
    lines, line = [heading], list[str]()
    for node in root.traverse(include_text=True) if root else ():
        if node.tag not in INLINE:
            lines.append("".join(line))
            line = []
        if node.tag == "-text":
            line.append(node.text_content or "")
    lines.append("".join(line))
    tidy = (re.sub(r"\s+", " ", each).strip() for each in lines)
    return "\n".join(each for each in tidy if each)


if __name__ == "__main__":
    print(json.dumps({"text": read_html(json.load(sys.stdin))}))


PAGES, MAX_PDF_CHARACTERS = 1_000, 4_000_000


def read_pdf(path: str) -> list[str]:
    """Return the text of each page; of what is too long, the beginning."""
    pages, left = [], MAX_PDF_CHARACTERS
    reader = PdfReader(path)
    for page in reader.pages[:PAGES]:
        text = page.extract_text()[:left]
        left -= len(text)
        pages.append(text)
    return pages


if __name__ == "__main__":
    try:
        found = read_pdf(json.load(sys.stdin))
        print(json.dumps({"pages": found} if any(map(str.strip, found)) else {"error": "no text (a scan?)"}))
    except (FileNotDecryptedError, DependencyError):
        print(json.dumps({"error": "encrypted"}))
    except (PyPdfError, OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        print(json.dumps({"error": f"damaged ({type(error).__name__})"}))


MAX_OFFICE_CHARACTERS = 4_000_000
"""Maximum number of characters that are read of a file."""
UNPACKED = 300 << 20
"""Maximum size of what a file unpacks to, in bytes."""
CELL, COLUMNS, MERGED = 500, 100, 10_000
"""Maximum characters of a cell, columns of a sheet, and cells of a merged range that is filled."""
BLOCK = 800
"""Characters of rows after which the names of the columns are repeated."""
OLE, PASSWORD = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "EncryptedPackage".encode("utf-16-le")
SHEETS = (".xlsx", ".xlsm", ".xlsb", ".xltx", ".xls", ".ods")
W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
MORE = {"header": "Header", "footer": "Footer", "footnotes": "Footnote", "endnotes": "Endnote", "comments": "Comment"}
"""Parts of a Word document beside its body."""

Line = tuple[str, str, int]
"""Text, unit, number of the paragraph or row."""


def table(rows: Iterable[tuple[int, Sequence[str]]], unit: str) -> Iterator[Line]:
    """Yield a table in blocks, each below the names of the columns; before them, a row with one cell is a paragraph."""
    names, head, size = list[str](), 0, 0
    for number, row in rows:
        filled = [cell for cell in row if cell]
        if not filled:
            continue
        if not names and len(filled) == 1:
            yield filled[0], unit, number
            continue
        if not names and not any(_is_number(cell) for cell in filled):
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
    if head:  # there is nothing below the names
        yield _row(names), unit, head
    yield "", unit, 0


def _is_number(cell: str) -> bool:
    return cell.replace(".", "", 1).replace(",", "").lstrip("-").isdigit()


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(' '.join(each.split()).replace('|', chr(92) + '|')[:CELL] for each in cells)} |"


def _letters(at: int) -> str:
    return (_letters(at // 26 - 1) if at >= 26 else "") + chr(65 + at % 26)


# Sheets.


def sheets(path: str) -> Iterator[Line]:
    """Yield the rows of each sheet; formulas as the values that were last computed."""
    import python_calamine as calamine

    try:
        book = calamine.load_workbook(path)
    except calamine.PasswordError:
        raise ValueError("it is protected by a password") from None
    for each in book.sheets_metadata:
        if each.typ != calamine.SheetTypeEnum.WorkSheet:
            continue
        is_hidden = each.visible != calamine.SheetVisibleEnum.Visible
        sheet = book.get_sheet_by_name(each.name)
        rows = ((number, [_value(cell) for cell in row[:COLUMNS]]) for number, row in _filled(sheet))
        yield from table(rows, f"{'hidden ' * is_hidden}sheet {each.name}")


def _filled(sheet: Any) -> Iterator[tuple[int, list[Any]]]:
    """Yield the rows with their numbers; what is merged over several rows stands in each of them."""
    below: dict[int, tuple[int, Any]] = {}
    merged = {
        (top, left): bottom
        for (top, left), (bottom, right) in sheet.merged_cell_ranges or ()
        if top < bottom and (bottom - top + 1) * (right - left + 1) <= MERGED
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
        yield at + 1, cells


def _value(cell: object) -> str:
    if isinstance(cell, bool):
        return str(cell).upper()
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 1e15 else repr(cell)
    if isinstance(cell, datetime):
        return cell.date().isoformat() if cell.time() == time() else cell.isoformat(" ", "minutes")
    return cell.isoformat() if isinstance(cell, date | time) else str(cell)


# Word.


def word(path: str) -> Iterator[Line]:
    """Yield the paragraphs and tables of a document, and what stands in its notes, comments, headers and footers."""
    from docx.opc.constants import RELATIONSHIP_TYPE
    from docx.opc.package import OpcPackage
    from docx.oxml.parser import parse_xml

    main = OpcPackage.open(path).part_related_by(RELATIONSHIP_TYPE.OFFICE_DOCUMENT)
    parts = {each.reltype.rpartition("/")[2]: each for each in main.rels.values() if not each.is_external}
    levels = _levels(parse_xml(parts["styles"].target_part.blob)) if "styles" in parts else {}
    number = 0
    for block in _blocks(parse_xml(main.blob)[0]):
        if block.tag == f"{W}tbl":
            rows = [(number + at, row) for at, row in enumerate(_cells(block), 1)]
            number += len(rows)
            yield from table(rows, "")
        elif text := _words(block, W).strip():
            number += 1
            style = block.find(f"{W}pPr/{W}pStyle")
            level = levels.get(style.get(f"{W}val"), 0) if style is not None else 0
            is_item = block.find(f"{W}pPr/{W}numPr") is not None and not level
            yield from ((f"{'#' * level}{' ' * bool(level)}{'- ' * is_item}{text}", "", number), ("", "", number))
    seen = set()
    for each in main.rels.values():
        name = MORE.get(each.reltype.rpartition("/")[2])
        for one in parse_xml(each.target_part.blob) if name and not each.is_external else ():
            text = _words(one, W).strip()
            if text and (name, text) not in seen:
                seen.add((name, text))
                number += 1
                yield from ((f"{name}: {text}", "", number), ("", "", number))


def _levels(styles: Any) -> dict[str, int]:
    """Return which styles are headings, and of which level; their names are English in every language."""
    found = {}
    for style in styles.iter(f"{W}style"):
        name = style.find(f"{W}name")
        words = (name.get(f"{W}val") if name is not None else "").lower().split()
        if words[:1] == ["heading"] and words[-1].isdigit():
            found[style.get(f"{W}styleId")] = min(int(words[-1]), 6)
        elif words == ["title"]:
            found[style.get(f"{W}styleId")] = 1
    return found


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
        cells: list[str] = []
        if next(each for each in row.iterancestors() if each.tag == f"{W}tbl") is not block:
            continue  # of a table in a cell, whose words that cell has
        for cell in row.iter(f"{W}tc"):
            if next(each for each in cell.iterancestors() if each.tag == f"{W}tr") is not row:
                continue
            span, merge = cell.find(f"{W}tcPr/{W}gridSpan"), cell.find(f"{W}tcPr/{W}vMerge")
            goes_on = merge is not None and merge.get(f"{W}val") != "restart"
            text = above[len(cells)] if goes_on and len(cells) < len(above) else _words(cell, W)
            width = int(span.get(f"{W}val") or 1) if span is not None else 1
            cells += [text.strip(), *[""] * (min(width, COLUMNS) - 1)]
        above = cells
        yield cells[:COLUMNS]


def _words(element: Any, space: str) -> str:
    """Return the words in an element; what was deleted under review is in other elements."""
    found = []
    for each in element.iter(f"{space}t", f"{space}tab", f"{space}br", f"{space}p"):
        if each.tag == f"{space}t":
            if not any(above.tag == FALLBACK for above in each.iterancestors()):
                found.append(each.text or "")
        elif each.tag == f"{space}p":
            found.append("\n" if found else "")
        else:
            found.append(" ")
    return "".join(found)


# Slides.


def slides(path: str) -> Iterator[Line]:
    """Yield what stands on each slide, from the top, and its notes."""
    import pptx

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
                from pptx.oxml import parse_xml

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


# All.


def read_office(path: str) -> dict[str, Any]:
    """Return the lines of a document, with their units and numbers.

    Raises:
        ValueError: it cannot be read; why.
    """
    ending = Path(path).suffix.lower()
    with Path(path).open("rb") as file:
        start = file.read(8)
        if start == OLE and ending != ".xls":
            is_locked = PASSWORD in file.read(1 << 20)
            raise ValueError("it is protected by a password" if is_locked else f"it is an old format, not {ending}")
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            if (size := sum(each.file_size for each in archive.infolist())) > UNPACKED:
                raise ValueError(f"it unpacks to {size >> 20:,} MB, and at most {UNPACKED >> 20} MB are read")
    reader: Callable[[str], Iterator[Line]] = sheets if ending in SHEETS else slides if "pp" in ending else word
    lines, size, note = list[Line](), 0, ""
    for text, unit, number in reader(path):
        for line in text.splitlines() or [""]:
            lines.append((line, unit, number))
        size += len(text) + 1
        if size > MAX_OFFICE_CHARACTERS:
            note = f"only its first {MAX_OFFICE_CHARACTERS:,} characters are read"
            break
    if not any(text.strip() for text, _, _ in lines):
        raise ValueError("there is no text in it")
    return {"lines": lines, "noun": "row" if ending in SHEETS else "" if "pp" in ending else "paragraph", "note": note}


if __name__ == "__main__":
    try:
        print(json.dumps(read_office(json.load(sys.stdin))))
    except ImportError as error:
        print(json.dumps({"error": f"{error.name} is missing: pip install 'mindstream[office]'"}))
    except MemoryError:
        print(json.dumps({"error": "it takes more memory than a document may"}))
    except ValueError as error:
        print(json.dumps({"error": str(error)[:300]}))
    except Exception as error:  # noqa: BLE001 (a process of its own)
        print(json.dumps({"error": f"damaged ({type(error).__name__})"}))
