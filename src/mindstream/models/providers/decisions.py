"""The adapter of decision endpoints, which return the probability of each permitted answer, and no text.

There are two protocols: OpenAI's `/decisions` (as in its client of 2026-10), and TypeSafe's `/systemone`, with which
llama.cpp serves decision models.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager
from typing import Any

from mindstream.errors import ModelRefused
from mindstream.models.decide import YES_NO, Question, Score
from mindstream.models.model import Distribution, Request, Usage
from mindstream.models.providers.adapter import Arrival, Arrivals, Withheld, gathered, price
from mindstream.models.providers.address import Address
from mindstream.models.providers.failures import failures
from mindstream.models.providers.openai_chat import read_count
from mindstream.models.providers.wire import ERROR_READERS, Client

MAX_BYTES = 1_000_000
"""Maximum size of a response, in bytes."""
QUESTION = "question"


class Decisions:
    """The adapter of an endpoint that returns the probability of each permitted answer of a question."""

    def __init__(self, at: Address) -> None:
        self._at, self._client = at, Client(at, MAX_BYTES)

    def stream(self, request: Request) -> AbstractAsyncContextManager[Arrivals]:
        return gathered(self._ask(request))

    async def _ask(self, request: Request) -> AsyncGenerator[Arrival]:
        question, at = request.prompt, self._at
        if not isinstance(question, Question) or not request.options:
            raise ModelRefused(
                f"{at.name} only chooses among answers and writes no text: the prompt {question.label()!r} needs"
                " another model"
            )
        openai = at.vendor == "decisions"
        body = {"model": at.model, **_body(question, request, openai)}
        with failures(at, ERROR_READERS):
            answer = await self._client.ask("POST", "/decisions" if openai else "/systemone", body)
            found = answer["answers"][0 if openai else QUESTION]
            if found["type"] == "refusal":
                yield Withheld("the endpoint declines to decide this question")
                return
            yield Distribution(tuple(_weights(question, found)))
            if used := answer.get("usage"):
                asked, answered = read_count(used.get("input_tokens")), read_count(used.get("output_tokens"))
                cached = min(asked, read_count((used.get("input_tokens_details") or {}).get("cached_tokens")))
                model = str(answer.get("model") or at.model)
                yield Usage(asked, answered, price(model, at, asked, answered, cached), cached)

    async def aclose(self) -> None:
        await self._client.aclose()


def _body(question: Question, request: Request, openai: bool) -> dict[str, Any]:
    instructions, text = question.asked(request.words)
    asked: dict[str, Any] = {"instructions": instructions}
    answers = question.answers()
    if answers == YES_NO:
        asked["type"] = "predicate" if openai else "noul"
    elif isinstance(question, Score):
        levels = {"levels": [{"label": level} for level in answers]} if openai else {"criteria": list(answers)}
        asked |= {"type": "score", **levels}
    else:
        choices = [{"value": answer} for answer in answers]
        asked |= {"type": "choice", **({"choices": choices} if openai else {"criteria": dict.fromkeys(answers)})}
    return {"input": text, "questions": [asked]} if openai else {"state": text, "questions": {QUESTION: asked}}


def _weights(question: Question, found: Any) -> list[tuple[str, float]]:
    """Return each possible answer with its probability, from a response (`found`) in either protocol."""
    kind, answers = found["type"], question.answers()
    if kind in ("predicate", "noul"):
        yes = float(found["probability" if kind == "predicate" else "noul"])
        return [("yes", yes), ("no", 1.0 - yes)]
    given = found["probabilities"]
    if isinstance(given, list):  # OpenAI's protocol: one entry per answer
        given = {each["value"]: each["probability"] for each in given}
    by_key: dict[Any, float] = {int(key) if kind == "score" else str(key): float(p) for key, p in given.items()}
    keys = range(len(answers)) if kind == "score" else answers
    return [(answer, by_key.get(key, 0.0)) for answer, key in zip(answers, keys, strict=True)]
