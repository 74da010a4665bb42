"""Write audit entries about actions of the command line on users' data."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from mindstream.clock import Clock, SystemClock
from mindstream.errors import ReadOnlyData
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
    """Add an audit entry for an action of the command line, in the name of the machine's user.

    Args:
        did: the action.
        counts: the numbers of affected rows, by name.
        about: the stream that the action is about; "": none.
    """
    with contextlib.suppress(ReadOnlyData):  # such data can only be exported, and no entry is added then
        await store.note((clock or SystemClock()).now(), Deed(did, "command", machine_user(), about, tenant, counts))


async def note_of(opened: Memory, did: Did, counts: Mapping[str, int | str]) -> None:
    """Add an audit entry for an action of the command line on a user's memory."""
    await note(opened.store, did, counts, opened.key, clock=opened.clock)


async def note_in(data: AnyData, did: Did, counts: Mapping[str, int | str], tenant: str = "") -> None:
    """Add an audit entry to data that are not open; a missing data folder is created."""
    async with open_store(data) as store:
        await note(store, did, counts, tenant=tenant)
