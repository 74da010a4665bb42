"""Open a mind as the settings say."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

from mindstream.clock import MachineZone
from mindstream.coach.coach import Coach
from mindstream.engines.engine import Engine
from mindstream.errors import SettingsError
from mindstream.memory.recall.exemplars import Exemplars
from mindstream.minds.mind import Mind
from mindstream.minds.responder import Timeouts
from mindstream.models.providers.prices import has_price
from mindstream.models.roles import Models
from mindstream.models.rules import Rules
from mindstream.models.wrappers.budget import Budget
from mindstream.models.wrappers.meter import Metered
from mindstream.private_files import append_private
from mindstream.service.folders import refuse_town_in
from mindstream.service.memory import policy_given
from mindstream.settings import Settings
from mindstream.tools.tool import Tool


@contextlib.asynccontextmanager
async def open_mind(
    settings: Settings,
    *,
    session: str | None = None,
    record: Path | None = None,
    exemplars: Exemplars | None = None,
    follow_ups: bool = True,
    tools: Sequence[Tool] = (),
) -> AsyncIterator[Mind]:
    """Open the mind that the settings describe, with its reasoners running until the block ends.

    Args:
        record: a file to which every call of a model is written, for `playback:FILE`.
        exemplars: finds the exemplars that its talker is shown.
        follow_ups: allow unsolicited follow-ups (see coach.coach).
        tools: what its reasoners may call in addition to their own.

    Raises:
        UserError: a name, a pack or a folder cannot be used.
        StorageError: the data folder cannot be used.
    """
    await refuse_town_in(settings.data)
    async with (
        answering(settings, record=record) as models,
        Mind.open(
            settings.data,
            user=settings.user,
            session=session,
            models=models,
            responder=Coach.using(
                settings.pack, settings.gate, exemplars, follow_ups, settings.timezone or MachineZone()
            ),
            embed=settings.named_embedder,
            tools=tools,
            timeouts=Timeouts(deadline_s=settings.deadline_s),
            policy=policy_given(settings),
        ) as mind,
    ):
        yield mind


def budget_of(settings: Settings) -> Budget:
    """Return the budget for models of the settings."""
    return Budget(settings.budget_calls, settings.budget_tokens, settings.budget_usd)


def unpriced(settings: Settings) -> str:
    """Return why a limit in US dollars cannot be enforced (a model's price is not known); "" if it can."""
    named = {*settings.models.values(), settings.fallback} - {Rules.name, ""}
    names = ", ".join(name for name in sorted(named) if not has_price(name))
    return f"a limit in US dollars cannot bind: no price is known for {names}; --max-calls does" if names else ""


def answering(
    settings: Settings,
    on_call: Callable[[Metered], None] | None = None,
    record: Path | None = None,
    budget: Budget | None = None,
    at_once: int = 8,
    engine: Engine | None = None,
) -> Models:
    """Build the models that the settings name.

    Args:
        budget: their budget, in place of the settings' one.
        at_once: maximum number of calls of each model at the same time.
        engine: its workers make the calls.

    Raises:
        SettingsError: a model, a recording or a folder of prompt texts cannot be used.
    """
    if record is not None:
        try:
            with append_private(record):
                pass
        except OSError as error:
            raise SettingsError(f"the recording {record} cannot be written: {error.strerror}") from None
    if settings.prompts is not None and not settings.prompts.is_dir():
        raise SettingsError(f"the folder of your own prompt templates, {settings.prompts}, does not exist")
    return Models.named(
        settings.models,
        on_call=on_call,
        budget=budget or budget_of(settings),
        record=record,
        words_dir=settings.prompts,
        context=settings.context,
        patience_s=settings.patience_s,
        fallback=settings.fallback,
        at_once=at_once,
        keeps_words=settings.keep_prompts,
        engine=engine,
    )
