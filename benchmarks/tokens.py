"""Tokens and seconds: ReWOO against ReAct on the six recorded HotpotQA questions of ReWOO's authors (Xu 2023).

    python benchmarks/tokens.py --data FILE [--json] [--gguf-questions N] [--model NAME --yes]

FILE is the authors' exemplars, {name: text}. For each question a model that plays back the recorded words answers
through `solve`, by ReAct (native calls) and by ReWOO (planner, tools, the model as a tool, solver): with the other five
questions as exemplars, as the paper ran it, and without any. All that is sent and written is counted with wordllama's
tokenizer (that of Llama 2): messages, descriptions of tools and calls as JSON; nothing for the marks between messages,
of which ReAct has more. `ratio_mean` counts the model as a tool as the paper does, a quarter of its characters.

Controls: ReAct without its exemplars, and ReAct that makes all its calls in one reply: the ratio falls, for it comes
from the prefix that is sent again and again. `cost_ratio_cached_prefix`: what a request of a run shares with an earlier
one from its beginning costs a tenth, what is written five times as much as what is read.

`seconds_ratio`: the same runs on the small model in this process, held to the recorded words by a grammar.
With --model a real model answers, from the recorded observations alone; the price is told first, --yes spends it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import time
from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from os.path import commonprefix
from pathlib import Path
from typing import Any

from tokens_data import Question, planned_words, read_questions

from mindstream.models.embedders.wordllama import count_tokens
from mindstream.models.model import Call, Message, Model, Part, Piece, Request, ToolSpec, Usage
from mindstream.planning.act_on_task import ActOnTask
from mindstream.planning.answer_from_evidence import AnswerFromEvidence
from mindstream.planning.make_plan import MakePlan
from mindstream.planning.solve import How, solve
from mindstream.tools.ask_model import AskModel, model_tool
from mindstream.tools.tool import Tool

CACHED, WRITTEN = 0.1, 5.0
"""What a token read from a cache costs, and one that is written, where one that is read costs 1."""
AUTHORS = {"planner": 106, "solver": 68}
"""The authors' headers (billxbf/ReWOO at 9cd0283, prompts/), without tools and exemplars, by the same tokenizer."""
CONTROLS = ("react_without_exemplars", "react_all_calls_at_once")


def spec(name: str, argument: str, description: str) -> ToolSpec:
    """Describe a tool that takes one text."""
    schema = {"type": "object", "properties": {argument: {"type": "string"}}, "required": [argument]}
    return ToolSpec(name, description, schema)


SEARCH = spec("Search", "entity", "Search Wikipedia for an entity: its first paragraph, or names like it.")
LOOKUP = spec("Lookup", "keyword", "Find the next sentence with a keyword in the page that was found last.")
WIKIPEDIA = spec("Wikipedia", "query", "Search Wikipedia: people, places, works, events; the text may be long.")


# Who plays back.


@dataclass(frozen=True)
class Line:
    """One reply: words and calls."""

    words: str
    calls: tuple[Call, ...] = ()

    def written(self) -> str:
        return "\n".join([self.words, *map(_call_text, self.calls)]).strip()


@dataclass(frozen=True)
class Exchange:
    """A request as text, and the reply."""

    prompt: str
    asked: str
    written: str


@dataclass
class Player:
    """Answers with recorded lines, prompt by prompt; keeps what was asked."""

    lines: Mapping[str, deque[Line]]
    name: str = "recorded"
    exchanges: list[Exchange] = field(default_factory=list)

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        label = request.prompt.label()
        line = self.lines[label].popleft()
        asked = render(request)
        self.exchanges.append(Exchange(label, asked, line.written()))
        await self.write(asked, line.written())
        yield Piece(line.words)
        for call in line.calls:
            yield call
        yield Usage(0, 0)

    async def write(self, asked: str, words: str) -> None:
        """Take the time that writing takes: here none."""


@dataclass(frozen=True)
class Recorded:
    """A tool that gives what was recorded for a call, by the call's id or else by its input."""

    spec: ToolSpec
    found: Mapping[str, str]

    async def __call__(self, call: Call) -> str:
        (value,) = json.loads(call.arguments).values()
        return self.found.get(call.id) or self.found[value]


def render(request: Request) -> str:
    """Return all of a request that is read, as text: tools first, as endpoints have it."""
    tools = [json.dumps([each.name, each.description, each.parameters]) for each in request.tools]
    return "\n".join([*tools, *map(_message_text, request.messages)])


def _message_text(message: Message) -> str:
    return "\n".join([message.text, *map(_call_text, message.calls)])


def _call_text(call: Call) -> str:
    return json.dumps({"name": call.tool, "arguments": call.arguments}, ensure_ascii=False)


# The two ways.


@dataclass(frozen=True)
class Case:
    """A question, with the others where they are to be shown."""

    question: Question
    others: Sequence[Question] = ()
    at_once: bool = False
    """All of ReAct's calls in its first reply."""


def lines_of(how: How, case: Case) -> dict[str, deque[Line]]:
    """Return what the model says, prompt by prompt."""
    question = case.question
    if how == "rewoo":
        llm = [Line(question.evidence[id]) for id, tool in question.steps if tool == "LLM"]
        return {
            "make_plan": deque([Line(planned_words(question))]), "ask_model": deque(llm),
            "answer_from_evidence": deque([Line(question.answer)]),
        }  # fmt: skip
    argument = {"Search": "entity", "Lookup": "keyword"}
    rounds = [
        Line(each.thought, (Call(each.tool, json.dumps({argument[each.tool]: each.input}, ensure_ascii=False)),))
        for each in question.rounds[:-1]
    ]
    if case.at_once:
        calls = tuple(call for line in rounds for call in line.calls)
        rounds = [Line("\n".join(line.words for line in rounds), calls)]
    return {"act_on_task": deque([*rounds, Line(question.answer)])}


