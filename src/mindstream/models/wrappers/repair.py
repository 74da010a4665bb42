"""Let a model correct an answer of the wrong form; if it remains invalid JSON, try to parse it as JSON5."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Any

from mindstream.errors import ReplyInvalid
from mindstream.models.ask import gather_reply
from mindstream.models.clean_text import is_visible
from mindstream.models.delimiters import escaped
from mindstream.models.fitting import fit, mend_json, named_tool, read_object
from mindstream.models.model import Call, Message, Model, Part, Piece, Request, ToolSpec, Usage
from mindstream.models.reply import clean
from mindstream.models.schema import find_faults
from mindstream.models.wrappers.layer import Layer, Layered
from mindstream.models.wrappers.meter import Metered

EMPTY = "It has no text. Write the reply again, in words."
MAX_SHOWN = 4_000
"""Maximum number of characters of a wrong answer that are sent back to the model."""


class Repair(Layered):
    """Checks typed answers and calls, and lets the model correct mistakes up to `times` times.

    Free text is passed on as it arrives, if no tools are offered. If it is empty, the model is asked once more, unless
    `times` is 0. The model is asked only once to correct an answer with unsupported parts (see `Prompt.ground`); parts
    that remain are removed by the caller.
    """

    def __init__(self, inner: Model, times: int = 2) -> None:
        super().__init__(inner)
        self._times = max(0, times)

    def layer(self, request: Request) -> Layer | None:
        is_spoken = request.schema is None and not request.tools
        if request.options or request.continuation or (is_spoken and not self._times):
            return Layer(self.inner, request)
        return _Spoken(self.inner, request) if is_spoken else None

    def reply(self, request: Request) -> AsyncGenerator[Part]:
        return self._checked(request) if self.layer(request) is None else super().reply(request)

    async def _checked(self, request: Request) -> AsyncGenerator[Part]:
        used: list[Usage] = []
        doubted = text = wrong = ""
        for left in range(self._times, -1, -1):
            try:
                text, calls, usage = await gather_reply(self.inner, request)
            except ReplyInvalid as error:  # the reply exceeded its limits
                text, wrong = "", str(error)
                request = request.then(_check(wrong))
                continue
            used += [usage] if usage else []
            if calls and not request.tools and request.schema is not None:  # a typed reply in the form of a call
                text, calls = (text or calls[0].arguments) if len(calls) == 1 else text, ()
            calls = tuple(_corrected(each, request.tools) for each in calls)
            turns, wrong, reply = _complaints(request, text, calls)
            checks = not wrong and not calls and left and not doubted
            if doubt := request.prompt.ground(reply, request.turns)[1] if checks else "":
                doubted, turns = text, _shown(text, doubt)
            if not turns:
                break
            request = request.then(*turns)
        else:
            if not doubted:
                label = request.prompt.label()
                wrong = f"{self.name} gave {self._times + 1} invalid answers to the prompt {label!r}; the last: {wrong}"
                raise ReplyInvalid(wrong, text)
            text, calls = doubted, ()  # this answer is valid, except for its unsupported part
        if text:
            yield Piece(text)
        for call in calls:
            yield call if call.arguments.strip() else replace(call, arguments="{}")
        if used:
            yield _sum(used)


class _Spoken(Layer):
    """Passes free text on; has the model asked a second time if the first reply has no visible text."""

    def __init__(self, inner: Model, request: Request) -> None:
        super().__init__(inner, request)
        self._used: list[Usage] = []
        self._has_text = self._is_second = False

    def take(self, part: Part) -> Sequence[Part]:
        if isinstance(part, Usage):
            self._used.append(part)
            return ()
        self._has_text = self._has_text or not isinstance(part, Piece) or is_visible(part.text)
        return (part,)

    async def again(self, failure: Exception | None) -> bool:
        if self._has_text or self._is_second or not (failure is None or isinstance(failure, ReplyInvalid)):
            return False
        self.request, self._is_second = self.request.then(_check(EMPTY)), True
        return True

    def end(self) -> Sequence[Part]:
        return (_sum(self._used),) if self._used else ()


def _complaints(request: Request, text: str, calls: tuple[Call, ...]) -> tuple[tuple[Message, ...], str, Any]:
    """Return the turns that show a model its mistake, the mistake, and the parsed reply if there is no mistake."""
    if not calls:
        try:
            return (), "", request.prompt.parse(text)
        except ReplyInvalid as error:
            return _shown(text, str(error)), str(error), None
    found = [complaint(call, request.tools) for call in calls]
    if not any(found):
        return (), "", None
    # The protocol requires a result for each call, also for those without a mistake.
    answers = (
        Message("tool", escaped(wrong or "Not run: another call beside it was wrong."), call_id=call.id, tool=call.tool)
        for call, wrong in zip(calls, found, strict=True)
    )
    return (Message("assistant", text[:MAX_SHOWN], calls), *answers), " ".join(filter(None, found)), None


def _shown(text: str, wrong: str) -> tuple[Message, Message]:
    return Message("assistant", text[:MAX_SHOWN]), _check(wrong)


def _check(wrong: str) -> Message:
    return Message("user", f"(A check of your reply, not the user:) {escaped(wrong)}")


def _sum(used: Sequence[Usage]) -> Usage:
    costs = [each.cost_usd for each in used if each.cost_usd is not None]
    return Usage(
        sum(each.input_tokens for each in used),
        sum(each.output_tokens for each in used),
        sum(costs) if len(costs) == len(used) else None,
        sum(each.cached_tokens for each in used),
    )


def _corrected(call: Call, tools: Sequence[ToolSpec]) -> Call:
    """Return a call with the tool's exact name, and with its arguments as one JSON object if they can be parsed."""
    tool = named_tool(call.tool, tools)
    if tool is not None:
        call = replace(call, tool=tool.name)
    try:
        found = read_object(call.arguments)
    except ReplyInvalid:
        return call
    fitted = fit(found, tool.parameters) if tool else found
    with suppress(ValueError, RecursionError):
        if json.loads(call.arguments) == fitted:
            return call
    return replace(call, arguments=json.dumps(fitted, ensure_ascii=False))


