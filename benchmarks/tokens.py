"""Compare tokens and seconds of ReWOO and ReAct on the six recorded HotpotQA questions of ReWOO's authors (Xu 2023).

    python benchmarks/tokens.py --data FILE [--json] [--gguf-questions N] [--model NAME [--yes]]

FILE contains the authors' exemplars, {name: text}. For each question a model that plays back the recorded words answers
through `solve`, by ReAct (native calls) and by ReWOO (planner, tools, the model as a tool, solver): with the other five
questions as exemplars, as the paper did, and without any. All input and output is counted with wordllama's tokenizer
(that of Llama 2): messages, descriptions of tools, and calls as JSON; separators between messages, of which ReAct has
more, are not counted. `ratio_mean` counts the model as a tool as the paper does, a quarter of its characters.

Controls: ReAct without its exemplars, and ReAct that makes all its calls in one reply: the ratio falls, since its cause
is the prefix that is sent repeatedly. `cost_ratio_cached_prefix`: the prefix that a request shares with an earlier one
of its run costs a tenth, and output costs five times as much as input.

`seconds_ratio`: the same runs on the small model in this process, constrained to the recorded words by a grammar, with
and without its prompt cache; one question takes about two minutes.
With --model a real model answers, from the recorded observations alone; the cost is printed first, --yes accepts it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokens_data import Question, read_questions
from tokens_play import Case, Exchange, Player, lines_of, play

from mindstream.models.embedders.embedder import token_ids
from mindstream.planning.planner import Strategy
from mindstream.planning.prompts import ActOnTask, AnswerFromEvidence, MakePlan
from mindstream.tools.named import AskModel

CACHED, WRITTEN = 0.1, 5.0
"""Price of a token read from a cache, and of an output token, relative to an input token."""
AUTHORS = {"planner": 106, "solver": 68}
"""Tokens of the authors' headers (billxbf/ReWOO at 9cd0283, prompts/), without tools and exemplars, by the same
tokenizer.
"""
CONTROLS = ("react_without_exemplars", "react_all_calls_at_once")


# Counting.


@dataclass(frozen=True)
class Count:
    """The cost of a run: tokens by the tokenizer, by the paper's method, and the price with cached prefixes."""

    tokens: int
    as_paper: float
    cost: float
    calls: int
    read: int
    written: int


def count(exchanges: Sequence[Exchange]) -> Count:
    """Count the tokens of requests and replies."""
    read, wrote, as_paper, cost = 0, 0, 0.0, 0.0
    for n, each in enumerate(exchanges):
        asked, written = len(token_ids(each.asked)), len(token_ids(each.written))
        known = max((_shared(each.asked, before.asked) for before in exchanges[:n]), default=0)
        cached = min(asked, len(token_ids(each.asked[:known])))
        read, wrote = read + asked, wrote + written
        llm = each.prompt == AskModel.label()
        as_paper += (len(each.asked) + len(each.written)) // 4 if llm else asked + written
        cost += asked - cached + CACHED * cached + WRITTEN * written
    return Count(read + wrote, as_paper, cost, len(exchanges), read, wrote)


def _shared(one: str, other: str) -> int:
    """Return the length of the common prefix of two texts, in characters."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(one), len(other)))


async def counted(how: Strategy, case: Case) -> Count:
    """Play back one question with one strategy and count."""
    player = Player(lines_of(how, case))
    await play(how, case, player)
    return count(player.exchanges)


async def measure(questions: Sequence[Question]) -> dict[str, Any]:
    """Count all questions, with both strategies."""
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
            "cost_ratio_cached_prefix": react.cost / rewoo.cost,
            "cost_ratio_cached_zero_shot": react0.cost / rewoo0.cost,
            "react_without_exemplars": react0.tokens / rewoo.as_paper,
            "react_all_calls_at_once": at_once.tokens / rewoo.as_paper,
            "read": react.read + rewoo.read, "written": react.written + rewoo.written,
        })  # fmt: skip
    return summary(rows)


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the means over the questions, and the constant values."""

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
    """Count the tokens of the headers: the part of each request that does not depend on task, tools and exemplars."""

    def header(prompt: MakePlan | AnswerFromEvidence | ActOnTask | AskModel) -> int:
        return len(token_ids(prompt.messages()[0].text))

    return {
        "planner": header(MakePlan(task="", tools=())),
        "solver": header(AnswerFromEvidence(task="", steps=())),
        "react": header(ActOnTask(task="")), "llm_tool": header(AskModel(instruction="")), "authors": AUTHORS,
    }  # fmt: skip


# Latency.


async def time_on_gguf(questions: Sequence[Question], name: str, shown: int) -> dict[str, Any]:
    """Return the ratio of ReAct's duration to ReWOO's with a real model, with and without its cache."""
    from tokens_gguf import HeldPlayer, load

    engine = await load(name)
    rows: list[dict[str, Any]] = []
    for question in questions[:shown]:
        case = Case(question, [each for each in questions if each is not question])
        for cached in (True, False):
            seconds: dict[str, float] = {}
            for how in ("rewoo", "react"):
                seconds[how] = await play(how, case, HeldPlayer(lines_of(how, case), engine, cached))
            rows.append({"task": question.task, "cached": cached, **seconds})
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)

    def ratio(cached: bool) -> float:
        taken = [row for row in rows if row["cached"] is cached]
        react, rewoo = (sum(float(row[how]) for row in taken) for how in ("react", "rewoo"))
        return round(react / rewoo, 3)

    return {"prompt_cache": ratio(True), "no_prompt_cache": ratio(False), "model": name, "runs": rows}


# Output.


async def measured(arguments: argparse.Namespace) -> dict[str, Any]:
    """Run what is wanted."""
    questions = read_questions(arguments.data)
    found: dict[str, Any] = {"load": os.getloadavg()[0], **await measure(questions)}
    found["seconds_ratio"] = None
    if arguments.gguf_questions:
        found["seconds_ratio"] = await time_on_gguf(questions, arguments.gguf, arguments.gguf_questions)
    if arguments.model:
        from tokens_model import answer_by

        read, written = (sum(row[key] for row in found["questions"]) for key in ("read", "written"))
        found["model"] = await answer_by(arguments.model, questions, (read, written), arguments.yes)
    return found


def show(found: Mapping[str, Any]) -> None:
    """Print the figures as text."""
    for row in found["questions"]:
        print(
            f"{row['task'][:48]:48} ReAct {row['react']:5} in {row['react_calls']} calls, ReWOO {row['rewoo']:5.0f} in "
            f"{row['rewoo_calls']}: {row['ratio']:.2f}; without exemplars {row['ratio_zero_shot']:.2f}"
        )
    print(json.dumps({key: value for key, value in found.items() if key != "questions"}, indent=1))


def main() -> None:
    """Read the flags and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, required=True, help="the authors' exemplars: authors_exemplars.json")
    parser.add_argument("--gguf", default="local", help="local, or gguf:FILE")
    parser.add_argument("--gguf-questions", type=int, default=1, help="questions timed on the small model; 0: none")
    parser.add_argument("--model", help="also let a real model answer")
    parser.add_argument("--yes", action="store_true", help="accept the cost of --model")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    found = asyncio.run(measured(arguments))
    if arguments.json:
        print(json.dumps(found))
    else:
        show(found)


if __name__ == "__main__":
    main()
