"""Play recorded words back through a planner: a scripted model, and tools that return the recorded results."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field

from tokens_data import Question, planned_words

from mindstream.models.model import Call, Message, Model, Part, Piece, Request, ToolSpec, Usage
from mindstream.planning.planner import Planner, Strategy
from mindstream.tools.named import model_tool
from mindstream.tools.tool import Tool


def spec(name: str, argument: str, description: str) -> ToolSpec:
    """Describe a tool that takes one text."""
    schema = {"type": "object", "properties": {argument: {"type": "string"}}, "required": [argument]}
    return ToolSpec(name, description, schema)


SEARCH = spec("Search", "entity", "Search Wikipedia for an entity: its first paragraph, or names like it.")
LOOKUP = spec("Lookup", "keyword", "Find the next sentence with a keyword in the page that was found last.")
WIKIPEDIA = spec("Wikipedia", "query", "Search Wikipedia: people, places, works, events; the text may be long.")


# Playback.


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
    """Answer with recorded lines, prompt by prompt; keep the requests."""

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
        """Wait as long as writing takes: here, not at all."""


@dataclass(frozen=True)
class Recorded:
    """A tool that returns the recorded result of a call, by the call's id or otherwise by its input."""

    spec: ToolSpec
    found: Mapping[str, str]

    async def __call__(self, call: Call) -> str:
        (value,) = json.loads(call.arguments).values()
        return self.found.get(call.id) or self.found[value]


def render(request: Request) -> str:
    """Return the full text of a request: tools first, as endpoints order it."""
    tools = [json.dumps([each.name, each.description, each.parameters]) for each in request.tools]
    return "\n".join([*tools, *map(_message_text, request.messages)])


def _message_text(message: Message) -> str:
    return "\n".join([message.text, *map(_call_text, message.calls)])


def _call_text(call: Call) -> str:
    return json.dumps({"name": call.tool, "arguments": call.arguments}, ensure_ascii=False)


# The two strategies.


@dataclass(frozen=True)
class Case:
    """A question, and the other questions if they are exemplars."""

    question: Question
    others: Sequence[Question] = ()
    at_once: bool = False
    """Make all of ReAct's calls in its first reply."""


def lines_of(how: Strategy, case: Case) -> dict[str, deque[Line]]:
    """Return the model's replies, prompt by prompt."""
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


def tools_of(how: Strategy, case: Case, player: Model) -> list[Tool]:
    """Return the tools, with the recorded results."""
    if how == "rewoo":
        return [Recorded(WIKIPEDIA, case.question.evidence), model_tool(player)]
    found = {each.input: each.seen for each in case.question.rounds[:-1]}
    return [Recorded(SEARCH, found), Recorded(LOOKUP, found)]


async def play(how: Strategy, case: Case, player: Player) -> float:
    """Answer a question through a planner; return the seconds."""
    exemplars = [each.plan if how == "rewoo" else each.react for each in case.others]
    began = time.perf_counter()
    planner = Planner(model=player, tools=tools_of(how, case, player), how=how, exemplars=exemplars)
    solution = await planner.solve(case.question.task)
    seconds = time.perf_counter() - began
    assert solution.answer == case.question.answer and not solution.missing, solution
    assert not any(player.lines.values()), "not all that was recorded was played"
    return seconds
