"""The anchors from a recorded day hold."""

from __future__ import annotations

from pathlib import Path

import pytest
from town_anchors import measure

SHARED = Path(__file__).parents[4] / "shared/data/town"


@pytest.mark.skipif(not SHARED.exists(), reason="the published saves and map of Park 2023 are not available")
def test_recorded_days_are_reproduced() -> None:
    results = measure(SHARED, None)
    assert {name.split()[0] for name in results} >= {f"A{number}" for number in range(1, 12)}
    assert [key for key, by_save in results.items() for found in by_save.values() if found["wrong"]] == []
    assert {found["cases"] for found in results["A1 import"].values()} == {304}
