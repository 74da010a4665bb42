"""Wrappers that recover from failing requests and unusable replies, each for one cause.

- `Limit` bounds the number of parallel requests.
- `Retry` repeats failed requests.
- `Breaker` pauses all requests during an outage.
- `Fallback` asks the next model if one fails; it is used only if the user configured it.
- `Fit` shortens a request that is too long.
- `Guard` ends endless repetitions.
- `Repair` lets the model correct an answer of the wrong form.
- `Mend` parses an answer that remains invalid JSON as JSON5.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing, suppress
from contextvars import ContextVar
from dataclasses import replace
from functools import lru_cache
from itertools import count
from typing import Any

from mindstream.chance import fraction, token
from mindstream.clock import Clock, SystemClock
from mindstream.errors import (
    BudgetSpent,
    ModelError,
    ModelResting,
    ModelSilent,
    ModelUnavailable,
    PromptTooLong,
    RateLimited,
    ReplyInvalid,
)
from mindstream.models.fitting import fit, mend_json, named_tool, read_object
from mindstream.models.model import (
    Call,
    Cut,
    Layer,
    Layered,
    Message,
    Model,
    Part,
    Piece,
    Request,
    ToolSpec,
    Usage,
    all_tokens,
    estimate_tokens,
)
from mindstream.models.prompt import gather_reply
from mindstream.models.reply import clean
from mindstream.models.schema import find_faults
from mindstream.models.untrusted import escaped, is_visible
from mindstream.models.wrappers.meter import Metered

EMPTY = "It has no text. Write the reply again, in words."
MAX_SHOWN = 4_000
"""Maximum number of characters of a wrong answer that are sent back to the model."""


class Repair(Layered):
    """Checks typed answers and calls, and lets the model correct mistakes up to `times` times.

    Without tools, free text is passed on as it arrives. If the text is empty, the model is asked once more, unless
    `times` is 0.

    An answer may have unsupported parts (see `Prompt.ground`). The model is asked only once to correct them; the caller
    removes the parts that remain.
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
    """Return the turns that show a model its mistake, the mistake, and the parsed reply.

    The mistake is "" if there is none. The parsed reply is None for tool calls, or after a mistake.
    """
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
    """Return a call with the exact name of the tool. If the arguments can be parsed, they become one JSON object."""
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
    """Wraps `Repair`: if the last attempt fails, its reply is mended by `mend_json`, and accepted if it is then valid.

    This applies to requests with a schema. The call is reported as `mended`. The reply is checked like any other.
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


MARKS = (
    r"<\|[A-Za-z_]{2,30}\|>|<｜[^｜\n]{2,30}｜>|</?(?:start|end)_of_turn>|\[/?INST\]|<</?SYS>>"
    r"|^[ \t]*# (?:system|user|assistant)[ \t]*$"
    r"|^[ \t]*### ?(?:Instruction|Human|Assistant|Response|User|Input)s?:"
)
"""Marks of roles and turns in the usual chat templates, and in this project's prompt texts."""
TAGS = re.compile(r"""data\(\s*["'](\w+)["']""")
"""The tags that delimit untrusted text in a prompt's template."""
USER = re.compile(r"^[ \t*]*(?:user|human)[ *]*:", re.IGNORECASE | re.MULTILINE)
TURN = re.compile(r"^[ \t*]*(?:user|human|assistant|system|coach)[ *]*:", re.IGNORECASE | re.MULTILINE)
OPEN_MARK = re.compile(r"(?:<[^<>\n]{0,60}|<</?[SY]{0,3}>?|\[/?[INST]{0,4}|(?:^|\n)[ \t]*#{1,3}[^\n]{0,20})$")
"""A possible beginning of a mark at the end of a text; the next piece may complete it."""
OPEN_TURN = re.compile(r"(?:^|\n)[ \t*]*([A-Za-z]{0,9})[ *]*$")
ROLES = ("user", "human")
MARK_SIGNS = frozenset("<[#:\n|>")
STEP, STEPS = 48, 8
"""Interval of checks for repetitions at the reply's end, in characters; each STEPS-th check covers the whole window."""
NEAR = 40
"""Maximum distance of a mark from the beginning of its line, in characters."""
LINES = 2
"""A line such as `User: ann` is part of the answer if more than this number of lines follow without another turn."""


