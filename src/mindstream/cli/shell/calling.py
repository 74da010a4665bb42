"""Calls operations of `mindstream.service.operations` in this process, as this machine's own user."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mindstream.errors import InputError

if TYPE_CHECKING:
    from mindstream.memory.memory import Memory
    from mindstream.service.operations.principal import Principal
    from mindstream.service.operations.runtime import Runtime
    from mindstream.settings import Settings


@dataclass(frozen=True)
class Caller:
    """Calls operations for one user: `reply = await call("memory.recall", query="…")`."""

    runtime: Runtime
    principal: Principal

    async def __call__(self, name: str, **arguments: Any) -> Any:
        """Return the reply of an operation; arguments that are None keep their defaults.

        Raises:
            InputError: an argument does not fit.
            MindstreamError: see the operation.
        """
        from pydantic import ValidationError

        from mindstream.service.operations.table import find_operation

        operation = find_operation(name)
        try:
            request = operation.request.model_validate({k: v for k, v in arguments.items() if v is not None})
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"])).replace("_", "-")
            raise InputError(f"{where}: {first['msg'].removeprefix('Value error, ')}") from None
        return await operation.call(self.runtime, self.principal, request)

    async def memory(self) -> Memory:
        """Return the user's memory."""
        return await self.runtime.memory(self.principal)


@contextlib.asynccontextmanager
async def calling(
    settings: Settings,
    *,
    new: bool = False,
    own: bool = False,
    known: bool = False,
    all_users: bool = False,
    begins: str = "`mindstream chat`",
) -> AsyncIterator[Caller]:
    """Open the data of the settings, without keeping a server from using them.

    Args:
        new: create the data folder if there is none.
        own: the command writes data that a town's folder must not hold; so does `new`.
        known: refuse a user without any data.
        all_users: the call is about no user in particular.
        begins: the command that begins a memory, for the message where there is none.

    Raises:
        InputError: there is no memory in that folder, or a town's; the user's name cannot be used, or is not known.
        StorageError: the data cannot be read.
    """
    from mindstream.log.audit import machine_user
    from mindstream.memory.opening import finish_erasures
    from mindstream.service.folders import refuse_town
    from mindstream.service.memory import nobody, require_begun
    from mindstream.service.operations.principal import LOCAL, Principal
    from mindstream.service.operations.runtime import Runtime

    principal = Principal(LOCAL, frozenset({"admin"}), key=machine_user(), door="command").of(settings.user)
    if not new:
        require_begun(settings, begins)
    await asyncio.to_thread(finish_erasures, settings.data, principal.name.key)
    async with Runtime.open_reader(settings) as runtime:
        store = runtime.server_store()
        if new or own:
            await refuse_town(store, settings.data)
        if known and not await store.events(store.key(principal.name), limit=1):
            raise InputError(nobody(settings.user))
        yield Caller(runtime, replace(principal, user="") if all_users else principal)