def tools_of(how: How, case: Case, player: Model) -> list[Tool]:
    """Return the tools, with what they found."""
    if how == "rewoo":
        return [Recorded(WIKIPEDIA, case.question.evidence), model_tool(player)]
    found = {each.input: each.seen for each in case.question.rounds}
    return [Recorded(SEARCH, found), Recorded(LOOKUP, found)]


async def play(how: How, case: Case, player: Player) -> float:
    """Answer a question through `solve`; return the seconds it took."""
    exemplars = [each.plan if how == "rewoo" else each.react for each in case.others]
    began = time.perf_counter()
    solution = await solve(
        case.question.task, how, tools=tools_of(how, case, player), models=player, exemplars=exemplars
    )
    seconds = time.perf_counter() - began
    assert solution.answer == case.question.answer and not solution.missing, solution
    assert not any(player.lines.values()), "not all that was recorded was played"
    return seconds


# Counting.


@dataclass(frozen=True)
class Count:
    """What a run took: tokens by the tokenizer, by the paper's way, and its price where beginnings are cached."""

    tokens: int
    as_paper: float
    cost: float
    calls: int


def count(exchanges: Sequence[Exchange]) -> Count:
    """Count what was asked and written."""
    tokens, as_paper, cost = 0, 0.0, 0.0
    for n, each in enumerate(exchanges):
        asked, written = count_tokens(each.asked), count_tokens(each.written)
        known = max((commonprefix([each.asked, before.asked]) for before in exchanges[:n]), key=len, default="")
        cached = min(asked, count_tokens(known))
        tokens += asked + written
        llm = each.prompt == AskModel.label()
        as_paper += (len(each.asked) + len(each.written)) // 4 if llm else asked + written
        cost += asked - cached + CACHED * cached + WRITTEN * written
    return Count(tokens, as_paper, cost, len(exchanges))


async def counted(how: How, case: Case) -> Count:
    """Play one question back one way and count."""
    player = Player(lines_of(how, case))
    await play(how, case, player)
    return count(player.exchanges)


async def measure(questions: Sequence[Question]) -> dict[str, Any]:
    """Count all questions, both ways."""
    rows = []
    for question in questions:
        shown = Case(question, [each for each in questions if each is not question])
        alone = Case(question)
        react, rewoo = await counted("react", shown), await counted("rewoo", shown)
        react0, rewoo0 = await counted("react", alone), await counted("rewoo", alone)
        at_once = await counted("react", Case(question, shown.others, at_once=True))
        rows.append({
            "task": question.task, "react": react.tokens, "rewoo": rewoo.as_paper, "rewoo_by_tokenizer": rewoo.tokens,
            "react_calls": react.calls, "rewoo_calls": rewoo.calls, "ratio": react.tokens / rewoo.as_paper,
            "ratio_by_tokenizer": react.tokens / rewoo.tokens, "ratio_zero_shot": react0.tokens / rewoo0.as_paper,
            "react_zero_shot": react0.tokens, "rewoo_zero_shot": rewoo0.as_paper,
            "ratio_zero_shot_by_tokenizer": react0.tokens / rewoo0.tokens,
            "cost_ratio_cached_prefix": react.cost / rewoo.cost, "cost_ratio_cached_zero_shot": react0.cost / rewoo0.cost,
            "react_without_exemplars": react0.tokens / rewoo.as_paper,
            "react_all_calls_at_once": at_once.tokens / rewoo.as_paper,
        })  # fmt: skip
    return summary(rows)


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the means over the questions, and what is the same in all of them."""

    def mean(name: str) -> float:
        return round(statistics.fmean(row[name] for row in rows), 3)

    return {
        "tokenizer": "wordllama (Llama 2)", "ratio_mean": mean("ratio"),
        "ratio_mean_by_tokenizer": mean("ratio_by_tokenizer"), "ratio_mean_zero_shot": mean("ratio_zero_shot"),
        "ratio_mean_zero_shot_by_tokenizer": mean("ratio_zero_shot_by_tokenizer"),
        "cost_ratio_cached_prefix": mean("cost_ratio_cached_prefix"),
        "cost_ratio_cached_zero_shot": mean("cost_ratio_cached_zero_shot"),
        "prices": {"read": 1.0, "read_cached": CACHED, "written": WRITTEN},
        "controls": {name: mean(name) for name in CONTROLS},
        "static_tokens": static_tokens(), "questions": list(rows),
    }  # fmt: skip


def static_tokens() -> dict[str, Any]:
    """Count the headers: what stands in each request, whatever the task, its tools and exemplars."""

    def header(prompt: MakePlan | AnswerFromEvidence | ActOnTask | AskModel) -> int:
        return count_tokens(prompt.messages()[0].text)

    return {
        "planner": header(MakePlan(task="", tools=())),
        "solver": header(AnswerFromEvidence(task="", steps=(), may_miss=True)),
        "react": header(ActOnTask(task="")), "llm_tool": header(AskModel(instruction="")), "authors": AUTHORS,
    }  # fmt: skip