class Guard(Layered):
    """Passes a reply on up to the point at which the reply degenerates, and ends the reply there.

    - The text before this point stays. Free text is an answer. Structured data is parsed, and is invalid if incomplete.
    - A mark of a prompt or of another turn (`<|im_end|>`, `### User:`) does not count in a code block or after a
      backtick.
    - A line such as `User:` counts only if another turn follows, or if the line ends the reply after a blank line.

    Args:
        only_words: whether to pass on structured data unchecked, for a model whose grammar limits the length of the
            data.
    """

    def __init__(self, inner: Model, *, only_words: bool = False) -> None:
        super().__init__(inner)
        self._only_words = only_words

    def layer(self, request: Request) -> Layer:
        passes = self._only_words and request.schema is not None
        return Layer(self.inner, request) if passes else _Guarded(self.inner, request)


class _Guarded(Layer):
    def __init__(self, inner: Model, request: Request) -> None:
        super().__init__(inner, request)
        self._text = GuardedText(_marks(request.words if request.words is not None else request.prompt.words()))

    def take(self, part: Part) -> Sequence[Part]:
        passed = self._text.read(part.text) if isinstance(part, Piece) else self._text.finish()
        self.ended = isinstance(part, Piece) and self._text.ended
        rest = () if isinstance(part, Piece) else (part,)
        return (Piece(passed), *rest) if passed else rest

    def end(self) -> Sequence[Part]:
        rest = self._text.finish()
        return (Piece(rest),) if rest else ()


class GuardedText:
    """Passes a reply's text on, except for an end that may be a mark or the beginning of another speaker's turn.

    Such an end is held back until more text shows what it is. Once the reply has `ended`, the rest is dropped.
    """

    def __init__(self, marks: re.Pattern[str]) -> None:
        self.ended, self._marks, self._text = False, marks, ""
        self._shown = self._looked = self._judged = 0

    def read(self, piece: str) -> str:
        """Add a piece; return the text that can be passed on now."""
        held = self._shown < len(self._text)
        text = self._text = self._text + piece
        safe = len(text)
        if held or safe < NEAR or text.find("\n", safe - NEAR) >= 0 or not MARK_SIGNS.isdisjoint(piece):
            safe = self._safe(text)
        if not self.ended and len(text) // STEP > self._looked:
            self._looked = len(text) // STEP
            self.ended = (repeats_its_end if self._looked % STEPS else goes_in_circles)(text)
            safe = self._shown if self.ended else safe
        shown, self._shown = self._shown, max(self._shown, safe)
        return text[shown:safe]

    def finish(self) -> str:
        """Return the text that was still held back, at the end of the reply; "" if it is not part of the answer."""
        rest, self._shown = self._text[self._shown :], len(self._text)
        alone = USER.match(rest) and self._text[: -len(rest)].endswith("\n\n")
        return "" if self.ended or alone else rest

    def _safe(self, text: str) -> int:
        """Return how many characters of a text can be passed on.

        The text can be passed on up to a mark of a prompt (`<|im_end|>`, …), a turn of another speaker, or the possible
        beginning of a mark or turn. Set `ended` if there is a mark or a turn of another speaker.
        """
        line = text.rfind("\n", 0, self._shown) + 1
        for found in self._marks.finditer(text, line):
            if not _is_quoted(text, found.start()):
                self.ended = True
                return len(text[: found.start()].rstrip())
        ends = [len(text), self._turn(text, line)]
        before = max(line - 1, 0)
        if mark := OPEN_MARK.search(text, before):
            ends.append(mark.start())
        if (turn := OPEN_TURN.search(text, before)) and any(role.startswith(turn[1].lower()) for role in ROLES):
            ends.append(turn.start())
        return min(ends)

    def _turn(self, text: str, line: int) -> int:
        """Return the position at which another speaker's turn begins or may begin; the text's length if there is none.

        Set `ended` to whether a turn certainly begins there.
        """
        for found in USER.finditer(text, max(line, self._judged)):
            if _is_quoted(text, found.start()):
                continue
            self.ended = TURN.search(text, found.end()) is not None
            if self.ended or text.count("\n", found.end()) <= LINES:
                return found.start()
            self._judged = found.end()
        return len(text)


def _is_quoted(text: str, at: int) -> bool:
    return text[max(0, at - 1) : at] == "`" or text.count("```", 0, at) % 2 == 1


