"""Read a reply: remove unprintable characters, separate the model's reasoning from its answer, parse JSON strictly.

Removed are characters that no file can store or that control a terminal. The marks around thoughts are those of the
reasoning parsers of vLLM, SGLang, llama.cpp and Ollama (docs/models.md has the table). Most chat templates let the
model write both marks. Some put the opening mark into the prompt, so that only the closing mark arrives: then all text
before it is thoughts. A quoted mark (in a code block, after a backtick or a quotation mark) is ordinary text. Of JSON
only complete values count.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, NoReturn

from mindstream.errors import ReplyInvalid
from mindstream.models.model import Call
from mindstream.models.untrusted import HALF, legible, without_controls


def _alternatives(tokens: str) -> str:
    return "|".join(map(re.escape, tokens.split()))


_TAGS = "think|thinking|thought|thoughts|reason|reasoning|reflection|scratchpad|seed:think|mm:think|longcat_think"
_MORE_OPEN = "◁think▷ <|START_THINKING|> <|begin_of_thought|> <|inner_prefix|> <|channel>thought"
_MORE_CLOSE = "◁/think▷ <|END_THINKING|> <|end_of_thought|> <|inner_suffix|> <channel|>"
_WRAPPERS = (
    "<|return|> <|end|> <|START_RESPONSE|> <|END_RESPONSE|> <|begin_of_solution|> <|end_of_solution|>"
    " <|begin_of_box|> <|end_of_box|>"
)
"""Marks around an answer; they are removed."""
_ENDS = (
    "<|im_end|> <|eot_id|> <|eom_id|> <|end_of_text|> <|endoftext|> <|END_OF_TURN_TOKEN|> <end_of_turn>"
    " <｜end▁of▁sentence｜> <|im_start|>assistant <|start_header_id|>assistant<|end_header_id|> <start_of_turn>model"
    " <|assistant|> <|begin_of_text|>"
)
"""Marks of a chat template around a turn, which servers with a wrong end token show; they are removed."""
_LAST = "</s> <eos> [/INST] <|user|> <|observation|>"
"""Marks that also occur in ordinary text: they are removed at the end of a reply only."""
_NEXT = (
    "<|im_start|>user <|im_start|>system <|im_start|>tool <|start_header_id|>user <|start_header_id|>system"
    " <|start_header_id|>ipython <start_of_turn>user <｜User｜>"
)
"""Marks that begin another role's turn. If one follows the end of the reply's own turn, the rest is dropped: there the
model only invents what others might say."""
_CHANNEL = r"(?:<\|start\|>assistant)?<\|channel\|>"
_ANSWERS = ("Here is my response:", "Here's my response:")
_THINKS = ("Here is my thought process:", "Here's my thought process:")
OPEN = rf"<(?:{_TAGS})>|(?-i:\[THINK\])|{_alternatives(_MORE_OPEN)}"
"""Opening marks, which may nest."""
CLOSE = rf"</(?:{_TAGS})>|(?-i:\[/THINK\])|{_alternatives(_MORE_CLOSE)}"
CHANNEL = rf"{_CHANNEL}(?!final)[^<]{{0,60}}(?:<\|constrain\|>\w{{1,20}})?<\|message\|>"
"""The mark that opens a gpt-oss channel other than `final`, which holds the answer."""
FINAL = rf"{_CHANNEL}final(?:[ ]?<\|constrain\|>\w{{1,20}})?<\|message\|>"
_PLAIN_ANSWERS = "|".join(map(re.escape, _ANSWERS))


def _compiled(pattern: str, flags: re.RegexFlag = re.IGNORECASE) -> re.Pattern[str]:
    return re.compile(pattern, flags)


START = _compiled("|".join(map(re.escape, _THINKS)) + r"|analysis(?=[A-Z\"'<\d])", re.NOFLAG)
"""Marks before thoughts that are ordinary words. They count only at the beginning of a reply: Granite's phrases, and
gpt-oss's "analysis" if a server has removed the special tokens."""
MARK = _compiled(
    rf"(?P<open>{OPEN})|(?P<close>{CLOSE})|(?P<channel>{CHANNEL})|(?P<final>{FINAL})"
    rf"|(?P<wrapper>{_alternatives(_WRAPPERS)})|(?P<turn>{_alternatives(_ENDS)})|(?P<next>{_alternatives(_NEXT)})"
)
CHANNEL_END = _compiled(rf"(?P<close><\|end\|>|<\|call\|>|{FINAL}|(?=<\|start\|>))")
PLAIN_END = _compiled(rf"(?P<close>{_PLAIN_ANSWERS}|assistantfinal)", re.NOFLAG)
LATE = _compiled(CLOSE)
SEEN = _compiled(rf"(?P<open>{OPEN})|(?P<close>{CLOSE}|{FINAL}|{_PLAIN_ANSWERS})")
"""Matches the marks that open or close thoughts, in a reply that is read as a whole."""
MAX_MARK = 120
"""Maximum length of a mark, in characters. A mark is a tag or phrase, such as `<think>`, at which thoughts or the
answer begin or end."""
_LITERALS = (
    *(f"<{slash}{tag}>" for tag in _TAGS.split("|") for slash in ("", "/")),
    *f"{_MORE_OPEN} {_MORE_CLOSE} {_WRAPPERS} {_ENDS} {_NEXT} {_LAST}".split(),
    *["[THINK]", "[/THINK]", "<|start|>assistant", "<|channel|>", "<|call|>"],
    *_ANSWERS,
    "assistantfinal",
    *(f"{mark}\n" for mark in _LAST.split()),
)
_BEGINNINGS = frozenset(mark[:end].lower() for mark in _LITERALS for end in range(len(mark) + 1))
"""All prefixes of all marks."""
_BEGINS = _compiled(r"[<◁]|\[/?(?:\Z|t(?:\Z|h(?:\Z|i(?:\Z|n(?:\Z|k))))|i(?:\Z|n(?:\Z|s)))")
"""Matches where a mark such as `<think>` or `[THINK]` may begin, even if the text ends within the mark. `[thing` and
`[i]` do not match."""
_STARTS = frozenset(mark[:end] for mark in (*_THINKS, "analysis") for end in range(1, len(mark) + 1))
"""All prefixes of the marks in START."""
_BEGINS_PLAIN = _compiled(r"[<Ha]")
_FENCES = ("```", "~~~")
_QUOTES = frozenset("`\"'“‘«„「『")


