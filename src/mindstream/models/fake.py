"""A model with scripted answers, for tests and demonstrations."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import TypeAlias

from pydantic import BaseModel

from mindstream.errors import ModelError, ModelRefused
from mindstream.models.model import Call, Part, Piece, Request, Usage, estimate_tokens

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
