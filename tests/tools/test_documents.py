"""Documents: passages are found with their place and updated with the files; nothing outside the folder is read."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pypdf import PdfWriter

from mindstream.errors import ToolError
from mindstream.models.model import Call
from mindstream.tools.documents import Documents, Passage, extract, open_documents, passages

GARDEN = "# Garden\n\nTomatoes want sun.\n\n# Shed\n\nThe blue key opens the shed.\n"


def pdf(*texts: str) -> bytes:
    """Return a small PDF with a page for each text."""
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(texts)))
    objects = [
        "<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Kids[{kids}]/Count {len(texts)}>>",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    for n, text in enumerate(texts):
        stream = f"BT /F1 12 Tf 72 700 Td ({text}) Tj ET"
        objects += [
            f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents {5 + 2 * n} 0 R"
            "/Resources<</Font<</F1 3 0 R>>>>>>",
            f"<</Length {len(stream)}>>\nstream\n{stream}\nendstream",
        ]
    body, places = "%PDF-1.4\n", []
    for n, each in enumerate(objects, 1):
        places.append(len(body))
        body += f"{n} 0 obj\n{each}\nendobj\n"
    rows = "".join(f"{place:010} 00000 n \n" for place in places)
    size = len(objects) + 1
    trailer = f"trailer\n<</Size {size}/Root 1 0 R>>\nstartxref\n{len(body)}\n%%EOF"
    return f"{body}xref\n0 {size}\n0000000000 65535 f \n{rows}{trailer}".encode()


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    (folder / "notes").mkdir(parents=True)
    (folder / "notes" / "garden.md").write_text(GARDEN)
    (folder / "boat.txt").write_text("The boat is called Marie.\nIt lies in Kiel.\n")
    return folder


@pytest.fixture
async def documents(files: Path, tmp_path: Path) -> AsyncIterator[Documents]:
    async with open_documents(files, tmp_path / "kept") as documents:
        yield documents


async def call(documents: Documents, tool_name: str, /, **arguments: Any) -> str:
    tool = next(each for each in documents.tools() if each.spec.name == tool_name)
    return await tool(Call(tool_name, json.dumps(arguments)))


async def test_a_passage_is_found_with_its_file_and_place(documents: Documents) -> None:
    found = await call(documents, "search_documents", query="which key opens the shed?")
    assert found.endswith("notes/garden.md, lines 1-7 (Shed):\nThe blue key opens the shed.")
    assert await call(documents, "list_documents") == "boat.txt\nnotes/garden.md"


async def test_only_changed_files_are_read_again(documents: Documents, files: Path) -> None:
    await documents.refresh()
    before = {record.data["file"]: record.id for record in await documents.memory.latest("document", 10)}
    (files / "boat.txt").write_text("The boat is called Ondine now.\n")
    (files / "new.txt").write_text("Bread is in the pantry.")
    found = await call(documents, "search_documents", query="what is the boat called?")
    assert "Ondine" in found and "Marie" not in found
    assert "pantry" in await call(documents, "search_documents", query="where is the bread?")
    after = {record.data["file"]: record.id for record in await documents.memory.latest("document", 10)}
    assert after["notes/garden.md"] == before["notes/garden.md"] and after["boat.txt"] != before["boat.txt"]
    (files / "boat.txt").unlink()
    assert "Ondine" not in await call(documents, "search_documents", query="what is the boat called?")


async def test_unchanged_files_are_not_read_again_after_reopening(files: Path, tmp_path: Path) -> None:
    ids = []
    for _ in range(2):
        async with open_documents(files, tmp_path / "kept") as documents:
            os.utime(files / "boat.txt")
            await documents.refresh()
            ids.append([record.id for record in await documents.memory.latest("document", 10)])
    assert ids[0] == ids[1] and len(ids[0]) == 2


async def test_reading_a_large_document_does_not_block_the_loop(documents: Documents, files: Path) -> None:
    (files / "many.md").write_text("a\n" * 990_000, "utf-8")
    clock = asyncio.get_running_loop().time
    start, came = clock(), [clock()]

    async def tick() -> None:
        while True:
            await asyncio.sleep(0.01)
            came.append(clock())

    ticking = asyncio.ensure_future(tick())
    _, document = await documents.folder.read("many.md")
    await asyncio.to_thread(passages, document)
    taken = clock() - start
    await documents.refresh()
    ticking.cancel()
    assert max(after - before for before, after in pairwise(came)) < taken / 2, (
        "reading blocks the loop for less than half of its time"
    )


async def test_a_pdf_is_read_page_by_page(documents: Documents, files: Path) -> None:
    (files / "house.pdf").write_bytes(pdf("The roof is red.", "The cellar is damp in autumn."))
    found = await call(documents, "search_documents", query="is the cellar damp?")
    assert found.startswith("house.pdf, page 2:\nThe cellar is damp in autumn.")
    (files / "broken.pdf").write_bytes(b"%PDF-1.4\nnothing")
    assert "broken.pdf, page" not in await call(documents, "search_documents", query="nothing")
    assert "broken.pdf: damaged" in await call(documents, "list_documents")


PAGE = """<!doctype html><html><head><title>Harbour Bakery</title><style>p { color: red }</style></head><body>
<nav><a href="/">Home</a> <a href="/jobs">Jobs</a></nav>
<main><h1>Opening hours</h1><p>We open at <b>six</b> on Tuesdays &amp; Fridays.</p>
<table><tr><td>Rye loaf</td><td>4.20 euros</td></tr></table></main>
<script>track("visitor")</script></body></html>"""


@pytest.mark.parametrize(
    ("asked", "said"),
    [("when does the bakery open?", "We open at six on Tuesdays & Fridays."), ("price of a rye loaf", "4.20 euros")],
)
async def test_a_search_in_an_html_page_finds_its_text_without_tags(
    documents: Documents, files: Path, asked: str, said: str
) -> None:
    (files / "bakery.html").write_text(PAGE)
    found = await call(documents, "search_documents", query=asked)
    assert found.startswith("bakery.html") and said in found
    assert not [each for each in ("<", "color", "track", "Jobs") if each in found]


async def test_unreadable_files_are_named_beside_the_results(documents: Documents, files: Path) -> None:
    (files / "image.png").write_bytes(b"\x89PNG\0\0\0")
    (files / "scan.pdf").write_bytes(pdf(""))
    found = await call(documents, "search_documents", query="what is the boat called?")
    assert found.startswith("boat.txt, lines 1-2:\nThe boat is called Marie.")
    assert found.endswith(
        "(not searched: image.png is not text, or is in an unknown encoding; save it as UTF-8;"
        " scan.pdf: no text (a scan?))"
    )


async def test_an_encrypted_pdf_is_reported_as_encrypted(documents: Documents, files: Path) -> None:
    writer = PdfWriter()
    writer.add_blank_page(100, 100)
    writer.encrypt("secret", algorithm="RC4-128")
    writer.write(files / "locked.pdf")
    assert "locked.pdf: encrypted" in await call(documents, "list_documents")


async def test_a_long_document_is_read_in_parts(documents: Documents, files: Path) -> None:
    (files / "long.txt").write_text("\n".join(f"line number {n}" for n in range(1, 2_001)))
    first = await call(documents, "read_document", name="long.txt")
    start = int(first.rpartition("from line ")[2].rstrip(")"))
    assert first.startswith("line number 1\n") and start > 100
    second = await call(documents, "read_document", name="long.txt", from_line=start)
    assert second.startswith(f"line number {start}\n")
    with pytest.raises(ToolError, match="has only 2,000 lines"):
        await call(documents, "read_document", name="long.txt", from_line=2_001)


OUTSIDE = ["../secret.txt", "/etc/passwd", "notes/../../secret.txt", "link.txt", "linked/secret.txt", ".", "a\0b"]


@pytest.mark.parametrize("name", OUTSIDE)
async def test_nothing_outside_the_folder_is_read(name: str, documents: Documents, files: Path) -> None:
    (files.parent / "secret.txt").write_text("The secret is 4711.")
    (files / "link.txt").symlink_to(files.parent / "secret.txt")
    (files / "linked").symlink_to(files.parent)
    (files / "loop").symlink_to("loop")
    with pytest.raises(ToolError, match=r"no document|no name"):
        await call(documents, "read_document", name=name)
    assert "4711" not in await call(documents, "search_documents", query="what is the secret?")


async def test_unreadable_files_are_listed_with_the_reason(documents: Documents, files: Path) -> None:
    (files / "huge.txt").write_bytes(b"x " * 1_500_000)
    (files / "image.png").write_bytes(b"\x89PNG\0\0\0")
    (files / "odd.txt").write_bytes(b"caf\xe9 \x07 \xff\n" + b"y" * 9_000)
    (files / "empty.txt").write_text("")
    os.mkfifo(files / "pipe")
    listed = (await call(documents, "list_documents")).splitlines()
    assert "huge.txt is too large: at most 2,000,000 bytes are read" in listed
    assert "image.png is not text, or is in an unknown encoding; save it as UTF-8" in listed
    assert {"empty.txt", "boat.txt"} <= set(listed), listed
    assert any(each.startswith("odd.txt (read as ") for each in listed), listed
    assert "caf" in await call(documents, "search_documents", query="caf")


async def test_a_row_is_returned_with_its_headings_and_columns() -> None:
    text = """## Fares
