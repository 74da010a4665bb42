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

from mindstream.errors import InputError, ModelError, ModelRefused
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
            for piece in _words(said):
                yield piece
        else:
            yield Piece(said.model_dump_json() if isinstance(said, BaseModel) else json.dumps(said))
        yield Usage(0, 0, 0.0)


def _words(text: str) -> list[Piece]:
    """Return a text as pieces of one word each, as a language model streams it."""
    return [Piece(word) for word in re.findall(r"\S+\s*|\s+", text)]


Line: TypeAlias = (
    str
    | BaseModel
    | ModelError
    | Call
    | Sequence[Call]
    | Sequence[str]
    | Callable[[Request], "str | Call | Sequence[Call]"]
)
"""One scripted answer: a text, the pieces of a text, a typed reply, an error to raise, one call or several, or a
function of the request."""


TEXTS = "*"
"""Key of the answers for all prompts that expect a text."""


class FakeModel:
    """Gives scripted answers, so that programs and tests run without a key. `asked`: the requests so far.

        FakeModel(["Hello!", "Your cat is called Bach."])  # these texts, in this order
        FakeModel({"make_plan": ["#E1 = population[Lyon]"], "answer_from_evidence": ["Lyon."]})  # by prompt

        FakeModel([Call("weather", {"city": "Bern"}), "It rains."])  # first a tool call, then the answer

    A text is streamed word by word. A list of texts in place of one text is streamed in the given pieces.

    The answers of a list are for all prompts that expect a text. Typed prompts, such as `extract_facts`, then get an
    empty answer (`{}`). `mindstream prompts` lists the prompts. A prompt for which no scripted answer is left raises
    ModelRefused.
    """

    def __init__(self, lines: Mapping[str, Sequence[Line]] | Sequence[Line], name: str = "scripted") -> None:
        self.name = name
        self.asked: list[Request] = []
        if isinstance(lines, str) or not isinstance(lines, Mapping | Sequence):
            raise InputError(f'FakeModel expects a list of answers, or {{"prompt": [answers]}}, found {lines!r}')
        table = lines if isinstance(lines, Mapping) else {TEXTS: lines}
        for line in (each for answers in table.values() for each in answers):
            _checked_line(line)
        self._lines = {prompt: deque(answers) for prompt, answers in table.items()}

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        self.asked.append(request)
        label = request.prompt.label()
        lines = self._lines.get(TEXTS if TEXTS in self._lines and request.prompt.reply_type() is str else label)
        if not lines and TEXTS in self._lines and lines is None:
            yield Piece("{}")  # a typed reply without any values, such as no facts
            return
        if not lines:
            raise ModelRefused(f"no scripted answer is left for the prompt {label!r}")
        line = lines.popleft()
        if callable(line):
            line = _checked_line(line(request))
        if isinstance(line, ModelError):
            raise line
        if isinstance(line, BaseModel):
            yield Piece(line.model_dump_json())
        else:
            for part in _words(line) if isinstance(line, str) else [line] if isinstance(line, Call) else line:
                yield Piece(part) if isinstance(part, str) else part
        yield Usage(sum(estimate_tokens(m.text) for m in request.messages), 1)


def _checked_line(line: Any) -> Any:
    """Check that a model can answer with a line of a script, and return the line.

    Raises:
        InputError: it cannot.
    """
    if isinstance(line, str | BaseModel | ModelError | Call) or callable(line):
        return line
    kinds = {type(each) for each in line} if isinstance(line, Sequence) else set()
    if kinds in ({str}, {Call}, {str, Call}):
        return line
    raise InputError(
        f"FakeModel expects answers that are texts, Call(…), lists of these, typed replies, functions or errors,"
        f" found {line!r}"
    )
