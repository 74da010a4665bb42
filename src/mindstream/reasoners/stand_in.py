"""Rules in a reasoner's place: where its model cannot be had, what was said in plain words is believed all the same."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from mindstream.errors import ModelError, ModelResting, SettingsError
from mindstream.models.model import Model
from mindstream.models.rules import Rules
from mindstream.reasoners.reasoner import Conclusion, Occasion

BY = "rules"
"""Signs what rules wrote in the place of a model."""


async def think_or_stand_in(
    model: Model, occasion: Occasion, think: Callable[[Model], Awaitable[Conclusion]]
) -> Conclusion:
    """Think with the model; where it fails, or its words cannot be read, by rule, marked as such.

    Rules believe only what was said in plain words; what they write in a model's place is signed `BY`.

    Raises:
        ModelError, SettingsError: rules are all there is, and they cannot answer.
    """
    try:
        return await think(model)
    except (ModelError, SettingsError) as error:
        if model.name == Rules.name:
            raise
        failure = error
    if not isinstance(failure, ModelResting):  # that it is down was said when it was found out
        await occasion.log_failure(failure)
    conclusion = await think(Rules())
    return replace(conclusion, thought=f"by rule, since {model.name} gave no answer: {conclusion.thought}")
