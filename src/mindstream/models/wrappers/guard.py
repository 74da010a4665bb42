"""End a reply when it degenerates: when it repeats itself, or contains marks of the prompt or of another turn."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from mindstream.models.model import Model, Part, Piece, Request
from mindstream.models.wrappers.layer import Layer, Layered

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
    """Passes a reply on until it degenerates, and ends it there.

    The text before that point stays: free text is an answer; structured data is parsed, and is invalid if incomplete. A
    mark of a prompt or of another turn (`<|im_end|>`, `### User:`) does not count in a code block or after a backtick.
    A line such as `User:` counts only if another turn follows, or if the reply ends with it after a blank line.
    `only_words`: pass on structured data unchecked, for a model whose grammar limits the length of the data.
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
    """The text of a reply, of which a checked part is passed on; after `ended`, the rest is dropped."""

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
        """Return the held back text that is part of the answer, at the end of the reply."""
        rest, self._shown = self._text[self._shown :], len(self._text)
        alone = USER.match(rest) and self._text[: -len(rest)].endswith("\n\n")
        return "" if self.ended or alone else rest

    def _safe(self, text: str) -> int:
        """Return how many characters of a text can be passed on: those before a mark, before another speaker's turn, or
        before what may become one of these. Set `ended` if there is a mark or such a turn."""
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
        """Return the position at which another speaker's turn begins or may begin; the text's length if none does. Set
        `ended` to whether a turn begins there."""
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
"""Minimum length, in characters, of a repeated text that counts as long, and the minimum number of its repetitions."""
MIN_SIGNS = 400
"""Minimum total length of repeated signs without a letter, such as a table's rules."""
LINE_TIMES, LINE_LETTERS = 8, 12
"""Minimum occurrences of a line (without its list number) in the window, and the minimum letters of such a line."""
MIN_WORDS, MIN_NEW = 150, 0.12
"""Minimum number of words of a text that is checked; if the share of distinct sequences of three words at its end is
below MIN_NEW, it is in a loop."""
NUMBER = re.compile(r"^\s*(?:\d+[.):]|[-*•])\s*")


def goes_in_circles(text: str) -> bool:
    """Return whether a text repeats itself; code blocks may repeat a line."""
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
