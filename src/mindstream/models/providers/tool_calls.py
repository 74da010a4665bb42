"""Read tool calls that a model writes as JSON in its text.

A model without function calling finds the tools in its prompt and writes its calls as JSON; an adapter decides which
models are asked in this way. The replies of all models are searched for such calls, because some endpoints accept
`tools` but return the model's calls as text.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import aclosing
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import groupby, islice
from typing import Any

from mindstream.chance import token
from mindstream.errors import ReplyInvalid
from mindstream.models.model import Call, JsonSchema, Message, Request, ToolSpec
from mindstream.models.providers.adapter import MAX_CALLS, Arrival, Delta
from mindstream.models.reply import CLOSE, DECODER, LATE, OPEN, whole_json
from mindstream.models.schema import find_faults
from mindstream.models.untrusted import escaped

INSTRUCTIONS = """
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
"""Errors of endpoints that do not support tools; errors about the schema of one tool do not match."""
BEGINS = re.compile(rf"(?!{OPEN}|{CLOSE})[{{\[`<]", re.IGNORECASE)
"""The beginning of a possible call in a text; the text before it is passed on at once."""
ENDS = re.compile(r"(?:[}\])]|</[^<>\s]{1,40}>)(?:```|<[^<>\s]{1,40}>|\s++)*+\Z")
_BEFORE_NAME = (
    r"<function=|\[TOOL_CALLS\]\s*+|<｜tool▁call▁begin｜>(?:function<｜tool▁sep｜>)?|\bto=functions\.|<tool_call>\s*+"
    r"|<\|tool_call_begin\|>(?:functions\.)?"
)
_AFTER_NAME = (
    r"(?::\d+)?\s*+(?:>|\[ARGS\]|<｜tool▁sep｜>|<\|tool_call_argument_begin\|>"
    r"|(?:<\|channel\|>\w++\s*+)?(?:<\|constrain\|>\s*+)?(?:json)?\s*+<\|message\|>)?\s*+(?:```(?:json)?\s*+)?"
)
NAMED = re.compile(rf"(?:{_BEFORE_NAME})([\w.-]++){_AFTER_NAME}(?=\{{)")
"""A call whose name precedes the JSON of its arguments: Llama 3.1, Mistral, DeepSeek, gpt-oss, Hermes, Kimi."""
TAGGED = re.compile(
    r"(?:<function=|<invoke\s++name=[\"']|<tool_call>\s*+)([\w.-]++)[\"']?>?\s*+((?:<(?:parameter|arg_key).*?)?)"
    r"</(?:function|invoke|tool_call)>",
    re.DOTALL,
)
"""Matches a call whose arguments are XML, in the formats of Qwen3-Coder, Anthropic and GLM."""
CLOSERS = ("</function>", "</invoke>", "</tool_call>")
ARGUMENT = re.compile(
    r"<parameter(?:=|\s+name=[\"'])([^>\"']+)[\"']?>\n?(.*?)\n?</parameter>"
    r"|<arg_key>\s*(.*?)\s*</arg_key>\s*<arg_value>(.*?)</arg_value>",
    re.DOTALL,
)
PYTHON = re.compile(r"(?:```\w*\s*)?((?:\[|print\()?\s*[\w.]+\(.*\)\s*\]?)\s*(?:```\s*)?", re.DOTALL)
"""A text that is one call in Python, or a list of them: Gemma, Llama 4."""
MAX_PYTHON = 20_000
"""Maximum length of a text that is read as Python, in characters."""
INSIDE, TOOL, GIVEN = (
    names.split()
    for names in (
        "call tool_call function tool_calls calls",
        "name tool tool_name function action",
        "arguments parameters args input action_input",
    )
)
"""Keys that models use for a call, for its tool's name, and for its arguments."""


@dataclass(frozen=True)
class RequestInWords(Request):
    """A request whose prompt describes the tools (`offered`). The reply is a call or an answer, as JSON."""

    offered: tuple[ToolSpec, ...] = ()

    @cached_property
    def messages(self) -> tuple[Message, ...]:
        """The prompt's messages, then the turns. The system message also describes the tools.

        In the turns, calls and results are written as text.
        """
        described = "\n".join(map(_described, self.offered))
        instructions = INSTRUCTIONS.strip() % (ANSWERS[super().schema is None], described)
        first, *rest = self.prompt.messages(self.words)
        own = [first, *rest] if first.role == "system" else [Message("system", ""), first, *rest]
        own[0] = Message("system", f"{own[0].text}\n\n{instructions}".strip())
        return tuple(merge_turns([*own, *map(_as_text, self.turns)]))

    @property
    def schema(self) -> JsonSchema | None:
        """The schema of a reply: either a call of one of the tools with the tool's arguments, or the answer."""
        shared: dict[str, Any] = {}
        calls = [
            _closed(name={"const": each.name}, arguments=_moved(each.parameters, f"t{n}_", shared))
            for n, each in enumerate(self.offered)
        ]
        answer = _moved(super().schema or {"type": "string", "minLength": 1}, "", shared)
        either = [_closed(call={"anyOf": calls}), _closed(answer=answer)]
        return {"type": "object", "anyOf": either, **({"$defs": shared} if shared else {})}