class Thinking:
    """Splits a reply's text, piece by piece, into thoughts and the answer.

    Args:
        typed: whether the answer is JSON. True: only thoughts before the answer are recognised, because the strings of
            the answer may contain marks.
        holds: whether to keep the answer back until `release`, `rest`, or a closing mark without an opening mark.

    Attributes:
        unopened: whether a closing mark arrived without an opening mark before it.
        opened: whether a mark opened thoughts.
        leaked: whether thoughts were passed on as the answer, before a closing mark without an opening mark arrived.
    """

    def __init__(self, *, typed: bool = False, holds: bool = False) -> None:
        self.unopened = self.opened = self.leaked = False
        self._typed, self._holds = typed, holds
        self._pending = ""
        """Text that may be the beginning of a mark."""
        self._fresh = True
        """Whether no word of the answer has arrived."""
        self._kept: list[str] = []
        self._passed = False
        self._depth = 0
        self._ends: re.Pattern[str] = MARK
        self._line = ""
        """The end of the thoughts' current line."""
        self._inline = False
        """Whether the innermost nested mark is in the middle of a line: then the thoughts may only mention the mark."""
        self._after: list[str] | None = None
        """Thoughts since the last closing mark, while an outer mark is open."""
        self._quoting = _Quoting()
        self._turned = self._over = False
        """`_turned`: whether the reply's own turn has ended, and no text followed. `_over`: whether another role's turn
        followed."""

    @property
    def holding(self) -> bool:
        """Whether a part of the answer is held back."""
        return bool(self._kept)

    def part(self, piece: str) -> tuple[str, str]:
        """Return the thoughts and the answer in a piece and in the text that was held back before it."""
        if self._over:
            return "", ""
        text, self._pending = self._pending + piece, ""
        thoughts: list[str] = []
        answers: list[str] = []
        at = 0
        while at < len(text):
            at = self._think(text, at, thoughts) if self._depth else self._answer(text, at, thoughts, answers)
        self._passed = self._passed or any(each.strip() for each in answers)
        return "".join(thoughts), "".join(answers)

    def release(self) -> str:
        """Return the answer that was held back; text that arrives later is passed on at once."""
        self._holds = False
        text, self._kept = "".join(self._kept), []
        self._passed = self._passed or bool(text.strip())
        return text

    def rest(self, *, truncated: bool = False) -> str:
        """Return the text that is still held back at the end of the reply; "" if the text is not part of the answer.

        Args:
            truncated: whether the reply was cut off. If this endpoint sends no opening marks, text held back from such
                a reply is an unfinished thought.
        """
        pending, self._pending = self._pending, ""
        if self._depth:
            mentioned = self._after is not None and self._inline and not truncated
            return "".join([*(self._after or ()), pending]) if mentioned else ""
        if truncated and self._holds:
            return ""
        if pending.strip() in _LAST.split() and not self._quoting.quoted and not self._quoting.struck:
            pending = ""
        return self.release() + pending

    def _think(self, text: str, at: int, thoughts: list[str]) -> int:
        """Read thoughts from the position `at` to the next mark; return the position up to which the text was read."""
        found = self._ends.search(text, at)
        if found is None or (found.lastgroup or "") not in ("open", "close"):
            end = found.end() if found else _begun(text, at, plain=self._ends is PLAIN_END)
            self._take(text[at:end], thoughts)
            self._pending = "" if found else text[end:]
            return end if found else len(text)
        self._take(text[at : found.start()], thoughts)
        if found.lastgroup == "open":
            if self._line[-1:] not in _QUOTES:
                self._depth += 1
                self._inline, self._after = bool(self._line.strip()), None
        else:
            self._depth -= 1
            self._after = [] if self._depth else None
        return found.end()

    def _take(self, text: str, thoughts: list[str]) -> None:
        thoughts.append(text)
        self._line = (self._line + text).rpartition("\n")[2][-40:]
        if self._after is not None:
            self._after.append(text)

    def _answer(self, text: str, at: int, thoughts: list[str], answers: list[str]) -> int:
        """Read the answer up to the end of the next mark; return that position, or the text's length if no mark
        follows."""
        if self._fresh:
            word = len(text) - len(text[at:].lstrip())
            if word == len(text):
                self._pending = text[at:]
                return word
            if found := START.match(text, word):
                self._depth, self._ends, self.opened, self._line = 1, PLAIN_END, True, ""
                return found.end()
            # perhaps the beginning of a mark: wait for more text
            if text[word : word + MAX_MARK] in _STARTS:
                self._pending = text[at:]
                return len(text)
        if (self._typed and not self._fresh) or not _BEGINS.search(text, at):  # most pieces: no mark begins in them
            self._say(text[at:], answers)
            return len(text)
        found = _next_mark(text, at)
        if found is not None and self._typed and text[at : found.start()].strip():
            found = None
        end = found.start() if found else _begun(text, at)
        said = text[at:end]
        blank = self._fresh and not said.strip()
        if said and not blank:
            self._say(said, answers)
        if found is None:
            self._pending = text[at if blank else end :]
            return len(text)
        if self._quoting.quoted or (found.lastgroup == "next" and not self._turned):
            self._say(found[0], answers)
        elif found.lastgroup == "next":
            self._over = True
            return len(text)
        elif found.lastgroup == "turn":
            self._turned = True
        elif found.lastgroup in ("open", "channel"):
            self._depth, self.opened, self._line = 1, True, ""
            self._ends = MARK if found.lastgroup == "open" else CHANNEL_END
        elif found.lastgroup == "close" or (found.lastgroup == "final" and not self._fresh):
            self._unopened(found[0], thoughts, answers)
        return found.end()

    def _say(self, text: str, answers: list[str]) -> None:
        self._quoting.add(text)
        self._fresh = False
        self._turned = self._turned and not text.strip()
        (self._kept if self._holds else answers).append(text)

    def _unopened(self, mark: str, thoughts: list[str], answers: list[str]) -> None:
        """Move all previous text to the thoughts, because their opening mark was in the prompt."""
        self.unopened = True
        thoughts += [*answers, *self._kept]
        self.leaked = self.leaked or self._passed
        answers[:] = [mark] if self._passed else []
        self._kept = []
        self._fresh, self._holds, self._quoting = True, False, _Quoting()


