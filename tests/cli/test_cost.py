from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from keys import key_of
from running import mistaken, run

from mindstream.clock import DAY_S
from mindstream.log.events import ModelCalled
from mindstream.memory.store.sqlite import SqliteStore
from mindstream.memory.store.store import Commit, Entry

MONDAY = 1_794_787_200.0  # 2026-11-16 UTC


def called(role: str = "talker", model: str = "openai:gpt-5-mini", **more: Any) -> ModelCalled:
    return ModelCalled(role=role, prompt="talk", model=model, seconds=1.5, **more)


@pytest.fixture
async def spent(folder: Path) -> Path:
    """A data folder in which ann and bob have spent something."""
    store = SqliteStore(folder)
    calls = [
        ("ann", MONDAY, called(input_tokens=1000, output_tokens=200, cached_tokens=400, cost_usd=0.5)),
        ("ann", MONDAY, called("reasoner", input_tokens=10, output_tokens=20, cost_usd=0.25)),
        ("ann", MONDAY + DAY_S, called(error="ModelUnavailable: down")),
        ("bob", MONDAY + DAY_S, called(model="ollama:qwen3", input_tokens=5, output_tokens=5)),
        ("bob", MONDAY + DAY_S, called(model="ollama:qwen3", error="broken off")),
        ("bob", MONDAY + DAY_S, called("reasoner", "rules")),
    ]
    for user, at, call in calls:
        await store.commit(Commit(mind=key_of(user), at=at, entries=(Entry(call, "mindstream"),)))
    await store.close()
    return folder


def test_costs_are_summed_by_day_user_role_and_model(spent: Path) -> None:
    rows = {(row["by"], row["name"]): row for row in run("cost", "--data", spent, "--json").rows}
    assert {by for by, _ in rows} == {"day", "user", "role", "model", "all"}
    assert rows["all", "all"] == {
        "by": "all", "name": "all", "calls": 6, "failed": 1, "broken_off": 1, "input_tokens": 1015,
        "output_tokens": 225, "cached_tokens": 400, "seconds": 9.0, "cost_usd": 0.75, "free": 1, "unpriced": 2,
    }  # fmt: skip
    assert rows["day", "2026-11-16"]["cost_usd"] == 0.75
    assert rows["user", "ann"]["failed"] == 1 and rows["user", "ann"]["unpriced"] == 0
    assert rows["role", "reasoner"]["calls"] == 2
    assert rows["model", "ollama:qwen3"]["cost_usd"] is None
    assert rows["model", "rules"]["cost_usd"] == 0


def test_an_unknown_price_is_reported(spent: Path) -> None:
    told = run("cost", "--data", spent, "--by", "model").out
    assert "not known" in told and "0.7500 + ?" in told
    assert "calls without a known price, which are not in the total: 2 of 6" in told and "1 cancelled call" in told


def test_cost_can_be_limited_to_one_user(spent: Path) -> None:
    rows = run("cost", "--data", spent, "--user", "ann", "--by", "user", "--json").rows
    assert [row["name"] for row in rows] == ["ann", "all"] and rows[-1]["calls"] == 3
    assert "'carol'" in mistaken(run("cost", "--data", spent, "--user", "carol"))
