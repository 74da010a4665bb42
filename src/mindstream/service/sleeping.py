"""Let a memory sleep from outside a conversation, with the models of the settings: at once, as proposed, or undone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import TypeVar

from pydantic import ValidationError

from mindstream.errors import InputError
from mindstream.log.events import Logged, Slept
from mindstream.memory.proposal import Proposal
from mindstream.memory.record import Record
from mindstream.memory.undo_sleep import UndoneSleep
from mindstream.minds.calls import CallLog
from mindstream.models.roles import Models
from mindstream.service.memory import Memory
from mindstream.service.opening import answering
from mindstream.settings import Settings

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Review:
    """What a sleep would do, and the records that it names, by id."""

    proposal: Proposal
    records: dict[str, Record]


async def sleep(memory: Memory, settings: Settings, n: int, told: Callable[[Slept], None]) -> str:
    """Sleep once, drawing n records; `told` gets each step as it is done. Return the dream, or "".

    Raises:
        InputError: nothing is remembered of that user.
        UserError, StorageError: a model that cannot be used; a folder that cannot be written.
    """
    stream = (await memory.require_known()).stream

    def run(models: Models) -> Awaitable[str]:
        return stream.sleep(models.of("M1", "reasoner"), n, rater=models.of("importance", "reasoner"))

    return await _run(memory, settings, run, told)


async def review(memory: Memory, settings: Settings, n: int) -> Review:
    """Return what a sleep would do; only the calls of models are written down. Raises as `sleep`."""
    stream = (await memory.require_known()).stream
    proposal = await _run(memory, settings, lambda models: stream.propose_sleep(models.of("M1", "reasoner"), n))
    return Review(proposal, {each.id: each for each in await stream.store.records(stream.name, proposal.ids)})


async def accept(
    memory: Memory, settings: Settings, proposal: Proposal, without: Collection[str], told: Callable[[Slept], None]
) -> str:
    """Sleep as proposed, but for these ids; return the dream, or "". Raises as `sleep`."""
    stream = (await memory.require_known()).stream

    def run(models: Models) -> Awaitable[str]:
        model, rater = models.of("M1", "reasoner"), models.of("importance", "reasoner")
        return stream.accept(proposal, without, model=model, rater=rater)

    return await _run(memory, settings, run, told)


async def undo(memory: Memory, begun: int) -> UndoneSleep:
    """Undo a sleep, by its first row of the log (0: the last one). Raises as `sleep`."""
    return await (await memory.require_known()).stream.undo_sleep(begun)


def read_proposal(text: str) -> Proposal:
    """Read what `memory sleep --review --json` printed.

    Raises:
        InputError: it is something else.
    """
    try:
        return Proposal.model_validate_json(text)
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"])) or "the text"
        raise InputError(f"is not what `memory sleep --review --json` printed: {where} is wrong") from None


async def _run(
    memory: Memory,
    settings: Settings,
    run: Callable[[Models], Awaitable[Result]],
    told: Callable[[Slept], None] = lambda _: None,
) -> Result:
    stream, calls = memory.stream, CallLog()
    async with answering(settings, calls.take) as models:
        with stream.feed.listening() as events:
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(_tell(events, told))
                    result = await run(models)
                    stream.feed.close()
            finally:
                await calls.flush(stream)
    return result


async def _tell(events: AsyncIterator[Logged], told: Callable[[Slept], None]) -> None:
    async for logged in events:
        if isinstance(logged.event, Slept):
            told(logged.event)