class _Quoting:
    """Recognises whether the end of a text that arrives in pieces is quoted, in time linear in the text.

    Most texts have no mark, so pieces are only read when a mark follows them.
    """

    def __init__(self) -> None:
        self._unread: list[str] = []
        self._fenced = self.struck = False
        """`struck`: whether the text has an HTML tag that `</s>` may close."""
        self._head, self._ticks, self._last = "", 0, ""

    @property
    def quoted(self) -> bool:
        self._read("".join(self._unread))
        self._unread.clear()
        return self._fenced or self._ticks % 2 == 1 or self._last in _QUOTES

    def add(self, text: str) -> None:
        self._unread.append(text)

    def _read(self, text: str) -> None:
        self.struck = self.struck or "<s>" in text
        first, *lines = text.split("\n")
        self._add(first)
        for line in lines:
            if self._head.lstrip().startswith(_FENCES):
                self._fenced = not self._fenced
            self._head, self._ticks, self._last = "", 0, ""
            self._add(line)

    def _add(self, text: str) -> None:
        self._head = (self._head + text[:12])[:12]
        self._ticks += text.count("`")
        self._last = text[-1:] or self._last


def _next_mark(text: str, at: int) -> re.Match[str] | None:
    """Return the first match of MARK at or after a position, or None; faster than `MARK.search`."""
    return next((mark for begin in _BEGINS.finditer(text, at) if (mark := MARK.match(text, begin.start()))), None)


