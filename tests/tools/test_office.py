"""Office documents, encodings and broken files in a folder that is searched."""

from __future__ import annotations

import asyncio
import json
import zipfile
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from mindstream.models.model import Call
from mindstream.tools.documents import Documents, Folder, open_documents, passages

docx, pptx, xlsxwriter = (pytest.importorskip(each) for each in ("docx", "pptx", "xlsxwriter"))


@pytest.fixture
async def documents(tmp_path: Path) -> AsyncIterator[Documents]:
    (tmp_path / "files").mkdir()
    async with open_documents(tmp_path / "files", tmp_path / "data") as opened:
        yield opened


async def call(documents: Documents, tool_name: str, /, **arguments: Any) -> str:
    tool = next(each for each in documents.tools() if each.spec.name == tool_name)
    return await tool(Call(tool_name, json.dumps(arguments)))


async def places(folder: Path, name: str) -> dict[str, str]:
    """Return the passages of a file by their places."""
    _, document = await Folder(folder).read(name)
    return {each.place: each.headed for each in passages(document)}


def write_letter(path: Path) -> None:
    made = docx.Document()
    made.add_heading("Boathouse", 1)
    made.add_paragraph("The oars hang behind the door.")
    made.add_heading("Keys", 2)
    table = made.add_table(3, 2)
    for at, row in enumerate((("Key", "Opens"), ("brass", "the boathouse"), ("", "the shed"))):
        for column, text in enumerate(row):
            table.cell(at, column).text = text
    table.cell(1, 0).merge(table.cell(2, 0))
    paragraph = made.add_paragraph()
    control = docx.oxml.parse_xml(
        f'<w:ins {docx.oxml.ns.nsdecls("w")} w:id="1" w:author="a"><w:r><w:t>The jetty was painted green.</w:t></w:r>'
        "</w:ins>"
    )
    paragraph._p.append(control)
    made.sections[0].footer.paragraphs[0].text = "Rowing Club, Pier 7"
    made.save(path)


def write_sheets(path: Path) -> None:
    with xlsxwriter.Workbook(path) as book:
        sheet, day = book.add_worksheet("Fares"), book.add_format({"num_format": "dd.mm.yyyy"})
        sheet.write_row(0, 0, ["Fares of the ferry"])
        sheet.write_row(1, 0, ["Harbour", "Price", "From", "Open"])
        sheet.merge_range("A3:A4", "Kiel")
        for row in (2, 3):
            sheet.write_formula(row, 1, "=1+1", None, 12.5 * row)
            sheet.write_datetime(row, 2, datetime(2026, 5, row), day)
            sheet.write_boolean(row, 3, True)
        for row in range(4, 200):
            sheet.write_row(row, 0, [f"harbour {row}", row])
        book.add_worksheet("Empty")
        hidden = book.add_worksheet("Codes")
        hidden.hide()
        hidden.write(0, 0, "The safe opens with 4711.")


