from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Literal

import pytest
from pydantic import BaseModel, ConfigDict
from world import Words

from mindstream.clock import ManualClock
from mindstream.errors import InputError
from mindstream.memory.memory import Memory
from mindstream.memory.store.sqlite import SqliteStore
from mindstream.memory.stream import Belief, merged


class Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    phase: Literal["a", "b"] = "a"
    concerns: list[str] = []
    hours: float | None = None


def belief(**fields: object) -> Belief[Shape]:
    return Belief("b", 1, Shape.model_validate(fields))


def test_a_patch_appends_to_a_list_without_duplicates() -> None:
    value, changed = merged(belief(concerns=["noise"]), {"concerns": ["light", "Noise"]})
    assert value.concerns == ["noise", "light"]
    assert changed == {"concerns": ["noise", "light"]}


def test_remove_deletes_list_items_and_null_clears_a_field() -> None:
    held = belief(concerns=["noise", "light"], hours=5.0)
    assert merged(held, {"concerns": {"remove": ["NOISE"]}})[0].concerns == ["light"]
    assert merged(held, {"concerns": None, "hours": None})[0] == Shape()


@pytest.mark.parametrize("patch", [{"colour": "red"}, {"phase": "z"}, {"hours": "many"}])
def test_an_invalid_patch_is_refused(patch: dict[str, str]) -> None:
    with pytest.raises(InputError, match="belief 'b'"):
        merged(belief(), patch)


async def test_concurrent_writers_do_not_overwrite_each_others_fields(folder: Path) -> None:
    stores = [SqliteStore(folder) for _ in range(2)]
    streams = [Memory(store, "ann", Words(), ManualClock()) for store in stores]
    writes = (
        streams[n % 2].believe("b", {"concerns": [f"c{n}"]} if n % 3 else {"hours": float(n)}, Shape) for n in range(24)
    )
    await asyncio.gather(*writes)
    final = await streams[0].belief("b", Shape)
    assert sorted(final.value.concerns) == sorted(f"c{n}" for n in range(24) if n % 3)
    assert final.version == 24
    for store in stores:
        await store.close()


async def test_a_belief_stored_with_an_older_model_can_be_read(folder: Path) -> None:
    class Smaller(BaseModel):
        model_config = ConfigDict(extra="forbid")
        hours: int | None = None
        phase: Literal["b"] = "b"

    store = SqliteStore(folder)
    stream = Memory(store, "ann", Words(), ManualClock())
    await stream.believe("b", {"concerns": ["noise"], "hours": 5.0, "phase": "a"}, Shape)
    assert (await stream.belief("b", Smaller)).value == Smaller(hours=5)
    await store.close()
