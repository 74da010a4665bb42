"""Let a model mend an answer that does not fit."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from typing import Any

from mindstream.errors import ReplyInvalid
from mindstream.models.ask import gather_reply
from mindstream.models.fence import escaped
from mindstream.models.fitting import fit, named_tool, read_object
from mindstream.models.model import Call, Message, Model, Part, Piece, Request, ToolSpec, Usage
from mindstream.models.reply import clean
from mindstream.models.schema import find_faults

_SHOWN = 4_000
"""Characters of a wrong answer that are shown to the model again."""


class Repair:
    """Checks typed answers and calls; shows the model what is wrong, up to `times` times. Free text streams through.

    What nothing gave (see `Prompt.ground`) is shown once; whoever asks leaves it out after that.
    """

    def __init__(self, model: Model, times: int = 2) -> None:
        self.name = model.name
        self._model = model
        self._times = max(0, times)

    def reply(self, request: Request) -> AsyncGenerator[Part]:
        passes = request.options or (request.schema is None and not request.tools)
        return self._model.reply(request) if passes else self._checked(request)

    async def _checked(self, request: Request) -> AsyncGenerator[Part]:
        used: list[Usage] = []
        doubted = text = ""
        for left in range(self._times, -1, -1):
            try:
                text, calls, usage = await gather_reply(self._model, request)
            except ReplyInvalid as error:  # it went on and on
                request, wrong, text = request.then(_check(str(error))), str(error), ""
                continue
            used += [usage] if usage else []
            text, calls = _as_meant(request, text, calls)
            turns, wrong, reply = _complaints(request, text, calls)
            if not wrong and not calls and left and not doubted and (turns := _doubts(request, text, reply)):
                doubted = text
            elif not wrong:
                for part in _whole(text, calls, used):
                    yield part
                return
            request = request.then(*turns)
        if doubted:  # better than nothing: it fits, but for what nothing gave
            for part in _whole(doubted, (), used):
                yield part
            return
        label = request.prompt.label()
        raise ReplyInvalid(f"{self.name} answered {label!r} {self._times + 1} times, never as asked: {wrong}", text)


def _complaints(request: Request, text: str, calls: tuple[Call, ...]) -> tuple[tuple[Message, ...], str, Any]:
    """Return the turns that show a model its mistake, and the mistake; where there is none, the reply as read."""
    if not calls:
        try:
            return (), "", request.prompt.parse(text)
        except ReplyInvalid as error:
            return _shown(text, str(error)), str(error), None
    found = [complaint(call, request.tools) for call in calls]
    if not any(found):
        return (), "", None
    # The protocol wants an answer to each call, also to those that were right.
    answers = (
        Message("tool", escaped(wrong or "Not run: another call beside it was wrong."), call_id=call.id, tool=call.tool)
        for call, wrong in zip(calls, found, strict=True)
    )
    return (Message("assistant", text[:_SHOWN], calls), *answers), " ".join(filter(None, found)), None


def _doubts(request: Request, text: str, reply: Any) -> tuple[Message, ...]:
    """Return the turns that show a model what in its answer nothing gave; none where there is no such thing."""
    _, doubt = request.prompt.ground(reply, request.turns)
    return _shown(text, doubt) if doubt else ()


def _shown(text: str, wrong: str) -> tuple[Message, Message]:
    return Message("assistant", text[:_SHOWN]), _check(wrong)


def _check(wrong: str) -> Message:
    return Message("user", f"(A check of your reply, not the user:) {escaped(wrong)}")


def _whole(text: str, calls: tuple[Call, ...], used: list[Usage]) -> list[Part]:
    parts: list[Part] = [Piece(text)] if text else []
    parts += [call if call.arguments.strip() else replace(call, arguments="{}") for call in calls]
    return [*parts, total(used)] if used else parts


def total(used: list[Usage]) -> Usage:
    """Add up what several answers took; the price is known where each one is."""
    costs = [usage.cost_usd for usage in used]
    known = [cost for cost in costs if cost is not None]
    return Usage(
        sum(usage.input_tokens for usage in used),
        sum(usage.output_tokens for usage in used),
        sum(known) if len(known) == len(costs) else None,
        sum(usage.cached_tokens for usage in used),
    )


# Read calls as they are meant.


def _as_meant(request: Request, text: str, calls: tuple[Call, ...]) -> tuple[str, tuple[Call, ...]]:
    """Return calls with their tools' own names and with arguments as one JSON object, where they can be read so.

    A call without any tool to call is a typed reply in the form of a call.
    """
    if calls and not request.tools and request.schema is not None:
        return (text or calls[0].arguments) if len(calls) == 1 else text, ()
    return text, tuple(_call_as_meant(each, request.tools) for each in calls)


def _call_as_meant(call: Call, tools: Sequence[ToolSpec]) -> Call:
    tool = named_tool(call.tool, tools)
    try:
        found = read_object(call.arguments)
    except ReplyInvalid:
        return call if tool is None else replace(call, tool=tool.name)
    fitted = fit(found, tool.parameters) if tool else found
    if fitted != _strict(call.arguments):
        call = replace(call, arguments=json.dumps(fitted, ensure_ascii=False))
    return call if tool is None else replace(call, tool=tool.name)


def _strict(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


# Check a call's arguments against its tool's JSON Schema, before anything is called.


def complaint(call: Call, tools: Sequence[ToolSpec]) -> str | None:
    """Say what is wrong with a call, in words for the model, or None."""
    tool = next((tool for tool in tools if tool.name == call.tool), None)
    if tool is None:
        return f"There is no tool {call.tool!r}. There are: {', '.join(tool.name for tool in tools)}."
    try:
        arguments = read_object(call.arguments)
    except ReplyInvalid as error:
        why = str(error).rstrip(".")
        return f"The arguments of {call.tool!r} are not JSON that can be read: {why}."
    found = find_faults(clean(arguments), tool.parameters)
    return f"The arguments of {call.tool!r} do not fit: {'; '.join(found)}." if found else None
