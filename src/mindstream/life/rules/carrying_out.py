"""The rule of M1: it looks a question up with whatever searches, has M0 find what answers, or writes a file."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mindstream.life.carry_out import CarryOut
from mindstream.life.outside import HELD
from mindstream.life.rules.brief import is_missing
from mindstream.life.rules.parts import read_question
from mindstream.life.rules.phrases import CHINESE, ENGLISH, phrase
from mindstream.life.rules.quoting import DREAM, Passage, read_passages
from mindstream.life.rules.reading import READ
from mindstream.life.rules.script import Script, call, next_step
from mindstream.life.rules.thinking import split_about
from mindstream.models.model import Call, Message, ToolSpec
from mindstream.models.prompt import rule

SEARCHES, COUNT, MOST = 2, 6, 16_000
"""So many tools are searched with, for so many passages; so many characters are given to M0."""
FOUND_ON_THE_WAY = "\n\nfound on the way:"
"""Behind the answer of a tool that solves tasks stands what its steps found."""
FILE = re.compile(r"(?:\bfile|文件)\W{0,3}(?P<name>[\w-]+\.\w{1,5})\b", re.IGNORECASE)
LOOKS = tuple(words["look"].partition("{}")[0] for words in (ENGLISH, CHINESE))
THOUGHT = re.compile(r"<\|thinking_start\|>(.*)<\|thinking_end\|>", re.DOTALL)


@rule(CarryOut)
def carry_out_by_rules(ask: CarryOut, turns: Sequence[Message]) -> str | list[Call]:
    """Write the file that a task names; else look up what it asks."""
    file = FILE.search(ask.task[:READ])
    return next_step(_write(ask, file["name"]) if file and ask.context else _look_up(ask), turns)


def _write(ask: CarryOut, name: str) -> Script:
    tool = next((each.name for each in ask.tools if {"name", "text"} <= set(each.parameters.get("required", ()))), "")
    if not tool:
        return phrase("no_file", ask.language)
    (done,) = yield [call(tool, name=name, text=ask.context)]
    return done


def _look_up(ask: CarryOut) -> Script:
    question = ask.task
    for lead in LOOKS:
        question = question.removeprefix(lead)
    part, subject = split_about(question)
    if not subject:
        read = read_question(part)
        part, subject = ", ".join(read.parts), read.subject
    query = f"{part} {subject}".strip()
    searches = [each for each in ask.tools if _is_search(each)][:SEARCHES]
    calls = [
        call(tool.name, query=each, **({"count": COUNT} if "count" in tool.parameters.get("properties", {}) else {}))
        for tool in searches for each in filter(None, dict.fromkeys((query, part, subject)))
    ]  # fmt: skip
    calls = calls or [call("R", query=query)]
    results = yield calls
    found = [
        passage for made, text in zip(calls, results, strict=True)
        for passage in read_passages(text, made.tool if made.tool != "R" else "") if DREAM not in passage.place
    ]  # fmt: skip
    if not found:
        lacks = phrase("nothing" if searches else "no_source", ask.language)
        return (yield from _solve(ask, f"{part}, {subject}" if subject else part, lacks))
    asked = phrase("about", ask.language, part, subject) if subject else part
    (thought,) = yield [call("M0", question=asked, context=_context(found))]
    inside = THOUGHT.search(thought)
    answer = (inside[1] if inside else thought).strip()
    return (yield from _solve(ask, asked, answer)) if is_missing(answer) else answer


def _solve(ask: CarryOut, question: str, lacks: str) -> Script:
    """Have a question that no document answers solved by a tool that solves tasks, where there is one."""
    solver = next((each for each in ask.tools if each.parameters.get("required") == ["task"]), None)
    if solver is None:
        return lacks
    (solved,) = yield [call(solver.name, task=question)]
    failed = ("the task was not solved", f"{solver.name} failed", f"{solver.name} did not answer", HELD)
    return lacks if solved.startswith(failed) else solved.partition(FOUND_ON_THE_WAY)[0].strip()


def _context(passages: Sequence[Passage]) -> str:
    """Write passages as a search gives them, as many as M0 is given."""
    written, size = list[str](), 0
    for each in dict.fromkeys(passages):
        text = f"{each.name}, {each.place}:\n{each.text}" if each.name else f"- {each.place}: {each.text}"
        size += len(text)
        written += [text] if size <= MOST else []
    return "\n\n".join(written)


def _is_search(tool: ToolSpec) -> bool:
    """Tell whether a tool looks up words: all that it wants is a query."""
    return tool.parameters.get("required") == ["query"]
