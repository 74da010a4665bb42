"""What the command line does to people's data is written into the audit, as the doors write theirs (House.note)."""

from __future__ import annotations

from collections.abc import Mapping

from mindstream.clock import Clock, SystemClock
from mindstream.location import AnyData
from mindstream.log.audit import Deed, Did, machine_user
from mindstream.memory.opening import open_store
from mindstream.memory.store.store import Store
from mindstream.service.memory import UserMemory


async def note(
    store: Store,
    did: Did,
    counts: Mapping[str, int | str],
    about: str = "",
    tenant: str = "",
    clock: Clock | None = None,
) -> None:
    """Add to the audit what the machine's user did by a command."""
    await store.note((clock or SystemClock()).now(), Deed(did, "command", machine_user(), about, tenant, counts))


def deed_of(opened: UserMemory, did: Did) -> Deed:
    """Return what the audit says of something that a command does to a user's memory, without its counts."""
    return Deed(did, "command", machine_user(), opened.key)


async def note_of(opened: UserMemory, did: Did, counts: Mapping[str, int | str]) -> None:
    """Add to the audit what was done to a user's memory by a command."""
    await note(opened.store, did, counts, opened.key, clock=opened.clock)


async def note_in(data: AnyData, did: Did, counts: Mapping[str, int | str], tenant: str = "") -> None:
    """Add to the audit of a data folder, or of a database, that is not open; the folder is made if need be."""
    async with open_store(data) as store:
        await note(store, did, counts, tenant=tenant)