def complaint(call: Call, tools: Sequence[ToolSpec]) -> str | None:
    """Check a call against its tool's schema before the tool is called; return a message for the model, or None."""
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


class Mend(Layered):
    """Wraps `Repair`: after its last attempt, accepts the last reply if it is valid when parsed as JSON5.

    The call is reported as `mended`; such a reply is checked like any other.
    """

    def layer(self, request: Request) -> Layer | None:
        return Layer(self.inner, request) if request.schema is None else None

    def reply(self, request: Request) -> AsyncGenerator[Part]:
        return super().reply(request) if request.schema is None else self._mended(request)

    async def _mended(self, request: Request) -> AsyncGenerator[Part]:
        calls = _DelayedCalls(request.on_call)
        try:
            async with aclosing(self.inner.reply(request.but(on_call=calls.take))) as parts:
                async for part in parts:
                    yield part
        except ReplyInvalid as error:
            mended = mend_json(error.reply)
            if mended is None:
                raise
            try:
                request.prompt.parse(mended)
            except ReplyInvalid:
                raise error from None
            if calls.last is not None:
                calls.last = replace(calls.last, mended=True)
            yield Piece(mended)
        finally:
            calls.take(None)


class _DelayedCalls:
    """Reports each call when the next one ends, because the last call may still be marked as mended."""

    def __init__(self, on_call: Callable[[Any], None] | None) -> None:
        self._on_call = on_call
        self.last: Metered | None = None

    def take(self, call: Metered | None) -> None:
        last, self.last = self.last, call
        if last is not None and self._on_call is not None:
            self._on_call(last)