def _begun(text: str, at: int, *, plain: bool = False) -> int:
    """Return the position of an unfinished mark at the text's end; the text's length if there is none."""
    tail = max(at, len(text) - MAX_MARK)
    for found in (_BEGINS_PLAIN if plain else _BEGINS).finditer(text, tail):
        rest = text[found.start() :].lower()
        channel = rest.startswith(("<|start|>assistant", "<|channel|>")) and "<|message|>" not in rest
        if channel or rest in _BEGINNINGS:
            return found.start()
    return len(text)


def without_thoughts(text: str) -> str:
    """Return the answer in a complete reply; "" if its thoughts are not closed."""
    thinking = Thinking(holds=True)
    _, answer = thinking.part(text)
    return (answer + thinking.rest()).strip()


def answer_in(shown: str) -> str:
    """Return the answer in text that was shown while it arrived.

    A closing mark in this text arrived too late: the answer is then only the text after the mark.
    """
    return without_thoughts(shown) if LATE.search(shown) else shown


def end_of_thoughts(text: str, at: int) -> int:
    """Return the position after the mark that closes the thoughts opened before `at`; -1: they are not closed.

    Nested thoughts are counted.
    """
    depth = 1
    for found in SEEN.finditer(text, at):
        depth += 1 if found.lastgroup == "open" else -1
        if not depth:
            return found.end()
    return -1


MAX_DEPTH = 50
"""Maximum nesting of lists and objects."""
DEEP = f"The JSON is nested deeper than {MAX_DEPTH}."
MAX_INTEGER = 2**63
MAX_SHOWN = 600
"""Maximum length of an error message that the model is shown, in characters."""
OPENS = re.compile(rf"{SEEN.pattern}|[{{\[]", re.IGNORECASE)
ESCAPED = re.compile(r"\\[ubfr]")
"""An escape in JSON that may represent an unprintable character."""
BRACKET = re.compile(r'(?:[^"{}\[\]]++|"(?:[^"\\]++|\\.?)*+"?)*+([{}\[\]])', re.DOTALL)
"""Matches up to the next bracket outside strings; an unclosed string extends to the end of the text."""
LOOKS_LIKE_JSON = re.compile(r"\{\s*+(?:[\"'“}/#]|\w++\s*+:)|\[\s*+[\"'{\[\]]")
"""Matches the beginning of a JSON object or list, even if it is broken, but not words or numbers in square brackets."""
OPENING: dict[type | None, str] = {dict: "{", list: "["}
KINDS: dict[type, str] = {dict: "object", list: "list"}


class LegiblePieces:
    """Removes unprintable characters from a reply's text; half of a surrogate pair is kept for the next piece."""

    def __init__(self) -> None:
        self._half = ""

    def add(self, piece: str) -> str:
        """Return the text of a piece, after the half of a surrogate pair that was kept from the previous piece.

        A half at the end of this piece is kept for the next one.
        """
        if piece.isascii() and not self._half:
            return legible(piece)
        text = self._half + piece
        self._half = text[-1] if HALF.search(text) else ""
        return legible(text.removesuffix(self._half))


def legible_call(call: Call) -> Call:
    """Return a call without NUL and single surrogates (see `legible`)."""
    return Call(legible(call.tool), legible(call.arguments), legible(call.id))


def first_json(text: str, kind: type | None = None) -> Any:
    """Return the first JSON object or list in a text, ignoring the text around it.

    If `kind` is dict or list, only that type counts.

    Raises:
        ReplyInvalid: there is none, or one in the text is incomplete.
    """
    return whole_json(text, kind)[0]


