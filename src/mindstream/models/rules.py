"""The model `rules`: it answers prompts with functions if no model is configured, offline and in microseconds."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Callable
from inspect import signature
from typing import Any, TypeVar

from pydantic import BaseModel

from mindstream.errors import ModelRefused
from mindstream.models.model import Call, Distribution, Part, Piece, Request, Usage
from mindstream.models.prompt import RULES, Prompt

R = TypeVar("R")


class Rules:
    """Answers every prompt with its registered rule."""

    name = "rules"

    def answer(self, prompt: Prompt[R]) -> R:
        """Return a prompt's answer as an object, without serialising it; for callers that ask thousands of times.

        Raises:
            ModelRefused: the prompt has no rule.
        """
        return self._rule(prompt)(prompt)  # type: ignore[no-any-return]

    def _rule(self, prompt: Prompt[Any]) -> Callable[..., Any]:
        rule = RULES.get(type(prompt))
        if rule is None:
            raise ModelRefused(f"the prompt {prompt.label()!r} has no rule: configure a model for it")
        return rule

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        answer = self._rule(request.prompt)
        if request.options:
            yield Distribution(tuple((option, float(p)) for option, p in answer(request.prompt).items()))
            yield Usage(0, 0, 0.0)
            return
        acts = len(signature(answer).parameters) > 1
        said: Any = answer(request.prompt, request.turns) if acts else answer(request.prompt)
        if isinstance(said, list) and all(isinstance(call, Call) for call in said):
            for call in said:
                yield call
        elif isinstance(said, str):
            for word in re.findall(r"\S+\s*|\s+", said):
                yield Piece(word)
        else:
            yield Piece(said.model_dump_json() if isinstance(said, BaseModel) else json.dumps(said))
        yield Usage(0, 0, 0.0)
