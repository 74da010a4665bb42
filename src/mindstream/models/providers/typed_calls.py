"""Calls of tools by models that have no function calling: tools in words, calls as JSON in the reply.

Who is asked so is for an adapter to know; this is how. Replies of all are read for calls, too: some endpoints take
`tools`, and give back what the model wrote as text.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import islice
from typing import Any

from mindstream.chance import token
from mindstream.errors import ReplyInvalid
from mindstream.models.fence import escaped
from mindstream.models.model import Call, JsonSchema, Message, Request, ToolSpec
from mindstream.models.providers.adapter import Arrival, Delta
from mindstream.models.providers.limits import CALLS
from mindstream.models.providers.thoughts import CLOSE, LATE, OPEN
from mindstream.models.reply import DECODER, whole_json
from mindstream.models.schema import find_faults

WORDS = """
You can have tools called. Reply with one JSON object and nothing else:
{"call": {"name": "…", "arguments": {…}}} to have one of the tools below called; you will be shown what it gives,
{"answer": …} to answer, once you know enough: %s.
Never write down yourself what a tool would give.

Tools:
%s"""
ANSWERS = {True: "your words as one text", False: "the JSON that is asked for above"}
_TOOLS = r"\b(tools?\b|tool[ _]choice|function[ _-]?call)"
_NOT = r"\b(support|un(supported|known|expected|recogni[sz]ed)|extra|not (permitted|allowed|available)|requires? --)"
UNKNOWN_TOOLS = re.compile(f"{_TOOLS}.{{0,80}}{_NOT}|{_NOT}.{{0,80}}{_TOOLS}", re.IGNORECASE | re.DOTALL)
"""How an endpoint says that it, or its model, calls no tools; the name of one whose schema it dislikes is not meant."""
BEGINS = re.compile(rf"(?!{OPEN}|{CLOSE})[{{\[`<]", re.IGNORECASE)
"""Where a call may begin in a text; what stands before it is passed on as it comes."""
ENDS = re.compile(r"[}\]](?:```|</?[\w|=.-]++>|\s++)*+\Z")
NAMED = re.compile(r"<function=([\w.-]++)>\s*+(?=\{)")
INSIDE, TOOL = (
    ("call", "tool_call", "function", "tool_calls", "calls"),
    ("name", "tool", "tool_name", "function", "action"),
)
GIVEN = ("arguments", "parameters", "args", "input", "action_input")
"""What models call the parts of a call."""


@dataclass(frozen=True)
class RequestInWords(Request):
    """A request whose tools stand in its words, and whose reply is a call or an answer; an endpoint sees no `tools`."""

    offered: tuple[ToolSpec, ...] = ()

    @cached_property
    def messages(self) -> tuple[Message, ...]:
        """The prompt's words with the tools, then the turns, calls and results as text."""
        described = "\n".join(map(_described, self.offered))
        words = WORDS.strip() % (ANSWERS[super().schema is None], described)
        first, *rest = self.prompt.messages(self.words)
        own = [first, *rest] if first.role == "system" else [Message("system", ""), first, *rest]
        own[0] = Message("system", f"{own[0].text}\n\n{words}".strip())
        return tuple(_joined([*own, *map(_as_text, self.turns)]))

    @property
    def schema(self) -> JsonSchema | None:
        """Either a call of one of the tools with its own arguments, or the answer."""
        shared: dict[str, Any] = {}
        calls = [
            _closed(name={"const": each.name}, arguments=_moved(each.parameters, f"t{n}_", shared))
            for n, each in enumerate(self.offered)
        ]
        answer = _moved(super().schema or {"type": "string", "minLength": 1}, "", shared)
        either = [_closed(call={"anyOf": calls}), _closed(answer=answer)]
        return {"type": "object", "anyOf": either, **({"$defs": shared} if shared else {})}


def in_words(request: Request) -> Request:
    """Return the same request with its tools in words."""
    same = {each.name: getattr(request, each.name) for each in fields(Request)}
    return RequestInWords(**{**same, "tools": (), "offered": request.tools})


async def read_calls(arrivals: AsyncGenerator[Arrival], request: Request, typed: bool) -> AsyncGenerator[Arrival]:
    """Give what an endpoint sends, with calls where its text has some; `request` as it was before it was put in words.

    Text is passed on until something begins that may be a call; the rest waits for its end, and counts as it comes.

    Args:
        typed: the reply was asked for as a call or an answer.
    """
    held, calls = "", False
    async with aclosing(arrivals):
        async for arrival in arrivals:
            calls = calls or isinstance(arrival, Call)
            if not (isinstance(arrival, Delta) and arrival.of == "reply"):
                if held and not isinstance(arrival, Delta):  # what the reply took, its end
                    for each in _read(held, request, typed and not calls, calls):
                        yield each
                    held = ""
                yield arrival
                continue
            at = 0 if held else _begin(arrival.text)
            if before := arrival.text[:at]:
                yield Delta("reply", before)
            if waits := arrival.text[at:]:
                held += waits
                yield Delta("arguments", waits)
    for each in _read(held, request, typed and not calls, calls):
        yield each