def whole_json(text: str, kind: type | None = None) -> list[Any]:
    """Return the outermost JSON objects or lists in a text, in their order, at least one.

    The time is linear in the text. Thoughts between their marks are skipped, and so is all text before a closing mark
    without an opening one.

    Raises:
        ReplyInvalid: there is none, or one is not complete; the message is written for the model.
    """
    text = without_controls(text)
    found: list[Any] = []
    other, wanted = "", OPENING.get(kind, "{[")
    for start, value in _values(text):
        if start is None:  # all text before this was thoughts
            found, other = [], ""
        elif isinstance(value, ValueError):
            wrong = _place(value, text)
            if LOOKS_LIKE_JSON.match(text, start) and text[start] in wanted:
                _refuse(f"The JSON is broken: {wrong}.", kind)
            other = other or f": {wrong}"
        elif text[start] in wanted:
            found.append(value)
        else:
            other = other or f", only {'a list' if kind is dict else 'an object'}"
    if not found:
        empty = not without_thoughts(text)
        name = KINDS.get(kind or dict, "object")
        _refuse("The reply was empty." if empty else f"No whole JSON {name} in the reply{other}.", kind)
    return found


def broken_json(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each outermost bracket pair that looks like JSON but is not valid.

    Raises:
        ReplyInvalid: a bracket is not closed, or the nesting is too deep.
    """
    for start, value in _values(text):
        if start is not None and isinstance(value, ValueError) and LOOKS_LIKE_JSON.match(text, start):
            yield start, _closing(text, start)


def _values(text: str) -> Iterator[tuple[int | None, Any]]:
    """Yield the start of each outermost bracket, with the value or the parse error. After thoughts, yield (None, None).

    Raises:
        ReplyInvalid: a bracket is not closed, or the nesting is too deep.
    """
    at = 0
    while opening := OPENS.search(text, at):
        at = opening.end()
        if opening.lastgroup == "open" and (at := end_of_thoughts(text, at)) < 0:
            _refuse(f"The reply does not come out of its {opening[0]}.")
        if opening.lastgroup:
            yield None, None
            continue
        start = opening.start()
        try:
            value, at = DECODER.raw_decode(text, start)
        except RecursionError:
            _refuse(DEEP)
        except ValueError as error:
            at = _closing(text, start)
            yield start, error
        else:
            if text.count("{", start, at) + text.count("[", start, at) > MAX_DEPTH:
                check_depth(value)
            yield start, clean(value) if ESCAPED.search(text, start, at) else value


def _closing(text: str, start: int) -> int:
    """Return the position after the bracket that closes the one at `start`; brackets in strings do not count.

    Raises:
        ReplyInvalid: the bracket is not closed, or the nesting is too deep.
    """
    depth, at = 0, start
    while token := BRACKET.match(text, at):
        at = token.end()
        depth += 1 if token[1] in "{[" else -1
        if not depth:
            return at
        if depth > MAX_DEPTH:
            _refuse(DEEP)
    return _refuse(f"The JSON is not finished: {text[start]!r} in {_shown(text, start)} is never closed.")


def check_depth(value: Any) -> None:
    """Check the nesting of a value's lists and objects.

    Raises:
        ReplyInvalid: the nesting is deeper than MAX_DEPTH.
    """
    level = [value]
    for _ in range(MAX_DEPTH):
        inner = (item for each in level for item in (each.values() if isinstance(each, dict) else each))
        level = [item for item in inner if isinstance(item, dict | list)]
        if not level:
            return
    _refuse(DEEP)


# The JSON decoder: strings may contain line breaks; numbers must be finite, and integers must fit into 64 bits.


def _int(digits: str) -> int:
    if len(digits) > 20 or not -MAX_INTEGER <= (number := int(digits)) < MAX_INTEGER:
        raise ValueError(f"the number {digits[:20]}… does not fit into 64 bits")
    return number


def _float(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits[:20]} is not a finite number, as JSON requires")
    return number


DECODER = json.JSONDecoder(strict=False, parse_int=_int, parse_float=_float, parse_constant=_float)


def clean(value: Any) -> Any:
    """Return a value without control characters in its texts and keys. Escapes in JSON, such as `\\u0007`, can produce
    them."""
    if isinstance(value, str):
        return without_controls(value)
    if isinstance(value, list):
        return [clean(item) for item in value]
    return {without_controls(key): clean(item) for key, item in value.items()} if isinstance(value, dict) else value


def _place(error: ValueError, text: str) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at {_shown(text, error.pos)}"
    return str(error)


def _shown(text: str, at: int) -> str:
    return repr(legible(text[max(0, at - 20) : at + 20]))


def _refuse(what: str, kind: type | None = dict) -> NoReturn:
    raise ReplyInvalid(f"{what[:MAX_SHOWN]} Answer with one JSON {KINDS.get(kind or dict, 'object')} and nothing else.")
