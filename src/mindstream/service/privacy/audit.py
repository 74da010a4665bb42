"""Audit entries for what the command line does to users' data."""

from __future__ import annotations

from collections.abc import Mapping

from mindstream.clock import Clock, SystemClock
from mindstream.location import AnyData
from mindstream.log.audit import Deed, Did, machine_user
from mindstream.memory.memory import Memory
from mindstream.memory.opening import open_store
from mindstream.memory.store.store import Store


async def note(
    store: Store,
    did: Did,
    counts: Mapping[str, int | str],
    about: str = "",
    tenant: str = "",
    clock: Clock | None = None,
) -> None:
    """Add an audit entry for a command of the machine's user."""
    await store.note((clock or SystemClock()).now(), Deed(did, "command", machine_user(), about, tenant, counts))


async def note_of(opened: Memory, did: Did, counts: Mapping[str, int | str]) -> None:
    """Add an audit entry for what a command did to a user's memory."""
    await note(opened.store, did, counts, opened.key, clock=opened.clock)


async def note_in(data: AnyData, did: Did, counts: Mapping[str, int | str], tenant: str = "") -> None:
    """Add an audit entry to data that are not open; a missing folder is created."""
    async with open_store(data) as store:
        await note(store, did, counts, tenant=tenant)
