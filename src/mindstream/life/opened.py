"""Hold a life for this process, and log the models and the command with which the life is continued, if they change."""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import AsyncIterator, Sequence

from mindstream.clock import Moment
from mindstream.errors import InputError
from mindstream.life.events import SLOT, LifeBegan, LifeOpened, Replied, TaskChanged
from mindstream.memory import lease
from mindstream.memory.memory import Memory
from mindstream.memory.store.store import Entry, Fence
from mindstream.models.providers.address import mask
from mindstream.models.roles import Models
from mindstream.models.rules import Rules

ROLES = ("M2", "M1", "M0")


async def read_opened(memory: Memory) -> LifeOpened:
    """Return the models and command with which a life was last run.

    Older logs have no such row; then the model of the last reply is returned.
    """
    last = await memory.store.last(memory.key, LifeOpened.kind)
    if last is not None and isinstance(last.event, LifeOpened):
        return last.event
    replied = await memory.store.last(memory.key, Replied.kind)
    if replied is None or not isinstance(replied.event, Replied) or replied.event.model in ("", Rules.name):
        return LifeOpened()
    return LifeOpened(models={replied.event.role: without_credentials(replied.event.model)})


async def require_models(memory: Memory, models: Models) -> None:
    """Refuse to continue a life without a language model if it had one.

    Raises:
        InputError: the life had a language model, and now only rules are configured.
    """
    before = await read_opened(memory)
    if before.models and models.only_rules:
        names = ", ".join(dict.fromkeys(before.models.values()))
        again = f"; it was started with:\n  {before.command}" if before.command else ""
        raise InputError(
            f"this life was run with {names}, but no model is configured now; name one (--model NAME; in Python"
            f" model=), or continue with rules instead (--without-model; without_model=True){again}"
        )


async def write_opened(memory: Memory, models: Models, command: str, fence: Fence) -> None:
    """Log the models of a life and the command that continues it, if they have changed.

    Args:
        command: the command line; "": the one that was logged last.
    """
    before = await read_opened(memory)
    names = {role: without_credentials(models.of(role).name) for role in ROLES}
    named = {} if models.only_rules else names
    now = LifeOpened(models=named, command=command or before.command)
    if now != before:
        await memory.commit(Entry(now, SLOT), fence=fence)


def command_of(words: Sequence[str]) -> str:
    """Return a command line for the log: quoted for a shell, with addresses without credentials."""
    return shlex.join(map(without_credentials, words))


MODEL_NAME = re.compile(r"[\w./:%+-]{1,100}")


def without_credentials(name: str) -> str:
    """Return a word of a command; from an address (URL), user, password and query are removed.

    In the query, Azure's `api-version` stays. The fragment stays if it names a model, as in `http://host:port/v1#NAME`.
    """
    head, scheme, rest = name.partition("://")
    if not scheme:
        return name
    rest, _, fragment = rest.partition("#")
    rest, _, query = rest.partition("?")
    host, slash, path = rest.partition("/")
    version = "".join(f"?{each}" for each in query.split("&") if each.startswith("api-version="))
    model = f"#{mask(fragment)}" if head in ("http", "https") and MODEL_NAME.fullmatch(fragment) else ""
    return f"{head}://{host.rpartition('@')[2]}{slash}{path}{version}{model}"


LIVING = "living this life (which can be watched, answered, paused and stopped)"


async def begin(stream: Memory, event: LifeBegan, *tasks: TaskChanged) -> None:
    """Log a goal and tasks. The process that runs the life, or the next process that opens it, uses them."""
    await stream.commit(*(Entry(each, stream.name) for each in (event, *tasks)), wake=lease.for_anybody(SLOT))


async def find_lease(stream: Memory) -> Moment | None:
    """Return when the lease on this mind's life expires if it is not renewed; None: no process holds the life."""
    return await lease.find_lease(stream, SLOT)


async def is_lived(stream: Memory) -> bool:
    """Return whether a process holds this mind's life; also true for a dead process until its lease expires."""
    return await find_lease(stream) is not None


@contextlib.asynccontextmanager
async def hold(stream: Memory, lease_s: float) -> AsyncIterator[Fence]:
    """Hold a life while the block runs.

    Raises:
        HeldElsewhere: another process holds the life.
        InputError: this mind has no goal.
    """
    if not await lease.is_open(stream, SLOT):
        raise InputError("this mind has no goal yet; give it one with --goal (in Python: goal=)")
    async with lease.hold(stream, SLOT, LIVING, lease_s) as fence:
        yield fence
