"""The anchors that a recorded day gives hold, and a figure tells when one does not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from test_saves import ROOM, write
from town_anchors import ANCHORS, measure
from town_recorded import Recorded

from mindstream.town.formats.saves import read_save
from mindstream.town.world.tiles import build_tiles

SHARED = Path(__file__).parents[3] / "shared/data/town"


def test_a_figure_tells_what_differs(tmp_path: Path) -> None:
    folder = write(tmp_path)
    recorded = Recorded(
        folder, read_save(folder), build_tiles(ROOM.upto(1), (2, 1), bytes(2), [ROOM, ROOM.child("bed")])
    )
    wrong = {name: anchor(recorded).differ for name, anchor in ANCHORS.items()}
    assert wrong.pop("A5 reflection times") == ("Ann Poe: 7 left, 8 saved",)
    assert wrong.pop("A6 keyword strength") == ("Ann Poe: event: bed",), (
        "the event is idle, and idle ones are not counted"
    )
    assert wrong.pop("A7 percepts") == ("Ann Poe: step 0: bed",), "a thing is perceived by its address"
    assert set(wrong.values()) == {()}
    walled = replace(recorded, world=build_tiles(ROOM.upto(1), (2, 1), bytes([0, 1]), [ROOM, None]))
    assert ANCHORS["A4 movement"](walled).differ == ("step 0: Ann Poe goes from (0, 0) to (1, 0)",)


@pytest.mark.skipif(not SHARED.exists(), reason="the town's data is not beside the repository (../shared/data/town)")
def test_the_recorded_days_are_reproduced() -> None:
    results = measure(SHARED, None)
    assert {name.split()[0] for name in results} >= {f"A{number}" for number in range(1, 12)}
    assert [key for key, by_save in results.items() for found in by_save.values() if found["wrong"]] == []
    assert {found["cases"] for found in results["A1 import"].values()} == {304}
