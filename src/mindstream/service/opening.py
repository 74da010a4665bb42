"""Open a mind as the settings say."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from mindstream.errors import SettingsError, StorageError
from mindstream.log.events import ModelCalled
from mindstream.memory.store import Entry
from mindstream.minds.mind import Mind, Patience
from mindstream.models.roles import Models
from mindstream.models.wrappers.budget import Budget
from mindstream.models.wrappers.meter import Metered
from mindstream.service.pace import Pace
from mindstream.settings import Settings

Calls = asyncio.Queue[Metered]


@contextlib.asynccontextmanager
async def opened(
    settings: Settings, *, session: str | None = None, record: Path | None = None, pace: Pace | None = None
) -> AsyncIterator[Mind]:
    """Open the mind that the settings describe and let its reasoners work until the block ends.

    Args:
        record: a file that gets every call of a model, to be played back as `playback:FILE`.
        pace: slows the rules down so that a person can follow them.

    Raises:
        UserError: a name, a pack, a folder that cannot be used.
        StorageError: the data folder cannot be used.
    """
    calls: Calls = asyncio.Queue()
    async with _models(settings, calls, record) as models, Mind.open(
        private(settings.data), pack=settings.pack, user=settings.user, session=session,
        models=pace.slowed(models) if pace else models, gate_=settings.gate, embed=settings.embedder,
        patience=Patience(deadline_s=settings.deadline_s),
    ) as mind:  # fmt: skip
        logging = asyncio.create_task(_log_calls(mind, calls))
        try:
            yield mind
        finally:
            logging.cancel()
            await asyncio.gather(logging, return_exceptions=True)
            await _log(mind, calls)


def private(folder: Path) -> Path:
    """Make a data folder that only its owner can read; one that is there stays as it is.

    Raises:
        StorageError: it cannot be made.
    """
    try:
        if not folder.exists():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"the data folder {folder} cannot be made: {error.strerror}; choose another with --data"
        ) from None
    if not folder.is_dir():
        raise StorageError(f"the data folder {folder} is not a folder; choose another with --data")
    return folder


def _models(settings: Settings, calls: Calls, record: Path | None) -> Models:
    if record is not None:
        try:
            with record.open("a"):
                pass
        except OSError as error:
            raise SettingsError(f"the recording {record} cannot be written: {error.strerror}") from None
    if settings.prompts is not None and not settings.prompts.is_dir():
        raise SettingsError(f"the folder of your own words, {settings.prompts}, is not there")
    budget = None
    if settings.budget_tokens or settings.budget_usd:
        budget = Budget(tokens=settings.budget_tokens, cost_usd=settings.budget_usd)
    return Models.named(
        settings.models, on_call=calls.put_nowait, budget=budget, record=record, words_dir=settings.prompts
    )


async def _log_calls(mind: Mind, calls: Calls) -> None:
    while True:
        first = await calls.get()
        calls.put_nowait(first)
        await _log(mind, calls)


async def _log(mind: Mind, calls: Calls) -> None:
    entries = []
    while not calls.empty():
        entries.append(Entry(_called(calls.get_nowait()), "mindstream"))
    if entries:
        with contextlib.suppress(StorageError):
            await mind.stream.commit(*entries)


def _called(call: Metered) -> ModelCalled:
    usage = call.usage
    return ModelCalled(
        role=call.role, prompt=call.prompt, model=call.model, seconds=call.seconds, first_part_s=call.first_s,
        input_tokens=usage.input_tokens if usage else 0, output_tokens=usage.output_tokens if usage else 0,
        cost_usd=usage.cost_usd if usage else None, error=call.error or ("broken off" if call.broken_off else ""),
    )  # fmt: skip