def _begin(text: str) -> int:
    found = BEGINS.search(text)
    return found.start() if found else len(text)


def _read(held: str, request: Request, typed: bool, calls: bool) -> Iterator[Arrival]:
    """Give the calls in a text, or the text: the answer in it, where a call or an answer was asked for."""
    found = () if calls or not held else find_calls(held, request)
    closed = max((each.end() for each in LATE.finditer(held)), default=0)
    if not found and closed and not calls:  # what was held began within thoughts
        found = find_calls(held[closed:], request)
    if found:
        if closed:
            yield Delta("reply", held[:closed])
        yield from found
    elif held:
        yield Delta("reply", _answer(held, request.schema) if typed else held)


def find_calls(text: str, request: Request) -> tuple[Call, ...]:
    """Return the calls of a request's tools that a text ends with; none where its JSON is the answer, or is broken."""
    if not ENDS.search(text):
        return ()
    try:
        if named := list(islice(NAMED.finditer(text), CALLS)):
            values = [{"name": each[1], "arguments": DECODER.raw_decode(text, each.end())[0]} for each in named]
            return tuple(call for value in values for call in _calls_in(value, request))
        values = [inner for value in whole_json(text) for inner in (value if isinstance(value, list) else [value])]
    except (ReplyInvalid, ValueError, RecursionError):
        return ()
    if any(_fits(value, request.schema) for value in values):
        return ()
    return tuple(call for value in values for call in _calls_in(value, request))[:CALLS]


def _calls_in(value: Any, request: Request) -> Iterator[Call]:
    """Read a JSON value as calls, in the forms in which models write them."""
    if isinstance(value, list):
        for each in value:
            yield from _calls_in(each, request)
    if not isinstance(value, dict) or "answer" in value:
        return
    if inner := next((value[key] for key in INSIDE if isinstance(value.get(key), dict | list)), None):
        yield from _calls_in(inner, request)
        return
    name = next((value[key] for key in TOOL if isinstance(value.get(key), str)), "")
    given = next((value[key] for key in GIVEN if key in value), None)
    if not name and len(value) == 1:
        name, given = next(iter(value.items()))
    if isinstance(given, dict | str) and _is_offered(name, request):
        yield Call(name, given if isinstance(given, str) else json.dumps(given, ensure_ascii=False), f"call_{token()}")


def _fits(value: Any, schema: JsonSchema | None) -> bool:
    """Tell whether a value is the answer that a schema asks for: it has one of its fields, and no fault."""
    if schema is None or not isinstance(value, dict) or not schema.get("properties", {}).keys() & value.keys():
        return False
    return not find_faults(value, schema)


def _is_offered(name: str, request: Request) -> bool:
    return any(each.name == name for each in request.tools)


def _answer(text: str, schema: JsonSchema | None) -> str:
    """Return what stands under `answer`, as text; the whole text where there is no such thing, or it is the answer."""
    try:
        values = whole_json(text, dict)
    except ReplyInvalid:
        return text
    value = next((each for each in values if "answer" in each), None)
    if value is None or _fits(value, schema):
        return text
    answer = value["answer"]
    return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)


# Requests in words.


def _described(tool: ToolSpec) -> str:
    taken = json.dumps(tool.parameters.get("properties") or {}, ensure_ascii=False)
    needed = ", ".join(tool.parameters.get("required") or ()) or "none"
    return escaped(f"- {tool.name}: {tool.description.strip()}\n  arguments: {taken}; required: {needed}")


def _as_text(turn: Message) -> Message:
    """Write calls as they are asked for, and what tools gave as words of the user's side."""
    if turn.role == "tool":
        return Message("user", f"(What {turn.tool or 'the tool'} gave:)\n{turn.text}")
    calls = [
        f'{{"call": {{"name": {json.dumps(call.tool)}, "arguments": {call.arguments.strip() or "{}"}}}}}'
        for call in turn.calls
    ]
    return Message(turn.role, "\n".join(filter(None, (turn.text, *calls)))) if calls else turn


def _joined(messages: Sequence[Message]) -> Iterator[Message]:
    """Join messages of one role that follow one another: many chat templates want turns."""
    last: Message | None = None
    for message in messages:
        if last and last.role == message.role:
            last = Message(last.role, f"{last.text}\n\n{message.text}")
        else:
            if last:
                yield last
            last = message
    if last:
        yield last


def _closed(**properties: JsonSchema) -> JsonSchema:
    """Return an object that has these properties and no others."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _moved(schema: JsonSchema, prefix: str, shared: dict[str, Any]) -> JsonSchema:
    """Return a schema to stand within another, its definitions moved there under names of their own."""

    def move(node: Any) -> Any:
        if isinstance(node, list):
            return [move(each) for each in node]
        if not isinstance(node, dict):
            return node
        where = node.get("$ref")
        moved = {key: move(value) for key, value in node.items() if key != "$ref"}
        if isinstance(where, str):
            moved["$ref"] = where.replace("#/$defs/", f"#/$defs/{prefix}")
        return moved

    shared |= {prefix + name: move(node) for name, node in (schema.get("$defs") or {}).items()}
    return {key: move(value) for key, value in schema.items() if key != "$defs"}
