"""`mindstream memory policy`: shows each setting with its source, and sets it for one memory."""

from __future__ import annotations

from pathlib import Path

from earlier_file import undo_migrations
from fake_endpoint import FakeEndpoint, Says
from running import mistaken, run


def value(folder: Path, name: str, **environment: str) -> tuple[object, object]:
    rows = run("memory", "policy", "--json", "--data", folder, **environment).rows
    return next((row["value"], row["from"]) for row in rows if row["name"] == name)


def test_settings_are_shown_with_their_source(folder: Path) -> None:
    assert run("memory", "retain", "Ann likes tea", "--data", folder).code == 0
    assert value(folder, "base") == (2.0, "default")
    done = run("memory", "policy", "base=3", "reranked=7", "--data", folder)
    assert "lasting at level 3" in done.out and value(folder, "reranked") == (7, "this memory")
    assert value(folder, "base", MINDSTREAM_MEMORY='{"base": 4}') == (4.0, "MINDSTREAM_MEMORY, over its own 3")
    assert run("memory", "policy", "--reset", "--data", folder).code == 0
    assert value(folder, "base") == (2.0, "default")


def test_an_invalid_setting_is_refused_and_changes_nothing(folder: Path) -> None:
    assert run("memory", "retain", "Ann likes tea", "--data", folder).code == 0
    for words in (["base=1"], ["cap_s=60"], ["warmth=3"], ["base"], ["reranker=best"]):
        mistaken(run("memory", "policy", *words, "--data", folder))
    assert value(folder, "base") == (2.0, "default")


def test_recall_can_be_reranked_by_a_named_model(door: FakeEndpoint, folder: Path) -> None:
    for fact in ("Ann bakes bread.", "The bread lies there."):
        assert run("memory", "retain", fact, "--data", folder).code == 0
    door.otherwise = Says('{"best": [2, 1]}')
    flags = ["--reranker", "model", "--model", f"{door.url}#m", "--data", str(folder)]
    rows = run("memory", "recall", "bread", *flags, "--json").rows
    assert [row["parts"]["first_stage"] for row in rows] == [2, 1] and len(door.chats) == 1
    mistaken(run("memory", "recall", "bread", "--reranker", "model", "--data", folder))


def test_the_retention_policy_can_be_shown_and_set(folder: Path) -> None:
    assert run("memory", "retain", "Otto has a greenhouse.", "--data", folder).code == 0
    assert value(folder, "retention") == ("keep", "default")
    assert "keeps everything" in run("memory", "sleep", "--data", folder).err
    assert run("memory", "policy", "retention=decay", "--data", folder).code == 0
    assert value(folder, "retention") == ("decay", "this memory")
    assert value(folder, "retention", MINDSTREAM_MEMORY='{"retention": "keep"}') == (
        "keep",
        "MINDSTREAM_MEMORY, over its own decay",
    )
    assert run("memory", "policy", "retention=forever", "--data", folder).code == 2
    undo_migrations(folder / "mindstream.db", 9)
    assert run("memory", "policy", "--reset", "--data", folder).code == 0
    assert value(folder, "retention") == ("decay", "this memory")
