"""Rules: who answers when no model is configured. Offline, in microseconds, and saying so."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator
from inspect import signature
from typing import Any

from pydantic import BaseModel

from mindstream.errors import ModelRefused
from mindstream.models.model import Call, Distribution, Part, Piece, Request, Usage
from mindstream.models.prompt import RULES


class Rules:
    """Answers every prompt with the rule that stands beside it."""

    name = "rules"

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        answer = RULES.get(type(request.prompt))
        if answer is None:
            raise ModelRefused(f"no rule answers the prompt {request.prompt.label()!r}: configure a model for it")
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
