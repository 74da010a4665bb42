"""Call operations of `mindstream.service.operations` in this process, with the rights of this machine's user."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mindstream.chance import token
from mindstream.errors import InputError

if TYPE_CHECKING:
    from mindstream.memory.memory import Memory
    from mindstream.models.roles import Models
    from mindstream.models.wrappers.meter import Metered
    from mindstream.service.operations.operation import Principal
    from mindstream.service.operations.runtime import Runtime
    from mindstream.settings import Settings
    from mindstream.sharing.pool import Pool


@dataclass(frozen=True)
class LocalCaller:
    """Calls operations for one user: `reply = await call("memory.recall", query="…")`."""

    runtime: Runtime
    principal: Principal

    async def __call__(self, name: str, **arguments: Any) -> Any:
        """Execute an operation and return its result; arguments that are None get their defaults.

        A long-running operation is awaited until it ends, and its result is not stored.

        Raises:
            InputError: an argument is not valid.
            MindstreamError: see the operation.
        """
        from pydantic import ValidationError

        from mindstream.service.operations.long_running import RunningOperation
        from mindstream.service.operations.operation import find_operation

        operation, principal, clock = find_operation(name), self.principal, self.runtime.clock
        try:
            request = operation.request.model_validate({k: v for k, v in arguments.items() if v is not None})
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"])).replace("_", "-")
            raise InputError(f"{where}: {first['msg'].removeprefix('Value error, ')}") from None
        if not operation.long:
            return await operation.call(self.runtime, principal, request)
        one = RunningOperation(
            token(20), name, principal.tenant_key, principal.user, clock.now(), clock, lambda _: None
        )
        return await operation.run(self.runtime, principal, request, one)

    async def memory(self) -> Memory:
        """Return the user's memory."""
        return await self.runtime.memory(self.principal)

    def models(self, on_call: Callable[[Metered], None]) -> Models:
        """Return the models of the settings; `on_call` is called after each model call."""
        return self.runtime.models_of(self.principal, on_call)

    def pool(self, name: str) -> AbstractAsyncContextManager[Pool]:
        """Return a context in which a pool is open."""
        from mindstream.service.operations.pools import open_pool

        return open_pool(self.runtime, self.principal, name)


@contextlib.asynccontextmanager
async def calling(
    settings: Settings,
    *,
    new: bool = False,
    own: bool = False,
    known: bool = False,
    all_users: bool = False,
    begins: str = "`mindstream chat` or `mindstream memory retain`",
    what: str = "memory",
) -> AsyncIterator[LocalCaller]:
    """Open the data of the settings for calls; a server can use the same data at the same time.

    Args:
        new: create the data folder if it does not exist; also implies `own`.
        own: refuse the data folder of a town, because the command writes data that must not be mixed with data of a
            town.
        known: refuse a user without any data.
        all_users: the calls are not about one user.
        begins, what: for the error message if there are no data: the command that creates the data, and a word for the
            data.

    Raises:
        InputError: there are no data, they belong to a town, or the user's name is not valid or not known.
        StorageError: the data cannot be read.
    """
    from mindstream.log.audit import machine_user
    from mindstream.memory.opening import finish_erasures, is_begun
    from mindstream.service.folders import refuse_town
    from mindstream.service.operations.operation import COMMAND, LOCAL, Principal
    from mindstream.service.operations.runtime import Runtime

    principal = Principal(LOCAL, frozenset({"admin"}), key=machine_user(), door=COMMAND).of(settings.user)
    if not new and not is_begun(settings.data):
        raise InputError(
            f"there is no {what} in {settings.data} yet; create it with {begins}, or choose another folder with --data"
        )
    await asyncio.to_thread(finish_erasures, settings.data, principal.name.key)
    async with Runtime.open_reader(settings, at_once=8) as runtime:
        store = runtime.server_store()
        if new or own:
            await refuse_town(store, settings.data)
        if known:
            await require_known(await runtime.memory(principal))
        yield LocalCaller(runtime, replace(principal, user="") if all_users else principal)


@contextlib.asynccontextmanager
async def open_user_memory(settings: Settings, **options: Any) -> AsyncIterator[Memory]:
    """Open a user's memory, without a reranker. The options and exceptions are those of `calling`."""
    async with calling(settings, **options) as call:
        memory = await call.memory()
        memory.second = None
        yield memory


async def require_known(memory: Memory) -> None:
    """Raise InputError if the log contains no row of the memory's user."""
    if not await memory.store.events(memory.key, limit=1):
        raise InputError(unknown_user(memory.name))


def unknown_user(user: str) -> str:
    """Return the message that a user is unknown. It names no other users, because a folder may be shared."""
    return f"there is no user {user!r} here: choose another user with --user, or another folder with --data"
