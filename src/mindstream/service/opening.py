"""Open models according to the settings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mindstream.engines import Engine
from mindstream.errors import SettingsError
from mindstream.models.providers.adapter import has_price
from mindstream.models.roles import Models
from mindstream.models.rules import Rules
from mindstream.models.wrappers.meter import Budget, Metered
from mindstream.private_files import append_private
from mindstream.settings import Settings


def budget_of(settings: Settings) -> Budget:
    """Return the budget for models that the settings define."""
    return Budget(settings.budget_calls, settings.budget_tokens, settings.budget_usd)


def unpriced(settings: Settings) -> str:
    """Return why a limit in US dollars cannot be enforced; "" if it can.

    It cannot be enforced if the price of a model is not known.
    """
    named = {*settings.models.values(), settings.fallback} - {Rules.name, ""}
    names = ", ".join(name for name in sorted(named) if not has_price(name))
    why = f"a limit in US dollars cannot be enforced for {names}, because no price is known"
    return f"{why}; use a limit in tokens instead, such as --max-tokens" if names else ""


def answering(
    settings: Settings,
    on_call: Callable[[Metered], None] | None = None,
    record: Path | None = None,
    budget: Budget | None = None,
    at_once: int = 8,
    engine: Engine | None = None,
) -> Models:
    """Return the models that the settings name.

    Args:
        on_call: called after each model call.
        record: a file to which every model call is written; None: no file is written.
        budget: their budget; None: the budget in the settings.
        at_once: maximum number of simultaneous calls of each model.
        engine: makes the calls in its worker processes; None: this process makes them.

    Raises:
        SettingsError: a model, a recording or a folder of prompt texts is not valid.
    """
    if record is not None:
        try:
            with append_private(record):
                pass
        except OSError as error:
            raise SettingsError(f"the recording {record} cannot be written: {error.strerror}") from None
    if settings.prompts is not None and not settings.prompts.is_dir():
        raise SettingsError(f"the folder of your own prompt templates, {settings.prompts}, is not an existing folder")
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
