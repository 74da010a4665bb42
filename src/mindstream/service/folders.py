"""Check whether data contain a town or users' memories, which must not be mixed; each has its own commands."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from mindstream import file_locks
from mindstream.errors import HeldElsewhere, InputError, StorageError
from mindstream.identifiers import StreamName
from mindstream.location import Location
from mindstream.memory.opening import is_begun, open_store
from mindstream.memory.store.store import Store

LOCK = "server.lock"
"""The file in a data folder that a server locks."""
TOWN_JOURNAL, TOWN_BEGAN = StreamName("town", "town"), "town_began"
"""The stream of a town, and the kind of its first event (defined in mindstream_town.events)."""


async def refuse_town(store: Store, data: Location) -> None:
    """Refuse data that contain a town, because data of users must not be mixed with data of the town's residents.

    Raises:
        InputError: the data contain a town; the message says how to talk with its residents.
    """
    if await _holds_town(store):
        talk = shlex.join(["mindstream", "town", "talk", "NAME", "--data", str(data)])
        raise InputError(
            f"{data} contains a town: talk with its residents with `{talk}`, or choose another folder with --data"
        )


async def refuse_town_in(data: Location) -> None:
    """Do the same as `refuse_town` for data that are not open; a folder that does not exist contains no town."""
    if is_begun(data):
        async with open_store(data) as store:
            await refuse_town(store, data)


async def _find_content(data: Location) -> Literal["town", "memory", ""]:
    """Return what data contain: a town, other data ("memory"), or nothing ("").

    A town whose creation was interrupted does not count as a town.
    """
    if not is_begun(data):
        return ""
    async with open_store(data) as store:
        if await _holds_town(store):
            return "town"
        return "memory" if await store.events(None, limit=1) else ""


async def holds_town(data: Location) -> bool:
    """Return whether the data contain a town; a town whose creation was interrupted does not count."""
    return await _find_content(data) == "town"


async def require_town(data: Location) -> None:
    """Refuse data without a town.

    Raises:
        InputError: the data contain no town; the message says how to create one.
    """
    match await _find_content(data):
        case "memory":
            raise InputError(
                f"{data} contains other data, but no town: choose the folder of a town with --data, or create a"
                " town in another folder with `mindstream town new`"
            )
        case "":
            new = shlex.join(["mindstream", "town", "new", "--data", str(data)])
            raise InputError(f"{data} contains no town: create one with `{new}`, or choose another folder with --data")


async def find_town(data: Location) -> Location:
    """Return the location of the town in data.

    A town has two possible locations in data (`Location.rooms`). The usual location is returned, unless only the other
    location contains a town. This can be the case after a copy of the data.
    """
    usual, other = data.rooms("town")
    return other if not await holds_town(usual) and await holds_town(other) else usual


async def require_room_for_town(data: Location) -> None:
    """Refuse data that are not empty, because a town needs its own folder.

    Raises:
        InputError: the data contain a town, or anything else.
    """
    match await _find_content(data):
        case "town":
            run = shlex.join(["mindstream", "town", "run", "--data", str(data)])
            raise InputError(
                f"{data} already contains a town: continue it with `{run}`, or name another folder with --data"
            )
        case "memory":
            raise InputError(f"{data} contains other data, but a town needs a folder of its own: name one with --data")


async def _holds_town(store: Store) -> bool:
    return await store.last(store.key(TOWN_JOURNAL), TOWN_BEGAN) is not None


@contextlib.contextmanager
def hold_folder(folder: Path) -> Iterator[None]:
    """Lock a data folder as its only server; the command line may be used at the same time.

    Raises:
        HeldElsewhere: another server has locked it.
        StorageError: it cannot be locked, for example because it cannot be written or the disk is full.
    """
    place = folder / LOCK
    with contextlib.ExitStack() as closing:
        try:
            descriptor = os.open(place, os.O_RDWR | os.O_CREAT, 0o600)
            closing.callback(os.close, descriptor)
            file_locks.lock(descriptor, wait=False)
        except BlockingIOError:
            raise HeldElsewhere(
                f"another server uses {folder}, and only one may use a data folder: end that server, or choose another"
                " folder with --data"
            ) from None
        except OSError as error:
            raise StorageError(
                f"{place} cannot be locked: {error.strerror}; correct that, or choose another folder with --data"
            ) from None
        yield
