"""The memory accepts only records that can be read again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from keys import key_of

from mindstream.errors import InputError
from mindstream.memory.store.record import Record, Triple, checked_record, new_id

SOUND = Record(
    id=new_id(1e9), stream=key_of("ann"), kind="note", text="Ann drinks tea.", created=1e9, accessed=1e9, by="ann",
    about=Triple("ann", "drinks", "tea"), keywords=("tea",), evidence=("abcdef",), data={"a": [1, {"b": None}]},
    embedder="e", vector=np.ones(8, np.float16),
)  # fmt: skip


def deep(levels: int) -> Any:
    found: Any = 1
    for _ in range(levels):
        found = [found]
    return found


def test_a_valid_record_is_returned_unchanged() -> None:
    assert checked_record(SOUND) is SOUND
    held = replace(SOUND, kind="belief", slot="sleep", version=3, level=-1, forgotten=2e9, valid_from=-2e9)
    assert checked_record(held) is held


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("kind", {"kind": "fact"}),
        ("id", {"id": "abcdefg\n"}),
        ("id", {"id": "x' OR 1=1 --"}),
        ("empty", {"text": "\x00\x01"}),
        ("too long", {"text": "a" * 100_001}),
        ("created", {"created": float("nan")}),
        ("forgotten", {"forgotten": float("-inf")}),
        ("valid_until", {"valid_until": float("inf")}),
        ("importance", {"importance": float("nan")}),
        ("level", {"level": 10**30}),
        ("given together", {"slot": "sleep"}),
        ("only beliefs and plans", {"slot": "sleep.plan", "version": 1}),
        ("version", {"kind": "plan", "slot": "sleep.plan", "version": 2**63 - 1}),
        ("slot", {"kind": "plan", "slot": "\x1b[31m", "version": 1}),
        ("by", {"by": "b" * 10**6}),
        ("keywords", {"keywords": ("k",) * 100_000}),
        ("about", {"about": ("a", "b", "c")}),
        ("evidence", {"evidence": ("",)}),
        ("itself", {"evidence": (SOUND.id,)}),
        ("data", {"data": {"x": 10**6000}}),
        ("data", {"data": {"x": "\ud800"}}),
        ("data", {"data": {"x": deep(10_000)}}),
        ("data", {"data": {"x": ["y"] * 30_000}}),
        ("vector", {"vector": np.array([1, np.nan], np.float16)}),
        ("vector", {"vector": np.ones((2, 2), np.float16)}),
    ],
)
def test_an_invalid_field_is_refused_by_name(what: str, change: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=what) as refused:
        checked_record(replace(SOUND, **change))
    assert len(str(refused.value)) < 300


def test_control_characters_are_removed() -> None:
    clean = checked_record(replace(SOUND, text="tea \x1b[31mred", by="\x1b[31mbob\x07", keywords=("a\ud800b",)))
    assert (clean.text, clean.by, clean.keywords) == ("tea [31mred", "[31mbob", ("ab",))
