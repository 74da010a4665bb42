"""A town whose residents reflect: one model draws insights, and stand-ins answer the rest."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from mindstream.models.model import Part, Piece, Request
from mindstream.models.roles import Models
from mindstream.models.rules import Rules
from mindstream.reasoners.reflect.insights import Found, Insight, Insights
from mindstream.reasoners.reflect.salient_questions import Questions, SalientQuestions


class Reflects:
    """Says of everybody that they matter, and that the day was long."""

    name = "reflects"

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        prompt = request.prompt
        if isinstance(prompt, SalientQuestions):
            yield Piece(Questions(questions=[f"What moves {prompt.who}?"]).model_dump_json())
        elif isinstance(prompt, Insights):
            texts = (f"{prompt.who} is at home here.", f"The day was long: {prompt.memories[-1][:40]}")
            found = Found(insights=[Insight(text=text, because=[len(prompt.memories)]) for text in texts])
            yield Piece(found.model_dump_json())
        else:
            async for part in Rules().reply(request):
                yield part


def reflecting() -> Models:
    """Return the models of a town whose residents reflect."""
    return Models(Rules(), {"reasoner": Reflects()})
