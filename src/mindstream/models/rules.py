"""Models without a language model: `Rules` answers prompts with functions, offline and in microseconds.

`FakeModel` gives scripted answers, for tests and demonstrations.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from inspect import signature
from typing import Any, TypeAlias, TypeVar

from pydantic import BaseModel

from mindstream.errors import ModelError, ModelRefused
from mindstream.models.model import Call, Distribution, Part, Piece, Request, Usage, estimate_tokens
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


Line: TypeAlias = str | BaseModel | ModelError | Sequence[Call] | Callable[[Request], "str | Sequence[Call]"]
"""One scripted answer: text, a typed reply, an error to raise, calls, or a function of the request."""


class FakeModel:
    """Answers from lists, one list per prompt (`{"talk": [...]}`); `asked` records the requests."""

    def __init__(self, lines: Mapping[str, Sequence[Line]], name: str = "scripted") -> None:
        self.name = name
        self.asked: list[Request] = []
        self._lines = {prompt: deque(answers) for prompt, answers in lines.items()}

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        self.asked.append(request)
        if not (lines := self._lines.get(request.prompt.label())):
            raise ModelRefused(f"the script has no more lines for the prompt {request.prompt.label()!r}")
        line = lines.popleft()
        if callable(line):
            line = line(request)
        if isinstance(line, ModelError):
            raise line
        if isinstance(line, str | BaseModel):
            yield Piece(line if isinstance(line, str) else line.model_dump_json())
        else:
            for call in line:
                yield call
        yield Usage(sum(estimate_tokens(m.text) for m in request.messages), 1)