def in_words(request: Request) -> Request:
    """Return the same request with its tools described in the prompt."""
    same = {each.name: getattr(request, each.name) for each in fields(Request)}
    return RequestInWords(**{**same, "tools": (), "offered": request.tools})


def merge_turns(messages: Iterable[Message]) -> Iterator[Message]:
    """Merge adjacent messages of one role, as many chat templates require; calls and their results stay separate."""
    for _, run in groupby(messages, lambda each: id(each) if each.calls or each.role == "tool" else each.role):
        first, *more = run
        texts = (each.text for each in (first, *more))
        yield Message(first.role, "\n\n".join(texts).strip()) if more else first


async def read_calls(arrivals: AsyncGenerator[Arrival], request: Request, typed: bool) -> AsyncGenerator[Arrival]:
    """Yield the arrivals of an endpoint; a call that is written in the text becomes a `Call`.

    Text is passed on until the beginning of a possible call. The rest is held back until the text is complete. While
    the rest arrives, it is also reported as arguments, and is counted as such.

    Args:
        request: the original request, with its tools (before `in_words`).
        typed: the reply was requested as JSON with a call or an answer.
    """
    held, calls, thoughts, said = "", False, list[str](), False
    async with aclosing(arrivals):
        async for arrival in arrivals:
            calls = calls or isinstance(arrival, Call)
            if isinstance(arrival, Delta):
                said = said or (arrival.of == "reply" and bool(arrival.text.strip()))
                thoughts += [arrival.text] * (arrival.of == "thought")
            if not (isinstance(arrival, Delta) and arrival.of == "reply"):
                if not isinstance(arrival, Delta):  # a call, the usage or the end: the held text is complete
                    for each in _read(held, request, typed and not calls, calls):
                        yield each
                    held = ""
                yield arrival
                continue
            found = None if held else BEGINS.search(arrival.text)
            at = 0 if held else found.start() if found else len(arrival.text)
            if before := arrival.text[:at]:
                yield Delta("reply", before)
            if waits := arrival.text[at:]:
                held += waits
                yield Delta("arguments", waits)
    for each in _read(held, request, typed and not calls, calls):
        yield each
    if not (said or calls):  # some servers send a reasoning model's calls as thoughts
        for call in find_calls("".join(thoughts), request):
            yield call


def _read(held: str, request: Request, typed: bool, calls: bool) -> Iterator[Arrival]:
    """Yield the calls in a text, after the thoughts before them. If the text has no calls, yield the text.

    Args:
        typed: whether to yield only the answer in a text without calls.
        calls: whether the endpoint has sent calls by itself; if so, the text is not searched for calls.
    """
    found = () if calls or not held else find_calls(held, request)
    closed = max((each.end() for each in LATE.finditer(held)), default=0)
    if not found and closed and not calls:  # the held text began within thoughts
        found = find_calls(held[closed:], request)
    if found:
        if closed:
            yield Delta("reply", held[:closed])
        yield from found
    elif held:
        yield Delta("reply", _answer(held, request.schema) if typed else held)


def find_calls(text: str, request: Request) -> tuple[Call, ...]:
    """Return the calls of the request's tools at the end of the text of a reply.

    The result is () if the JSON in the text is an answer of the required schema, or is broken.
    """
    if not ENDS.search(text):
        return ()
    try:
        values: list[Any]
        # without `last`, the search at each opening tag would go to the text's end
        last = max(text.rfind(each) for each in CLOSERS)
        if last >= 0 and (found := list(islice(TAGGED.finditer(text, 0, last + 12), MAX_CALLS))):
            values = [{"name": each[1], "arguments": _tagged(each[2])} for each in found]
        elif python := _python_calls(text):
            values = python
        elif named := list(islice(NAMED.finditer(text), MAX_CALLS)):
            values = [{"name": each[1], "arguments": DECODER.raw_decode(text, each.end())[0]} for each in named]
        else:
            values = [inner for value in whole_json(text) for inner in (value if isinstance(value, list) else [value])]
            if any(_fits(value, request.schema) for value in values):
                return ()
    except (ReplyInvalid, ValueError, RecursionError):
        return ()
    return tuple(call for value in values for call in _calls_in(value, request))[:MAX_CALLS]


