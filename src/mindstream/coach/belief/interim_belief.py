"""Beliefs between tool calls (Christakopoulou 2024, 3.2.2: c = (t1, a1, o1, b1, …, tn, an, on, bn)).

After an observation the Reasoner may note a belief, on which its next call is based. Such beliefs are logged, and
composed into the next belief when the run concludes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, overload

from pydantic import JsonValue

from mindstream.coach.belief.think import LONGEST_PATCH, Think, compose_patches, ground_patch
from mindstream.coach.events import Believed
from mindstream.errors import InputError, ToolError
from mindstream.memory.belief import Belief, merged
from mindstream.memory.store.store import Entry
from mindstream.reasoners.reasoner import RunContext
from mindstream.text.classifier import Support, complaint
from mindstream.tools.tool import Tool, tool

MOST = 12
"""Maximum number of interim beliefs in a run."""


class InterimBelief:
    """The interim beliefs of a run, in addition to the belief at its beginning.

    Attributes:
        patches: the interim beliefs, in order.
    """

    def __init__(self, context: RunContext, belief: Belief[Any], question: Think) -> None:
        self.patches: list[dict[str, JsonValue]] = []
        self._occasion, self._belief, self._question = context, belief, question

    def compose(self, *more: dict[str, JsonValue]) -> dict[str, JsonValue]:
        """Return the interim beliefs and further patches as one patch."""
        return compose_patches([*self.patches, *more])

    def tool(self) -> Tool:
        """Return the tool that notes a belief between two calls."""

        async def believe(patch: dict[str, JsonValue], rests_on: str = "") -> str:
            """Write down what a tool's result makes you believe, before a call that rests on it."""
            return await self._believe(patch, rests_on)

        return replace(tool(believe), in_run=True)

    async def _believe(self, patch: dict[str, JsonValue], rests_on: str) -> str:
        if len(self.patches) >= MOST:
            raise ToolError(f"At most {MOST} beliefs between calls. Conclude now.")
        if len(json.dumps(patch, ensure_ascii=False)) > LONGEST_PATCH:
            raise ToolError(f"The patch has more than {LONGEST_PATCH:,} characters. Only what changes, in short.")
        newer = (utterance.text for utterance in self._occasion.utterances)
        support = Support([*self._question.stated(), *newer, *self._occasion.found])
        if unsupported := ground_patch(patch, rests_on, support)[1]:
            raise ToolError(f"{complaint(unsupported)} Nothing was written down.")
        try:
            value, _ = merged(self._belief, compose_patches([*self.patches, patch]))
        except InputError as error:
            raise ToolError(f"The patch does not fit: {error}") from None
        self.patches.append({name: held for name, held in patch.items() if name != "phase"})
        context = self._occasion
        await context.memory.commit(Entry(Believed(slot=context.slot, patch=self.patches[-1]), context.slot))
        held = value.model_dump(mode="json", exclude_defaults=True)
        held.pop("phase", None)
        return f"Believed now, in place of what stands above: {json.dumps(held, ensure_ascii=False)}"


class WithBelief(Sequence[Tool]):
    """Tools; after the first result, also the tool that notes a belief."""

    def __init__(self, tools: Sequence[Tool], believing: InterimBelief, context: RunContext) -> None:
        self._tools, self._believe, self._context = tools, believing.tool(), context

    def _offered(self) -> list[Tool]:
        return [*self._tools, self._believe] if self._context.found else list(self._tools)

    @overload
    def __getitem__(self, at: int) -> Tool: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Tool]: ...
    def __getitem__(self, at: int | slice) -> Tool | Sequence[Tool]:
        return self._offered()[at]

    def __len__(self) -> int:
        return len(self._offered())
