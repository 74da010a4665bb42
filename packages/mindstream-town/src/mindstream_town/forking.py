"""A town as it was after a step, in a folder of its own: it goes on from there beside the one that it came from.

It has the same seed, so that whatever differs later comes of what was done to one of them. Its journal up to that step
is the other's. One thing is not known of the past: when memories were recalled before they were recalled after the
step; they count as recalled at it, and a town that ranks by recency may go on a little otherwise.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from mindstream.errors import InputError
from mindstream.location import AnyData, Location
from mindstream.memory.opening import open_store
from mindstream.memory.store.cutting import copy_before
from mindstream.memory.store.store import Commit, Entry, Store
from mindstream_town.events import JOURNAL, TOWN, MemoriesRated, TownEvent, TownRested
from mindstream_town.inspect.time_words import format_time
from mindstream_town.journal import read_setting, read_town, rows_after
from mindstream_town.setting import Setting


async def fork(source: AnyData, target: Path, step: int) -> Setting:
    """Copy the town of a place, as it was after a step, into a folder; return its setting.

    A town of a database goes into the folder with its tenant's name; nobody else's rows do.

    Raises:
        InputError: no town lives there, it has not lived so far, or something is in the folder.
        StorageError: one of them cannot be used.
    """
    place = Location.of(source)
    if place.folder is not None:
        return await _fork(place.folder, place.tenant, target, step)
    from mindstream.memory.store.postgres.copying import copy_part

    with tempfile.TemporaryDirectory() as beside:
        await asyncio.to_thread(copy_part, place, folder := Path(beside) / "town")
        return await _fork(folder, place.tenant, target, step)


async def _fork(folder: Path, tenant: str, target: Path, step: int) -> Setting:
    async with open_store(Location(folder, tenant=tenant)) as store:
        setting = await read_setting(store)
        now = (await read_town(store, setting.profile)).step
        if not 0 <= step <= now:
            raise InputError(
                f"{setting.name} has lived up to {format_time(setting, now)}: it is forked at a step of 0 to {now}"
            )
        cut, rated = await _later(store, setting, step)
    at = setting.moment(step)
    await asyncio.to_thread(copy_before, folder, target, cut, at, rated)
    async with open_store(Location(target, tenant=tenant)) as store:
        key, rested = store.key(JOURNAL), Entry(TownRested(step=step), TOWN)
        await store.commit(Commit(mind=key, at=at, entries=(rested,)))
        return await read_setting(store)


async def _later(store: Store, setting: Setting, step: int) -> tuple[int, list[str]]:
    """Return the first row that was written after a step, and the records that were rated from there on."""
    cut, rated, last, end = 0, list[str](), 0, setting.moment(step)
    async for row in rows_after(store):
        last, event = row.seq, row.event
        is_later = event.step > step if isinstance(event, TownEvent) else row.at > end
        if not cut and is_later:
            cut = row.seq
        if cut and isinstance(event, MemoriesRated):
            rated += event.records
    return cut or last + 1, rated
