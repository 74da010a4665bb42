"""Whether data contain a town, or users' memories: each has commands of its own, and they are not mixed."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Iterator
from pathlib import Path

from mindstream import file_locks
from mindstream.errors import HeldElsewhere, InputError
from mindstream.location import Location
from mindstream.log.names import StreamName
from mindstream.memory.opening import is_begun, open_store
from mindstream.memory.store.store import Store

LOCK = "server.lock"
TOWN_JOURNAL, TOWN_BEGAN = StreamName("town", "town"), "town_began"
"""The stream of a town, and the kind of event that begins it (mindstream_town.events)."""


async def refuse_town(store: Store, data: Location) -> None:
    """Refuse data that contain a town: a coach, a life, a run or a pool must not write among its residents.

    Raises:
        InputError: they contain one; the message says how to talk with its residents.
    """
    if await _holds_town(store):
        talk = shlex.join(["mindstream", "town", "talk", "NAME", "--data", str(data)])
        raise InputError(
            f"{data} contains a town: talk with its residents by `{talk}`; for data of your own choose another --data"
        )


async def refuse_town_in(data: Location) -> None:
    """As `refuse_town`, for data that are not open; a folder that does not exist contains no town."""
    if is_begun(data):
        async with open_store(data) as store:
            await refuse_town(store, data)


async def holds_town(data: Location) -> bool:
    """Return whether the data contain a town; one whose creation was interrupted does not count."""
    if not is_begun(data):
        return False
    async with open_store(data) as store:
        return await _holds_town(store)


async def require_town(data: Location) -> None:
    """Refuse data without a town.

    Raises:
        InputError: they contain none; the message says how to create one.
    """
    new = shlex.join(["mindstream", "town", "new", "--data", str(data)])
    if is_begun(data):
        async with open_store(data) as store:
            if await _holds_town(store):
                return
            if await store.events(None, limit=1):
                raise InputError(
                    f"no town lives in {data}, but a user's memory does: --data names another folder, in which"
                    " `mindstream town new` begins one"
                )
    raise InputError(f"no town lives in {data}: `{new}` begins one, --data names another folder")


async def find_town(data: Location) -> Location:
    """Return the location of the data's town: the usual one, or the other one, where a copy has put it."""
    usual, other = data.rooms("town")
    for each in (usual, other) if is_begun(data) else ():
        async with open_store(each) as store:
            if await _holds_town(store):
                return each
    return usual


async def require_room_for_town(data: Location) -> None:
    """Refuse data that are not empty: a town needs a folder of its own.

    Raises:
        InputError: they are not empty; nothing was changed.
    """
    if not is_begun(data):
        return
    async with open_store(data) as store:
        if await _holds_town(store):
            run = shlex.join(["mindstream", "town", "run", "--data", str(data)])
            raise InputError(f"{data} contains a town already: `{run}` continues it, --data names another folder")
        if await store.events(None, limit=1):
            raise InputError(f"{data} contains a user's memory: a town needs a folder of its own, --data names one")


async def _holds_town(store: Store) -> bool:
    return await store.last(store.key(TOWN_JOURNAL), TOWN_BEGAN) is not None


@contextlib.contextmanager
def hold_folder(folder: Path) -> Iterator[None]:
    """Lock a data folder as its only server; the command line may be used at the same time.

    Raises:
        HeldElsewhere: another server has locked it.
    """
    descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            file_locks.lock(descriptor, wait=False)
        except OSError:
            raise HeldElsewhere(
                f"another server has {folder}: one serves a data folder; name another with --data, or end that one"
            ) from None
        yield
    finally:
        os.close(descriptor)