def write_slides(path: Path) -> None:
    made = pptx.Presentation()
    first = made.slides.add_slide(made.slide_layouts[1])
    first.shapes.title.text, first.placeholders[1].text = "Plan of the regatta", "Boats start at nine\nPrizes at five"
    first.notes_slide.notes_text_frame.text = "Thank the sponsor, Olsen."
    second = made.slides.add_slide(made.slide_layouts[6])
    table = second.shapes.add_table(2, 2, 0, 0, 9, 9).table
    for at, text in enumerate(("Crew", "Boat", "Berg", "Ondine")):
        table.cell(at // 2, at % 2).text = text
    made.save(path)


async def test_word_documents_give_headings_tables_and_reviewed_text(tmp_path: Path) -> None:
    write_letter(tmp_path / "letter.docx")
    found = "\n".join([f"{place}: {text}" for place, text in (await places(tmp_path, "letter.docx")).items()])
    assert "paragraphs 1-" in found and "# Boathouse\n\nThe oars hang behind the door." in found
    assert "| Key | Opens |\n| --- | --- |\n| brass | the boathouse |\n| brass | the shed |" in found
    assert "The jetty was painted green." in found and "Footer: Rowing Club, Pier 7" in found


async def test_sheets_give_rows_with_column_names(documents: Documents) -> None:
    write_sheets(documents.folder.root / "fares.xlsx")
    found = await places(documents.folder.root, "fares.xlsx")
    first, *_, last = [place for place in found if place.startswith("sheet Fares")]
    assert first.startswith("sheet Fares, rows 1-") and "Fares of the ferry\n\n| Harbour" in found[first]
    assert "| Kiel | 25 | 2026-05-02 | TRUE |\n| Kiel | 37.5 | 2026-05-03 | TRUE |" in found[first]
    assert last.endswith("-200") and all("| Harbour | Price | From | Open |" in found[each] for each in (first, last))
    assert "4711" in found["hidden sheet Codes, row 1"]
    answer = await call(documents, "search_documents", query="what does harbour 150 cost?")
    assert (
        "| harbour 150 | 150 |" in answer
        and "fares.xlsx, sheet Fares, rows" in answer
        and "| Harbour | Price" in answer
    )


async def test_slides_give_titles_notes_and_tables(tmp_path: Path) -> None:
    write_slides(tmp_path / "regatta.pptx")
    found = await places(tmp_path, "regatta.pptx")
    assert list(found) == ["slide 1", "slide 2"]
    assert found["slide 1"].startswith("# Plan of the regatta\n\nBoats start at nine\nPrizes at five")
    assert "Notes: Thank the sponsor, Olsen." in found["slide 1"]
    assert "| Crew | Boat |\n| --- | --- |\n| Berg | Ondine |" in found["slide 2"]


def zip_bomb(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for n in range(7):
            archive.writestr(f"word/{n}.xml", b" " * (50 << 20))


async def test_unreadable_files_are_named_with_their_format(documents: Documents) -> None:
    root = documents.folder.root
    ole = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600
    locked = ole + "EncryptedPackage".encode("utf-16-le")
    files = {"old.doc": ole, "talk.ppt": ole, "notes.odt": b"PK", "memo.rtf": b"{\\rtf1 x}", "renamed.docx": ole,
             "locked.docx": locked, "locked.xlsx": locked, "torn.docx": b"PK\x03\x04torn", "torn.xlsx": b"no",
             "torn.pptx": b"no", "empty.docx": b""}  # fmt: skip
    for name, content in files.items():
        (root / name).write_bytes(content)
    zip_bomb(root / "bomb.docx")
    (root / "boat.txt").write_bytes("Die Fähre heißt Übermut, gebaut für Jürgen in Kühlungsborn.".encode("cp1252"))
    listed = await call(documents, "list_documents")
    for told in (
        "old.doc is a Word 97-2003 document, which cannot be read: save it as .docx", "save it as .pptx",
        "notes.odt is an OpenDocument text", "memo.rtf is a Rich Text file",
        "renamed.docx: the file has an older format",
        "locked.docx: the file is protected by a password", "locked.xlsx: the file is protected by a password",
        "torn.docx: damaged", "torn.xlsx: ", "torn.pptx: damaged", "empty.docx: damaged",
        "bomb.docx: the file unpacks to 350 MB", "boat.txt (read as windows-1252",
    ):  # fmt: skip
        assert told in listed, listed
    assert "Die Fähre heißt Übermut" in await call(documents, "search_documents", query="Wie heißt die Fähre?")


async def test_a_file_that_timed_out_is_skipped_until_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "files"
    root.mkdir()
    (root / "a.html").write_text("slow " * 50)
    (root / "z.txt").write_text("The ferry Ondine was built in 1931.")
    (root / "m.html").write_text("<p>Marta Berg built the jetty.</p>")
    script = tmp_path / "slow.py"
    script.write_text(
        "import pathlib\n"
        "def read_html(text):\n"
        f"    with pathlib.Path({str(tmp_path / 'runs')!r}).open('a') as runs: runs.write('x')\n"
        "    while 'slow' in text: pass\n"
        "    return text\n"
    )
    monkeypatch.setattr("mindstream.tools.documents.PARSER", script)
    monkeypatch.setattr("mindstream.tools.documents.PARSER_SECONDS", 1)
    for _ in range(3):
        async with open_documents(root, tmp_path / "data") as documents:
            found = await call(documents, "search_documents", query="when was the ferry built?")
            assert "1931" in found and "(not searched: a.html: the work takes " in found
            assert "Marta" in await call(documents, "search_documents", query="who built the jetty?")
    runs = len((tmp_path / "runs").read_text())
    assert runs <= 4, "the slow file once, the other one once per process"
    (root / "a.html").write_text("It sank in 1950.")
    async with open_documents(root, tmp_path / "data") as documents:
        assert "1950" in await call(documents, "search_documents", query="when did it sink?")


async def test_a_search_waits_at_most_its_time_limit(documents: Documents, monkeypatch: pytest.MonkeyPatch) -> None:
    root = documents.folder.root
    (root / "z.txt").write_text("The ferry Ondine was built in 1931.")
    (root / "a.html").write_text("<p>one</p>")
    never = asyncio.Event()
    monkeypatch.setattr("mindstream.tools.documents.READ_S", 0.5)
    monkeypatch.setattr("mindstream.tools.documents.run_child", lambda *_, **__: never.wait())
    found = await call(documents, "search_documents", query="when was the ferry built?")
    assert "1931" in found and "a.html: reading this file takes longer than 0.5 seconds" in found
