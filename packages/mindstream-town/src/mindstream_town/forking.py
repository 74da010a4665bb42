"""Fork a town: copy it as of a step into a new folder, where the copy continues independently.

The fork has the same journal up to that step and, unless `fork` is given another one, the same seed. So without a model
later differences result only from actions of users, and from memories that the fork does not have. One thing is lost:
when a memory was recalled after the step, its earlier recalls are unknown, and it counts as recalled at the step. So a
town that ranks memories by recency may continue slightly differently.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from mindstream.errors import InputError
from mindstream.location import AnyData, Location
from mindstream.memory.opening import open_store
from mindstream.memory.store.sqlite import copy_without
from mindstream.memory.store.store import Commit, Entry, Store
from mindstream_town.events import (
    JOURNAL,
    TOWN,
    MemoriesRated,
    TownEvent,
    TownForked,
    TownReached,
    TownRested,
    TownSaved,
)
from mindstream_town.inspect.lookup import format_time
from mindstream_town.journal import OF_PROCESS, read_setting, read_town, rows_after
from mindstream_town.setting import Setting


async def fork(
    source: AnyData,
    target: Path,
    step: int,
    lost: Sequence[str] = (),
    seed: int | None = None,
    withheld: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
) -> Setting:
    """Copy the state of a town after a step into a folder, and return the setting of the copy.

    Args:
        lost: ids of memories that the copy does not have.
        seed: seed of the copy's later random draws; None: the seed of the town.
        withheld: for each resident, by name: texts that other residents of the copy may tell the resident, but that the
            resident does not remember.

    From a database, only the rows of the town's tenant are copied.

    Raises:
        InputError: there is no town, the town has not finished the step, or the target folder is not empty.
        StorageError: source or target cannot be used.
    """
    place = Location.of(source)
    tenant, folder = place.tenant, place.folder
    with tempfile.TemporaryDirectory() as beside:
        if folder is None:
            from mindstream.memory.store.postgres.copying import copy_part

            await asyncio.to_thread(copy_part, place, folder := Path(beside) / "town")
        async with open_store(Location(folder, tenant=tenant)) as store:
            setting = await read_setting(store)
            now = (await read_town(store, setting.profile)).step
            if not 0 <= step <= now:
                why = f"has run up to {format_time(setting, now)}: choose a step from 0 to {now} for the fork"
                raise InputError(f"{setting.name} {why if now >= 0 else 'has not run yet'}")
            gone, rated = await _later(store, setting, step)
        at = setting.moment(step)
        await asyncio.to_thread(copy_without, folder, target, gone, at, rated, lost)
        async with open_store(Location(target, tenant=tenant)) as store:
            entries = [Entry(TownRested(step=step), TOWN)]
            if lost or withheld or seed is not None:
                seed = setting.seed if seed is None else seed
                entries.append(Entry(TownForked(step=step, seed=seed, lost=tuple(lost), withheld=dict(withheld)), TOWN))
            await store.commit(Commit(mind=store.key(JOURNAL), at=at, entries=tuple(entries)))
            return await read_setting(store)


async def _later(store: Store, setting: Setting, step: int) -> tuple[list[int], list[str]]:
    """Return the numbers of the rows to leave out of a fork, and the ids of the records that were rated in these rows.

    The rows after the step are left out. If residents ran ahead of others, all saved states are left out, too, because
    a saved state may contain later steps.
    """
    gone, saves, rated, end = list[int](), list[int](), list[str](), setting.moment(step)
    ran_ahead = False
    async for row in rows_after(store):
        event = row.event
        ran_ahead |= isinstance(event, TownReached)
        if isinstance(event, TownSaved | TownReached):
            saves.append(row.seq)
        is_later = event.step > step if isinstance(event, TownEvent) else row.at > end
        if is_later or (gone and isinstance(event, OF_PROCESS)):
            gone.append(row.seq)
            rated += event.records if isinstance(event, MemoriesRated) else ()
    return (sorted({*gone, *saves}) if ran_ahead else gone), rated
