"""`mindstream pool verdict`, `lessons` and `lesson`: from a correction to a lesson, its sources and its amendments."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from fake_endpoint import FakeEndpoint, Says
from running import mistaken, run

NET = "Revenue is without VAT."


@pytest.fixture
def where(folder: Path, door: FakeEndpoint) -> tuple[str | Path, ...]:
    """A pool of olga's with the members ann and ben, and a run of ann's with a wrong answer."""
    where = ("--data", folder, "--user")
    run("pool", "create", "shop", "--add", "ann", "--add", "ben", *where, "olga")
    door.will(Says("123"))
    assert (
        run("solve", "What was our revenue?", "--how", "direct", "--model", f"{door.url}#any", *where, "ann").code == 0
    )
    return where


def lesson(text: str) -> Says:
    return Says(json.dumps({"edits": [{"action": "add", "text": text, "basis": "person"}]}))


def test_a_correction_becomes_a_lesson_with_its_sources(where: tuple[str | Path, ...], door: FakeEndpoint) -> None:
    door.will(lesson(NET))
    verdict = ("pool", "verdict", "shop", "--model", f"{door.url}#any")
    told = run(*verdict, "--wrong", "No. Revenue is without VAT here.", *where, "ann")
    assert (
        "1 lesson written" in told.out and "No. Revenue is without VAT here." in told.out and "private" not in told.out
    )
    (row,) = run("pool", "lessons", "shop", "--json", *where, "ben").rows
    assert (row["text"], row["state"], row["confirmed_by"], row["writer"]) == (NET, "confirmed", 1, "ann")
    assert row["sources"] == ["What was our revenue?", "No. Revenue is without VAT here."] and row["version"] > 0
    assert "--right, or --wrong" in mistaken(run(*verdict, *where, "ann"))
    door.will(Says('{"edits": []}'))
    assert "kept as an exemplar" in run(*verdict, "--right", *where, "ann").out


def test_a_guests_lesson_is_said_to_be_private_until_it_is_shared(
    where: tuple[str | Path, ...], door: FakeEndpoint
) -> None:
    run("pool", "members", "shop", "--add", "*", *where, "olga")
    door.will(Says("123"), lesson(NET))
    run("solve", "And in May?", "--how", "direct", "--model", f"{door.url}#any", *where, "eve")
    told = run("pool", "verdict", "shop", "--wrong", "Net!", "--model", f"{door.url}#any", *where, "eve")
    (shared,) = re.findall(
        r"private until a named member shares it: mindstream (pool lessons shop --share .+)", told.out
    )
    assert run("pool", "lessons", "shop", "--json", *where, "ben").rows == []
    (row,) = run("pool", "lessons", "shop", "--json", *where, "eve").rows
    assert "only a member who is listed by name" in mistaken(
        run("pool", "lessons", "shop", "--share", row["id"], *where, "eve")
    )
    assert shlex.split(shared)[-4:] == ["--data", str(where[1]), "--user", "eve"]
    assert NET in run(*shlex.split(shared)[:-1], "olga").out
    assert NET in run("pool", "lessons", "shop", *where, "ben").out


def test_a_lesson_is_written_amended_and_retired_by_hand(where: tuple[str | Path, ...]) -> None:
    assert "has 1 lesson" in run("pool", "lesson", "shop", NET, "--when", "money is asked for", *where, "ann").out
    (row,) = run("pool", "lessons", "shop", "--json", *where, "ann").rows
    run("pool", "lesson", "shop", "Revenue is with VAT.", "--amend", row["id"][:6], *where, "ann")
    (amended,) = run("pool", "lessons", "shop", "--json", *where, "ben").rows
    assert (amended["id"], amended["text"]) == (row["id"], "Revenue is with VAT.") and amended["version"] > row[
        "version"
    ]
    assert "no lesson" in mistaken(run("pool", "lesson", "shop", NET, "--amend", row["id"], *where, "ben"))
    run("pool", "lessons", "shop", "--retire", row["id"], "--because", "the law changed", *where, "ann")
    assert run("pool", "lessons", "shop", *where, "ben").out == "all lessons are retired; --all lists them\n"
    assert "retired: the law changed" in run("pool", "lessons", "shop", "--all", *where, "ben").out


def test_without_a_model_a_verdict_is_stored_and_says_how_to_write_the_lesson(folder: Path, tmp_path: Path) -> None:
    where = ("--data", folder, "--user", "olga")
    docs = tmp_path / "reports"
    docs.mkdir()
    (docs / "a.txt").write_text("Revenue in 2024: 12 million.")
    run("pool", "create", "shop", *where)
    run("solve", "Revenue in 2024?", "--docs", docs, *where)
    told = run("pool", "verdict", "shop", "--wrong", NET, *where)
    assert "the verdict is stored; no lesson was changed" in told.out
    assert "no model answered" in told.err and "mindstream pool lesson shop WORDS --data" in told.err
    told = run("pool", "verdict", "shop", "--right", *where)
    assert "had no model and only quoted" in told.err and "exemplar" not in told.out
    listed = run("pool", "lessons", "shop", *where).out
    assert listed.index("pool lesson shop WORDS") < listed.index("pool verdict shop --wrong WORDS --model NAME")


def test_a_recall_without_an_exemplar_lists_the_lessons_that_fit(folder: Path) -> None:
    where = ("--data", folder, "--user", "olga")
    run("pool", "create", "shop", *where)
    told = run("pool", "recall", "shop", "revenue", *where)
    assert (told.code, told.out.strip()) == (0, "") and "no exemplar that you may read, and no lesson" in told.err
    run("pool", "lesson", "shop", NET, *where)
    told = run("pool", "recall", "shop", "revenue", *where)
    assert NET in told.out and "written by hand by olga" in told.out and "confirmed by" not in told.out
    for number in range(8):
        run("pool", "lesson", "shop", f"Rule {number}: {'the cat sleeps on the mat, ' * 18}", *where)
    told = run("pool", "recall", "shop", "What is our revenue?", *where)
    assert NET in told.out and told.out.count("Rule ") < 8
    assert run("pool", "recall", "shop", "revenue", "-k", "0", *where).out.startswith("Question: revenue")


def test_only_the_confirmation_of_the_author_or_owner_is_not_counted_as_a_task(
    where: tuple[str | Path, ...], door: FakeEndpoint
) -> None:
    run("pool", "members", "shop", "--add", "*", *where, "olga")
    run("pool", "lesson", "shop", NET, *where, "eve")  # only assumed, because eve is not listed by name
    door.will(Says("123"), Says(json.dumps({"edits": [{"action": "confirm", "lessons": [1]}]})))
    run("solve", "And in May?", "--how", "direct", "--model", f"{door.url}#any", *where, "eve")
    run("pool", "verdict", "shop", "--right", "--model", f"{door.url}#any", *where, "eve")
    (row,) = run("pool", "lessons", "shop", "--json", *where, "eve").rows
    assert (row["state"], row["confirmed_by"], row["vouched"]) == ("confirmed", 1, False)
    assert "written by hand by eve, confirmed by 1," in run("pool", "lessons", "shop", *where, "eve").out
    run("pool", "lessons", "shop", "--share", row["id"], *where, "olga")
    (row,) = run("pool", "lessons", "shop", "--json", *where, "ben").rows
    assert (row["confirmed_by"], row["vouched"]) == (2, True)
    assert "written by hand by eve, confirmed by 1," in run("pool", "lessons", "shop", *where, "ben").out
