"""`mindstream town prepare`: a model derives keys from a prose town file, shown before they are written."""

from __future__ import annotations

import json
from pathlib import Path

from fake_endpoint import Asked, Behaviour, FakeEndpoint, Says
from running import mistaken, run

PROSE = """
# two houses on a road
[town]
name = "Ford"
[[places]]
address = "Mill:room"
objects = ["bed", "stove"]
[[places]]
address = "Inn:hall"
objects = ["bar"]
[[roads]]
from = "Mill:room"
to = "Inn:hall"
steps = 9
[[residents]]
name = "Ann Lee"
age = 40
learned = "Ann Lee runs the Inn."
home = "Mill:room"
"""


def answer(asked: Asked) -> Behaviour:
    """Give all residents one day, and the places their keys."""
    if "What are the keys?" in asked.body["messages"][-1]["content"]:
        return Says(json.dumps({"places": [{"place": 1, "purpose": ["eat"]}], "danger": ["on fire"], "fine": []}))
    return Says(json.dumps({"day": [{"start": "07:00", "end": "22:00", "what": "reading", "place": 0}], "bed": 0}))


def test_the_difference_is_shown_before_it_is_written(tmp_path: Path) -> None:
    file, new = tmp_path / "mine.toml", tmp_path / "new.toml"
    assert f"{file} cannot be read: No such file" in mistaken(run("town", "prepare", file))
    file.write_text(PROSE)
    assert "reading descriptions needs a model" in mistaken(run("town", "prepare", file))
    with FakeEndpoint() as door:
        door.otherwise = answer
        model = ("--model", f"{door.url}#any")
        shown = run("town", "prepare", file, *model)
        assert "+day = [" in shown.out and "was not changed" in shown.err and file.read_text() == PROSE
        (row,) = run("town", "prepare", file, "--out", new, "--json", *model).rows
        assert row["written"] == str(new) and file.read_text() == PROSE and "+day = [" in row["difference"]
        assert "exists already" in mistaken(run("town", "prepare", file, "--out", new, *model))
        assert run("town", "prepare", file, "--yes", *model).code == 0
        assert file.read_text() == new.read_text()
        asked = len(door.chats)
        assert "needs no preparation" in run("town", "prepare", file, *model).out and len(door.chats) == asked
        door.otherwise = Says("No.")
        file.write_text(PROSE)
        failed = run("town", "prepare", file, "--yes", *model)
    assert failed.code == 1 and "the file was not changed" in failed.err and file.read_text() == PROSE
