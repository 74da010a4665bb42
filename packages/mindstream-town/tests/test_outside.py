"""Effects from outside a town: a thought, and words for residents, objects or places."""

from __future__ import annotations

from pathlib import Path

import pytest
from hamlet import HAMLET, hamlet
from mindstream_town.events import JOURNAL
from mindstream_town.formats.town_file import parse_town
from mindstream_town.inspect.lookup import find_object, find_place, find_resident
from mindstream_town.journal import resident_of, rows_after
from mindstream_town.residents.interview import interview
from mindstream_town.source import setting_of
from mindstream_town.town import Town

from mindstream.errors import InputError

NOON = 12 * 360


async def test_a_whisper_is_remembered_without_a_speaker(tmp_path: Path) -> None:
    async with Town.open(tmp_path, hamlet()) as town:
        await town.run(NOON)
        await town.whisper("Cleo Marsh", "The bridge is closed on Sunday.")
        with pytest.raises(InputError, match="Hamlet has no resident"):
            await town.whisper("Cleo", "Hello.")
        with pytest.raises(InputError):
            await town.whisper("Cleo Marsh", "  ")
        await town.run(NOON + 360)
        assert "bridge" in (await interview(town, "Cleo Marsh", "Is the bridge closed?")).answer
        assert [resident_of(row) async for row in rows_after(town.store) if row.by == "whisper"] == ["Cleo Marsh"]


async def test_a_resident_called_town_has_its_own_stream_and_state(tmp_path: Path) -> None:
    setting = setting_of(parse_town(HAMLET.replace("Cleo Marsh", "town"), Path()), seed=1)
    async with Town.open(tmp_path, setting) as town:
        await town.run(NOON)
        await town.save()
        await town.whisper("town", "The bridge is closed on Sunday.")
        digest, key = await town.digest(), town.residents["town"].memory.key
        own, journal = await town.store.events(key), await town.store.events(town.store.key(JOURNAL))
    assert {row.event.kind for row in own} & {row.event.kind for row in journal} == set()
    async with Town.open(tmp_path) as town:
        assert town.residents["town"].state.act and await town.digest() == digest


def test_typed_names_are_resolved_or_refused_with_suggestions() -> None:
    town = hamlet()
    assert find_resident(town, "ada") == find_resident(town, "Ada Brook") == "Ada Brook"
    assert find_object(town, "piano") == find_object(town, "cafe:piano") == "Hamlet:Oak Cafe:cafe:piano"
    assert find_place(town, "oak cafe") == "Hamlet:Oak Cafe"
    assert find_place(town, "oak") == "Hamlet:Oak Cafe", "a partial name matches inside the place"
    for typed in ("cafe of Oak Cafe", "the cafe of oak cafe", "Oak Cafe cafe", "oak cafe:cafe"):
        assert find_place(town, typed) == "Hamlet:Oak Cafe:cafe"
    for typed, said in (("Ada Brok", "did you mean 'Ada Brook'"), ("nobody at all", "known: 'Ada Brook'")):
        with pytest.raises(InputError, match=said):
            find_resident(town, typed)
    with pytest.raises(InputError, match="name one of"):
        find_object(town, "bed")