def _calls_in(value: Any, request: Request) -> Iterator[Call]:
    """Yield the calls in a JSON value, in the forms in which models write them."""
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
    if isinstance(given, dict | str) and any(each.name == name for each in request.tools):
        yield Call(name, given if isinstance(given, str) else json.dumps(given, ensure_ascii=False), f"call_{token()}")


def _tagged(text: str) -> dict[str, str]:
    """Parse the arguments of a call in XML. All values are texts; `fitting.fit` converts them to the tool's types."""
    return {(each[1] or each[3]).strip(): each[2] if each[1] else each[4] for each in ARGUMENT.finditer(text)}


def _python_calls(text: str) -> list[dict[str, Any]]:
    """Return the calls in a text that is nothing but calls in Python whose named arguments are literals; [] for other
    texts. Calls with positional arguments are left out."""
    whole = PYTHON.fullmatch(text.strip()) if len(text) <= MAX_PYTHON else None
    if whole is None:
        return []
    try:
        tree = ast.parse(whole[1].strip(), mode="eval").body
        if isinstance(tree, ast.Call) and ast.unparse(tree.func) == "print":
            tree = tree.args[0]
        calls = tree.elts if isinstance(tree, ast.List) else [tree]
        return [
            {
                "name": ast.unparse(each.func).rpartition(".")[2],
                "arguments": {str(given.arg): ast.literal_eval(given.value) for given in each.keywords},
            }
            for each in calls
            if isinstance(each, ast.Call) and not each.args
        ]
    except (SyntaxError, ValueError, IndexError, RecursionError, MemoryError):
        return []


def _fits(value: Any, schema: JsonSchema | None) -> bool:
    """Return whether a value is an answer of this schema: it has at least one of the schema's fields, and no fault."""
    if schema is None or not isinstance(value, dict) or not schema.get("properties", {}).keys() & value.keys():
        return False
    return not find_faults(value, schema)


def _answer(text: str, schema: JsonSchema | None) -> str:
    """Return the value of the key `answer` as text.

    Return the whole text if its JSON has no such key, or fits the answer's schema itself.
    """
    try:
        values = whole_json(text, dict)
    except ReplyInvalid:
        return text
    value = next((each for each in values if "answer" in each), None)
    if value is None or _fits(value, schema):
        return text
    answer = value["answer"]
    return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)


def _described(tool: ToolSpec) -> str:
    taken = json.dumps(tool.arguments, ensure_ascii=False)
    needed = ", ".join(tool.parameters.get("required") or ()) or "none"
    return escaped(f"- {tool.name}: {tool.description.strip()}\n  arguments: {taken}; required: {needed}")


def _as_text(turn: Message) -> Message:
    """Return a turn as text: calls as the JSON that INSTRUCTIONS describe, and a tool's result as a user message."""
    if turn.role == "tool":
        return Message("user", f"(What {turn.tool or 'the tool'} gave:)\n{turn.text}")
    calls = [
        f'{{"call": {{"name": {json.dumps(call.tool)}, "arguments": {call.arguments.strip() or "{}"}}}}}'
        for call in turn.calls
    ]
    return Message(turn.role, "\n".join(filter(None, (turn.text, *calls)))) if calls else turn


def _closed(**properties: JsonSchema) -> JsonSchema:
    """Return the schema of an object that has these properties and no others."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _moved(schema: JsonSchema, prefix: str, shared: dict[str, Any]) -> JsonSchema:
    """Return a schema for use within another. Its definitions are moved to `shared`, with a prefix to their names, and
    its references are changed accordingly."""

    def move(node: Any) -> Any:
        if isinstance(node, list):
            return [move(each) for each in node]
        if not isinstance(node, dict):
            return node
        moved = {key: move(value) for key, value in node.items()}
        if isinstance(where := node.get("$ref"), str):
            moved["$ref"] = where.replace("#/$defs/", f"#/$defs/{prefix}")
        return moved

    shared |= {prefix + name: move(node) for name, node in (schema.get("$defs") or {}).items()}
    return {key: move(value) for key, value in schema.items() if key != "$defs"}