@lru_cache(256)
def _marks(words: str) -> re.Pattern[str]:
    tags = "|".join(sorted(set(TAGS.findall(words))))
    return re.compile(rf"{MARKS}|</?(?:{tags})\b[^<>\n]{{0,60}}>" if tags else MARKS, re.MULTILINE)


# The rest of this module detects repetition: small models fall into loops that they do not leave.

WINDOW = 4_000
"""Length of the text's end that is checked, in characters."""
PROBE = 24
TIMES, MIN_LENGTH = 12, 48
"""Minimum number of repetitions of a few words, and their minimum total length in characters, for a text to be in a
loop."""
LONG_UNIT, LONG_TIMES = 40, 4
"""LONG_UNIT: minimum length, in characters, of a repeated unit that counts as long. LONG_TIMES: minimum number of
adjacent repetitions of a long unit for a text to be in a loop."""
MIN_SIGNS = 400
"""Repetitions without a letter (such as the lines of a table) count as a loop only if they have at least this many
characters in total."""
LINE_TIMES, LINE_LETTERS = 8, 12
"""A reply repeats itself if its end has the same line (apart from list numbers) at least LINE_TIMES times. The line
must have at least LINE_LETTERS letters."""
MIN_WORDS, MIN_NEW = 150, 0.12
"""MIN_WORDS: minimum number of words of a text that is checked. MIN_NEW: minimum share of distinct sequences of three
words at the end of a text. Below this share, the text is in a loop."""
NUMBER = re.compile(r"^\s*(?:\d+[.):]|[-*•])\s*")


def goes_in_circles(text: str) -> bool:
    """Return whether a text repeats itself at its end. Within a code block, only adjacent repetitions count."""
    tail = text[-WINDOW:]
    if repeats_its_end(tail):
        return True
    return text.count("```") % 2 == 0 and (_repeats_a_line(tail) or _repeats_sequences(tail))


def repeats_its_end(text: str) -> bool:
    """Return whether a text ends in adjacent repetitions of one unit. This takes about a microsecond."""
    tail = text[-WINDOW:]
    probe = tail[-PROBE:]
    before = tail.rfind(probe, 0, len(tail) - 1)
    if len(probe) < PROBE or before < 0:
        return False
    period = len(tail) - PROBE - before
    unit, times = tail[-period:], 1
    while tail.endswith(unit, 0, len(tail) - times * period):
        times += 1
    if not any(map(str.isalpha, unit)):
        return times * period >= MIN_SIGNS
    if period >= LONG_UNIT:
        return times >= LONG_TIMES
    return times >= TIMES and times * period >= MIN_LENGTH


def _repeats_a_line(tail: str) -> bool:
    counted = Counter(NUMBER.sub("", line).strip() for line in tail.split("\n"))
    return any(times >= LINE_TIMES and sum(map(str.isalpha, line)) >= LINE_LETTERS for line, times in counted.items())


def _repeats_sequences(tail: str) -> bool:
    words = re.findall(r"\w+", tail)
    threes = list(zip(words, words[1:], words[2:], strict=False))[-2 * MIN_WORDS :]
    return len(words) >= MIN_WORDS and len(set(threes)) < MIN_NEW * len(threes)


MAX_ATTEMPTS = 4
USABLE_SHARE = 0.95
"""Share of the window that is used, since token counts are estimates."""
MAX_OLD_RESULT = 500
"""Length, in characters, to which an older tool result is shortened. A result up to twice as long is not shortened."""
MAX_TEXTS = (4_000, 2_000, 1_000, 500)
"""Successive limits for the length of texts in characters; the beginning and the end of a text stay."""


