"""Fork a town: copy it as of a step into a new folder, where the copy continues independently.

The fork has the same seed and the same journal up to that step, so later differences result from actions of users. One
thing is lost: when a memory was recalled after the step, its earlier recalls are unknown, and it counts as recalled at
the step. So a town that ranks memories by recency may continue slightly differently.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from mindstream.errors import InputError
from mindstream.location import AnyData, Location
from mindstream.memory.opening import open_store
from mindstream.memory.store.sqlite import copy_before
from mindstream.memory.store.store import Commit, Entry, Store
from mindstream_town.events import JOURNAL, TOWN, MemoriesRated, TownEvent, TownRested
from mindstream_town.inspect.lookup import format_time
from mindstream_town.journal import read_setting, read_town, rows_after
from mindstream_town.setting import Setting


async def fork(source: AnyData, target: Path, step: int) -> Setting:
    """Copy a town as of a step into a folder, and return its setting.

    From a database, only the rows of the town's tenant are copied.

    Raises:
        InputError: there is no town, the step is in its future, or the target folder is not empty.
        StorageError: source or target cannot be used.
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
                f"{setting.name} has run up to {format_time(setting, now)}: choose a step from 0 to {now} for the fork"
            )
        cut, rated = await _later(store, setting, step)
    at = setting.moment(step)
    await asyncio.to_thread(copy_before, folder, target, cut, at, rated)
    async with open_store(Location(target, tenant=tenant)) as store:
        key, rested = store.key(JOURNAL), Entry(TownRested(step=step), TOWN)
        await store.commit(Commit(mind=key, at=at, entries=(rested,)))
        return await read_setting(store)


async def _later(store: Store, setting: Setting, step: int) -> tuple[int, list[str]]:
    """Return the number of the first row after a step, and the records that were rated in that row or later."""
    cut, rated, last, end = 0, list[str](), 0, setting.moment(step)
    async for row in rows_after(store):
        last, event = row.seq, row.event
        is_later = event.step > step if isinstance(event, TownEvent) else row.at > end
        if not cut and is_later:
            cut = row.seq
        if cut and isinstance(event, MemoriesRated):
            rated += event.records
    return cut or last + 1, rated