Prices from May.

| Route | Adult | Child |
|-------|------:|------:|
| North quay | 12 | 6 |
| South quay | 14 | 7 |
### Winter
No boats run in winter at all."""
    portions = [Passage(text, "boat.md, lines 3-12", "Ferry")]
    assert await extract(portions, "South quay adult", 1) == (
        "boat.md, lines 3-12 (Ferry › Fares):\n| Route | Adult | Child |\n"
        "| North quay | 12 | 6 |\n| South quay | 14 | 7 |"
    )
    found = await extract(portions, "what about winter?", 1)
    assert found == "boat.md, lines 3-12 (Ferry › Fares › Winter):\nNo boats run in winter at all."


async def test_omitted_lines_are_marked() -> None:
    text = (
        "| What | Price |\n|---|---|\n| blue apples | 12 |\n"
        + "| pears, of which there are many in autumn | 3 |\n" * 12
        + "| blue plums | 7 |"
    )
    found = await extract([Passage(text, "a.md")], "blue", 2)
    assert found == "a.md:\n(2 of 14 rows are shown)\n| What | Price |\n| blue apples | 12 |\n…\n| blue plums | 7 |"


@pytest.mark.parametrize("shape", ["| kind {n} | {words} |", "- kind {n}: {words}"])
async def test_a_table_or_list_that_is_cut_at_its_beginning_or_end_says_so(shape: str) -> None:
    """A reader must not take the first or last row that is shown for the first or last one of the table."""
    rows = [shape.format(n=n, words="plain words about other things" if n != 5 else "the blue one") for n in range(12)]
    head = ["| Kind | Which |", "|---|---|"] if shape.startswith("|") else []
    found = await extract([Passage("\n".join([*head, *rows]), "a.md")], "blue one", 2)
    shown = [line for line in found.splitlines() if "kind" in line]
    assert f"({len(shown)} of 12 {'rows' if head else 'items'} are shown)" in found and len(shown) < 12
    whole = await extract([Passage("\n".join([*head, *rows[:3]]), "a.md")], "blue one", 2)
    assert "are shown" not in whole
