"""Decision endpoints: they answer typed questions with probabilities, and nothing else.

Two protocols: OpenAI's `/decisions` (as in its client of 2026-10), and `/systemone` (TypeSafe's; llama.cpp serves
decision models with it).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager
from typing import Any

from mindstream.errors import ModelRefused
from mindstream.models.decide import Question
from mindstream.models.model import Distribution, Request, Usage
from mindstream.models.providers.adapter import Arrival, Arrivals, Withheld
from mindstream.models.providers.address import Address
from mindstream.models.providers.failures import failures
from mindstream.models.providers.gathered import gathered
from mindstream.models.providers.openai_chat import read_count
from mindstream.models.providers.prices import price
from mindstream.models.providers.wire import TOLD, Client
from mindstream.models.questions import YES_NO, Score

WHOLE_BYTES = 1_000_000
QUESTION = "question"


class Decisions:
    """An endpoint that takes a typed question and says how probable each answer is."""

    def __init__(self, at: Address) -> None:
        self._at = at
        self._client = Client(at, WHOLE_BYTES)

    def stream(self, request: Request) -> AbstractAsyncContextManager[Arrivals]:
        return gathered(self._ask(request))

    async def _ask(self, request: Request) -> AsyncGenerator[Arrival]:
        question = request.prompt
        if not isinstance(question, Question) or not request.options:
            raise ModelRefused(f"{self._at.name} decides, and does not write: {question.label()!r} needs another model")
        openai = self._at.vendor == "decisions"
        body = _body(question, request, openai)
        with failures(self._at, TOLD):
            path = "/decisions" if openai else "/systemone"
            answer: Any = await self._client.ask("POST", path, {"model": self._at.model, **body})
            found = answer["answers"][0 if openai else QUESTION]
            if found["type"] == "refusal":
                yield Withheld("it declines to decide this")
                return
            yield Distribution(tuple(_weights(question, found)))
            if used := answer.get("usage"):
                yield self._usage(used, str(answer.get("model") or self._at.model))

    async def aclose(self) -> None:
        await self._client.aclose()

    def _usage(self, used: Any, model: str) -> Usage:
        asked, answered = read_count(used.get("input_tokens")), read_count(used.get("output_tokens"))
        cached = min(asked, read_count((used.get("input_tokens_details") or {}).get("cached_tokens")))
        return Usage(asked, answered, price(model, self._at, asked, answered, cached), cached)


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
    """Read the probabilities of an answer in either protocol."""
    answers = question.answers()
    if found["type"] in ("predicate", "noul"):
        yes = float(found["probability" if found["type"] == "predicate" else "noul"])
        return [("yes", yes), ("no", 1.0 - yes)]
    given = found["probabilities"]
    if isinstance(given, list):  # OpenAI's: one entry an answer
        by_place = {int(each["value"]): float(each["probability"]) for each in given if found["type"] == "score"}
        by_name = {str(each["value"]): float(each["probability"]) for each in given}
    else:
        by_place = {int(place): float(p) for place, p in given.items() if found["type"] == "score"}
        by_name = {str(name): float(p) for name, p in given.items()}
    if found["type"] == "score":
        return [(answer, by_place.get(place, 0.0)) for place, answer in enumerate(answers)]
    return [(answer, by_name.get(answer, 0.0)) for answer in answers]