def room(request: Request, window: int) -> tuple[int, int]:
    """Divide a context window: return the tokens for the request, and for the reply with its thoughts."""
    reply = min(all_tokens(request), window // 3)
    return int(window * USABLE_SHARE) - reply, reply


class Fit(Layered):
    """Shortens requests that do not fit the model's context window.

    If `window` (in tokens) is known, a request is shortened before it is sent. Otherwise a request is shortened after
    the endpoint refused it, and sent again. The window's size and the token count that the endpoint reports are stored
    for later requests.
    """

    def __init__(self, inner: Model, window: int | None = None) -> None:
        super().__init__(inner)
        self._window, self._longest_reply, self._counts = window, 0, 1.0

    def layer(self, request: Request) -> Layer:
        return _Fitted(self, request)

    def learn(self, asked: Request, error: PromptTooLong) -> int | None:
        """Store the limits that the error reports, and return the number of tokens to which to shorten the request.

        The result is two thirds of the request's tokens. It is None if the error reports the maximum length of a reply,
        or a new context window: `fitted` then applies this limit.
        """
        if error.longest_reply:
            self._longest_reply = error.longest_reply
            return None
        if error.counted:
            self._counts = max(self._counts, min(10.0, error.counted / asked.tokens))
        if error.window and error.window != self._window:
            self._window = error.window
            return None
        return asked.tokens * 2 // 3

    def fitted(self, request: Request, aim: int | None = None) -> Request:
        """Return the request with the known limit of its reply, shortened to the known context window.

        Args:
            aim: a second limit of the request in tokens, besides the context window; None: no second limit.
        """
        if self._longest_reply and not request.longest_reply:
            request = request.but(longest_reply=self._longest_reply)
        if self._window:
            known, reply = room(request, self._window)
            request = request.but(longest_reply=reply)
            aim = min(aim or known, int(known / self._counts))
        return request if aim is None else shorten(request, aim)


class _Fitted(Layer):
    def __init__(self, fit: Fit, request: Request) -> None:
        super().__init__(fit.inner, fit.fitted(request))
        self._fit, self._whole, self._attempts = fit, request, 1

    async def again(self, failure: Exception | None) -> bool:
        if not isinstance(failure, PromptTooLong):
            return False
        aim = self._fit.learn(self.request, failure)
        if aim is not None:  # the reply that was requested may be too long, too: request a shorter one
            self._whole = self._whole.but(longest_reply=all_tokens(self.request) // 2)
        shorter = self._fit.fitted(self._whole, aim)
        if self.begun or self._attempts == MAX_ATTEMPTS or shorter == self.request:
            return False
        self.request, self._attempts = shorter, self._attempts + 1
        return True


def shorten(request: Request, room: int) -> Request:
    """Return a request of at most `room` tokens if possible. The `cut` of a shortened request lists the removed parts.

    Parts are removed in this order:

    - items of the prompt's lists, in the order of `Prompt.trim_order`,
    - parts of tool results, the oldest result first,
    - the middle of long texts, even of the newest utterance.

    Static text stays.
    """
    if request.tokens <= room:
        return request
    request = _without_items(request, room)
    for step in (_cut_results, _cut_texts):
        for shorter in step(request):
            if request.tokens <= room:
                return request
            request = shorter
    return request


def _without_items(request: Request, room: int) -> Request:
    """Remove items from the prompt's lists, field by field, until the request fits."""
    for name, keep in request.prompt.trim_order:
        items, over, gone = getattr(request.prompt, name, ()), request.tokens - room, 0
        for item in items if keep == "last" else reversed(items):
            if over <= 0:
                break
            over -= estimate_tokens(str(item))
            gone += 1
        if gone:
            kept = items[gone:] if keep == "last" else items[: len(items) - gone]
            request = _changed(request, {name: kept}, Cut(name, items=gone))
    return request


def _cut_results(request: Request) -> Iterator[Request]:
    """Shorten the long results of tools, the oldest first; yield the request after each of them."""
    turns = list(request.turns)
    for place, turn in enumerate(turns):
        if turn.role == "tool" and len(turn.text) > 2 * MAX_OLD_RESULT:
            turns[place] = replace(turn, text=_without_middle(turn.text, MAX_OLD_RESULT))
            cut = Cut("turns", characters=len(turn.text) - len(turns[place].text))
            request = request.but(turns=tuple(turns), cut=(*request.cut, cut))
            yield request


def _cut_texts(request: Request) -> Iterator[Request]:
    """Remove the middle of long texts; yield a shorter request for each limit in MAX_TEXTS."""
    for longest in MAX_TEXTS:
        changes, cuts = dict[str, Any](), list[Cut]()
        for name in type(request.prompt).model_fields:
            before = getattr(request.prompt, name)
            after = _without_middle(before, longest)
            if after != before:
                changes[name] = after
                cuts.append(Cut(name, characters=len(str(before)) - len(str(after))))
        if changes:
            request = _changed(request, changes, *cuts)
            yield request


def _without_middle(value: Any, longest: int) -> Any:
    """Return a text without its middle if the text is too long. Treat each text of a tuple of texts in this way. Return
    any other value as it is."""
    if isinstance(value, tuple) and all(isinstance(item, str) for item in value):
        return tuple(_without_middle(item, longest) for item in value)
    half = longest // 2
    return f"{value[:half]} … {value[-half:]}" if isinstance(value, str) and len(value) > longest else value


def _changed(request: Request, fields: dict[str, Any], *cuts: Cut) -> Request:
    return request.but(prompt=request.prompt.model_copy(update=fields), cut=(*request.cut, *cuts))


LOG = logging.getLogger("mindstream.models")
FIRST_REST_S, MAX_WISH_S = 5.0, 300.0
"""Duration in seconds of the first rest in an outage, and of the longest rest that an endpoint may ask for."""


class Limit(Layered):
    """Lets `at_once` requests run at the same time; the others wait."""

    def __init__(self, inner: Model, at_once: int = 8) -> None:
        super().__init__(inner)
        if at_once < 1:
            raise ValueError(f"at_once must be at least 1, not {at_once}")
        self._room = asyncio.Semaphore(at_once)

    def layer(self, request: Request) -> Layer:
        return _Limited(self.inner, request, self._room)


class _Limited(Layer):
    def __init__(self, inner: Model, request: Request, room: asyncio.Semaphore) -> None:
        super().__init__(inner, request)
        self._room = room

    async def begin(self) -> None:
        await self._room.acquire()

    def close(self, failure: BaseException | None) -> None:  # noqa: ARG002
        self._room.release()


class Pauses:
    """Computes the pauses before a failed request is repeated, for at most `attempts` attempts.

    The pause is as long as the endpoint asks for. If it does not ask, the pause is `base_s`, doubled after each attempt
    up to `longest_s`, minus a random part of up to half. A request is not repeated if the endpoint asks for more than
    `longest_s`, or timed out.
    """

    def __init__(
        self,
        name: str,
        attempts: int = 3,
        *,
        base_s: float = 0.5,
        longest_s: float = 30.0,
        seed: int | str | None = None,
    ) -> None:
        self._name, self._attempts = name, max(1, attempts)
        self._base_s, self._longest_s = base_s, longest_s
        self._seed, self._draws = token() if seed is None else seed, count()

    def after(self, attempt: int, error: ModelUnavailable) -> float | None:
        """Return the pause in seconds after a failed attempt; None: do not ask again.

        Args:
            attempt: the number of the failed attempt, counted from 1.
        """
        if isinstance(error, RateLimited) and error.retry_after_s is not None:
            pause_s = error.retry_after_s
        else:
            random = fraction(self._seed, "retry", self._name, next(self._draws))
            pause_s = min(self._longest_s, self._base_s * 2.0 ** (attempt - 1)) * (1 - random / 2)
        over = isinstance(error, ModelSilent) or attempt >= self._attempts or not pause_s <= self._longest_s
        return None if over else pause_s


class Retry(Layered):
    """Repeats requests that failed because the model was unavailable, with pauses between the attempts (`Pauses`).

    A request is not repeated after a part of its answer has been passed on.
    """

    def __init__(
        self,
        inner: Model,
        attempts: int = 3,
        *,
        clock: Clock | None = None,
        base_s: float = 0.5,
        longest_s: float = 30.0,
        seed: int | str | None = None,
    ) -> None:
        super().__init__(inner)
        self._clock = clock or SystemClock()
        self._pauses = Pauses(inner.name, attempts, base_s=base_s, longest_s=longest_s, seed=seed)

    def layer(self, request: Request) -> Layer:
        return _Retried(self.inner, request, self._pauses, self._clock)


class _Retried(Layer):
    def __init__(self, inner: Model, request: Request, pauses: Pauses, clock: Clock) -> None:
        super().__init__(inner, request)
        self._pauses, self._clock, self._attempts = pauses, clock, count(1)

    async def again(self, failure: Exception | None) -> bool:
        if not isinstance(failure, ModelUnavailable):
            return False
        pause_s = self._pauses.after(next(self._attempts), failure)
        if self.begun or pause_s is None:
            return False
        await self._clock.sleep(pause_s)
        return True


class Breaker(Layered):
    """A circuit breaker: in an outage, calls fail at once during a rest. Then a single call is made as a trial.

    The first rest lasts FIRST_REST_S, and each failed trial doubles the rest, up to `longest_s`. If the endpoint asks
    for a longer rest, the rest lasts as long as it asks for, up to MAX_WISH_S. The outage ends with a reply, or with a
    refusal, because an endpoint that refuses is available. The log names the beginning and the end of an outage. All
    callers of a model share one breaker.
    """

    def __init__(self, inner: Model, *, clock: Clock | None = None, longest_s: float = 60.0) -> None:
        super().__init__(inner)
        self._clock, self._longest_s = clock or SystemClock(), longest_s
        self._rest_s = self._until = 0.0
        self._why, self._trying, self._outages = "", False, 0

    def layer(self, request: Request) -> Layer:
        return _Watched(self, request)

    def admit(self) -> tuple[bool, int]:
        """Let a call through unless the model rests. Return whether the call is a trial, and the number of outages so
        far.

        Raises:
            ModelResting: the model rests, or another call is a trial.
        """
        if not self._why:
            return False, self._outages
        left_s = self._until - self._clock.elapsed()
        if left_s > 0:
            raise ModelResting(f"{self.name} is not called for {max(1.0, left_s):.0f} s, after: {self._why}", left_s)
        if self._trying:
            raise ModelResting(f"another call tests whether {self.name} is available again, after: {self._why}", 1.0)
        self._trying = True
        return True, self._outages

    def note_part(self) -> None:
        """Note that a part of a reply has arrived, which ends the outage. Only a complete reply or a refusal resets the
        length of the next rest."""
        if self._why:
            self._trying = False
            self._end_outage()

    def _end_outage(self) -> None:
        if self._why:
            LOG.warning("the model %s answers again", self.name)
        self._why = ""

    def note_end(self, failure: BaseException | None, outages: int, *, is_trial: bool) -> None:
        """Note the end of a call that began after this number of outages.

        Of simultaneous calls, only the first failure counts.
        """
        if is_trial:
            self._trying = False
        if failure is None:
            self._rest_s = 0.0
        elif isinstance(failure, ModelUnavailable):
            if outages == self._outages:
                wished_s = (failure.retry_after_s or 0.0) if isinstance(failure, RateLimited) else 0.0
                backoff_s = min(self._longest_s, max(FIRST_REST_S, 2 * self._rest_s))
                self._rest_s = max(backoff_s, min(MAX_WISH_S, wished_s))
                self._until = self._clock.elapsed() + self._rest_s
                if not self._why:
                    LOG.warning("the model %s is not available: %s", self.name, type(failure).__name__)
                self._why, self._outages = str(failure), outages + 1
        elif isinstance(failure, ModelError) and not isinstance(failure, BudgetSpent):
            self._rest_s = 0.0
            self._end_outage()


class _Watched(Layer):
    def __init__(self, breaker: Breaker, request: Request) -> None:
        super().__init__(breaker.inner, request)
        self._breaker, self._is_trial, self._outages = breaker, False, 0

    async def begin(self) -> None:
        self._is_trial, self._outages = self._breaker.admit()

    def take(self, part: Part) -> Sequence[Part]:
        self._breaker.note_part()
        return (part,)

    def close(self, failure: BaseException | None) -> None:
        self._breaker.note_end(failure, self._outages, is_trial=self._is_trial)


class Fallback(Layered):
    """Asks its models in order until one answers; a model that fails in the middle of a reply is not replaced."""

    def __init__(self, models: Sequence[Model]) -> None:
        super().__init__(models[0])
        self._models = tuple(models)
        self._answered: ContextVar[str] = ContextVar("answered", default=models[0].name)

    @property
    def name(self) -> str:
        """The name of the model that answered the last request of the current asyncio task.

        Before the first answer, it is the name of the first model.
        """
        return self._answered.get()

    def layer(self, request: Request) -> Layer:
        return _Replaced(self._models, request, self._answered)


class _Replaced(Layer):
    def __init__(self, models: tuple[Model, ...], request: Request, answered: ContextVar[str]) -> None:
        super().__init__(models[0], request)
        self._others, self._answered = list(models[1:]), answered

    async def start(self) -> None:
        self._answered.set(self.inner.name)

    async def again(self, failure: Exception | None) -> bool:
        if self.begun or not self._others or not isinstance(failure, ModelError):
            return False
        self.inner = self._others.pop(0)
        return True
