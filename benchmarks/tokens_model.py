"""Let a real model answer the recorded questions with both strategies, from the recorded observations alone."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tokens_data import Question
from tokens_play import LOOKUP, SEARCH, WIKIPEDIA

from mindstream.errors import InputError
from mindstream.models.model import Call, ToolSpec
from mindstream.models.providers.adapter import price
from mindstream.models.providers.address import address
from mindstream.models.roles import Models
from mindstream.planning.planner import Planner, Strategy
from mindstream.text.words import terms
from mindstream.tools.named import model_tool
from mindstream.tools.tool import Tool


@dataclass(frozen=True)
class Library:
    """A tool that returns the recorded observation that shares most words with the query."""

    spec: ToolSpec
    texts: Sequence[str]

    async def __call__(self, call: Call) -> str:
        asked = set(terms(" ".join(map(str, json.loads(call.arguments).values()))))
        best = max(self.texts, key=lambda text: len(asked & set(terms(text))))
        return best if asked & set(terms(best)) else "nothing was found"


async def answer_by(name: str, questions: Sequence[Question], tokens: tuple[int, int], spend: bool) -> dict[str, Any]:
    """Answer all questions; print the estimated cost first, and call the model only if spending is allowed.

    Raises: InputError: spending is not allowed.
    """
    at = address(name)
    dollars = price(at.model, at, *tokens)
    about = "a price that is not known" if dollars is None else f"about {dollars:.3f} US dollars"
    print(f"{name}: {tokens[0]} tokens to read, {tokens[1]} to write, {about}", file=sys.stderr, flush=True)
    if not spend:
        raise InputError("nothing was spent; give --yes to have the questions answered")
    rows: list[dict[str, Any]] = []
    async with Models.named({"default": name}) as models:
        for question in questions:
            for how in ("react", "rewoo"):
                rows.append(await _answer(how, question, questions, models))
    ways = ("react", "rewoo")
    return {
        "name": name, "told_usd": dollars, "answers": rows,
        **{f"{score}_{how}": sum(row[score] for row in rows if row["how"] == how) / len(questions)
           for score in ("exact", "f1", "tokens") for how in ways},
    }  # fmt: skip


async def _answer(how: Strategy, question: Question, questions: Sequence[Question], models: Models) -> dict[str, Any]:
    texts = [each.seen for one in questions for each in one.rounds if each.seen]
    exemplars = [each.plan if how == "rewoo" else each.react for each in questions if each is not question]
    tools: list[Tool] = [Library(SEARCH, texts), Library(LOOKUP, texts)]
    if how == "rewoo":
        tools = [Library(WIKIPEDIA, texts), model_tool(models.of("worker"))]
    found = await Planner(model=models, tools=tools, how=how, exemplars=exemplars).solve(question.task)
    return {
        "task": question.task, "how": how, "answer": found.answer, "wanted": question.answer, "stopped": found.stopped,
        "exact": float(_words(found.answer) == _words(question.answer)), "f1": _f1(found.answer, question.answer),
        "tokens": found.spent.tokens, "usd": found.spent.cost_usd, "seconds": found.spent.seconds,
    }  # fmt: skip


def _words(text: str) -> list[str]:
    return [word for word in re.findall(r"\w+", text.casefold()) if word not in ("a", "an", "the")]


def _f1(answer: str, wanted: str) -> float:
    """Return the harmonic mean of precision and recall of the words."""
    given, right = Counter(_words(answer)), Counter(_words(wanted))
    shared = (given & right).total()
    return 2 * shared / (given.total() + right.total()) if shared else 0.0
