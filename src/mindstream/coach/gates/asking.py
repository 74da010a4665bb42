"""A gate that lets a small model say yes or no, where one is configured (the role `gate`)."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from mindstream.coach.gates.gate import Decision, Gate, Situation
from mindstream.coach.gates.needs_reasoner import build_question
from mindstream.coach.packs.pack import Pack
from mindstream.coach.packs.reading import read_utterance
from mindstream.coach.step_question import plan_answers
from mindstream.errors import ModelError
from mindstream.models.ask import ask
from mindstream.models.model import Model

PATIENCE_S = 1.0
"""How long the model may take; after that the rule's word stands."""


class AskingGate:
    """Wraps a gate: what it decides at once stays, but whether to wait is asked of a model, small talk aside."""

    def __init__(self, inner: Gate, pack: Pack, model: Model, patience_s: float = PATIENCE_S) -> None:
        self.name = f"{inner.name}+{model.name}"
        self._inner, self._pack, self._model, self._patience_s = inner, pack, model, patience_s

    def decide(self, situation: Situation) -> Decision:
        return self._inner.decide(situation)

    async def weigh(self, situation: Situation) -> Decision:
        first = await self._inner.weigh(situation)
        if not first.thinks or plan_answers(self._pack, situation.told, read_utterance(self._pack, situation.text)):
            return first
        try:
            async with asyncio.timeout(self._patience_s):
                found = await ask(self._model, build_question(self._pack, situation))
        except (ModelError, TimeoutError) as error:
            return replace(first, why=f"{first.why} (the model did not answer: {type(error).__name__})")
        return Decision(found.waits, why=f"{self._model.name} says so", probability=float(found.waits))
