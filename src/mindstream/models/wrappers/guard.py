"""End a reply where it turns into junk: where it goes in circles, or where marks of the prompt appear in it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import lru_cache

from mindstream.models.model import Model, Part, Piece, Request

MARKS = (
    r"<\|[A-Za-z_]{2,30}\|>|<｜[^｜\n]{2,30}｜>|</?(?:start|end)_of_turn>|\[/?INST\]|<</?SYS>>"
    r"|^[ \t]*# (?:system|user|assistant)[ \t]*$"
    r"|^[ \t]*### ?(?:Instruction|Human|Assistant|Response|User|Input)s?:"
)
"""Marks of roles and turns, as the usual chat templates write them, and as our own files of words do."""
TAGS = re.compile(r"""data\(\s*["'](\w+)["']""")
"""The tags in which a prompt's words put what others wrote."""
USER = re.compile(r"^[ \t*]*(?:user|human)[ *]*:", re.IGNORECASE | re.MULTILINE)
TURN = re.compile(r"^[ \t*]*(?:user|human|assistant|system|coach)[ *]*:", re.IGNORECASE | re.MULTILINE)
OPEN_MARK = re.compile(r"(?:<[^<>\n]{0,60}|<</?[SY]{0,3}>?|\[/?[INST]{0,4}|(?:^|\n)[ \t]*#{1,3}[^\n]{0,20})$")
"""What the next piece may make a mark of."""
OPEN_TURN = re.compile(r"(?:^|\n)[ \t*]*([A-Za-z]{0,9})[ *]*$")
ROLES = ("user", "human")
TELLING = frozenset("<[#:\n|>")
STEP, STEPS = 48, 8
"""Each so many characters the reply's end is looked at, each so many times the whole of it."""
NEAR = 40
"""So near to the beginning of a line a mark may begin."""
LINES = 2
"""`User: ann` is a line of the answer if so many lines follow and none of them is another's turn."""


class Guard:
    """Passes a reply on up to where it turns into junk, and ends it there.

    What came before stands: free text is an answer; structured data is read, and is invalid if it is not whole. A mark
    in a block of code or behind a backtick is quoted, and a role with a colon is one only in a dialogue that goes on.
    `only_words`: structured data passes whole, as from a model whose grammar ends it in time.
    """

    def __init__(self, model: Model, *, only_words: bool = False) -> None:
        self.name = model.name
        self._model = model
        self._only_words = only_words

    def reply(self, request: Request) -> AsyncGenerator[Part]:
        passes = self._only_words and request.schema is not None
        return self._model.reply(request) if passes else self._guarded(request)

    async def _guarded(self, request: Request) -> AsyncGenerator[Part]:
        reading = PassedText(_marks(request.words if request.words is not None else request.prompt.words()))
        async with aclosing(self._model.reply(request)) as parts:
            async for part in parts:
                if isinstance(part, Piece):
                    if text := reading.read(part.text):
                        yield part if text == part.text else Piece(text)
                    if reading.ended:
                        return
                else:
                    if rest := reading.finish():
                        yield Piece(rest)
                    yield part
        if rest := reading.finish():
            yield Piece(rest)


class PassedText:
    """What was said so far, and how much of it may be passed on; `ended`: no more of it."""

    def __init__(self, marks: re.Pattern[str]) -> None:
        self.ended = False
        self._marks = marks
        self._text = ""
        self._shown = self._looked = self._judged = 0

    def read(self, piece: str) -> str:
        """Take in a piece; return what may be passed on now."""
        held = self._shown < len(self._text)
        text = self._text = self._text + piece
        safe = len(text)
        if held or safe < NEAR or text.find("\n", safe - NEAR) >= 0 or not TELLING.isdisjoint(piece):
            safe = self._safe(text)
        if not self.ended and len(text) // STEP > self._looked:
            self._looked = len(text) // STEP
            self.ended = (repeats_its_end if self._looked % STEPS else goes_in_circles)(text)
            safe = self._shown if self.ended else safe
        shown, self._shown = self._shown, max(self._shown, safe)
        return text[shown:safe]

    def finish(self) -> str:
        """Return what was held back and is no junk, now that nothing follows."""
        rest, self._shown = self._text[self._shown :], len(self._text)
        alone = USER.match(rest) and self._text[: -len(rest)].endswith("\n\n")
        return "" if self.ended or alone else rest

    def _safe(self, text: str) -> int:
        """Return how far a text holds no mark, nor the beginning of one."""
        line = text.rfind("\n", 0, self._shown) + 1
        for found in self._marks.finditer(text, line):
            if not _is_quoted(text, found.start()):
                self.ended = True
                return len(text[: found.start()].rstrip())
        safe = min(self._turn(text, line), len(text))
        for open_end in (OPEN_MARK.search(text, max(line - 1, 0)), OPEN_TURN.search(text, max(line - 1, 0))):
            if open_end and (open_end.re is OPEN_MARK or _is_beginning(open_end[1])):
                safe = min(safe, open_end.start())
        return safe

    def _turn(self, text: str, line: int) -> int:
        """Return where somebody else's turn begins in the reply, or may; the text's length where none does."""
        for found in USER.finditer(text, max(line, self._judged)):
            if _is_quoted(text, found.start()):
                continue
            if TURN.search(text, found.end()):
                self.ended = True
                return found.start()
            if text.count("\n", found.end()) <= LINES:
                return found.start()
            self._judged = found.end()
        return len(text)


def _is_beginning(word: str) -> bool:
    return any(role.startswith(word.lower()) for role in ROLES)


def _is_quoted(text: str, at: int) -> bool:
    return text[max(0, at - 1) : at] == "`" or text.count("```", 0, at) % 2 == 1


@lru_cache(256)
def _marks(words: str) -> re.Pattern[str]:
    tags = "|".join(sorted(set(TAGS.findall(words))))
    return re.compile(rf"{MARKS}|</?(?:{tags})\b[^<>\n]{{0,60}}>" if tags else MARKS, re.MULTILINE)


# Does a text go in circles? Small models fall into one and do not come out.


WINDOW = 4_000
"""So much of a text's end is looked at, in characters."""
PROBE = 24
TIMES, SHORTEST = 12, 48
"""A few words are a circle when they come so often one after the other, in so many characters."""
LONG_UNIT, LONG_TIMES = 40, 4
"""Something as long as a line is one when it comes so often one after the other."""
SIGNS_SHORTEST = 400
"""Signs without a letter, such as a table's rules, are one when they are so many."""
LINE_TIMES, LINE_LETTERS = 8, 12
"""A line of so many letters is one when it comes so often, whatever its number and whatever stands between."""
WORDS, NEW = 150, 0.12
"""Of so many words, at least this share of the sequences of three must be new."""
NUMBER = re.compile(r"^\s*(?:\d+[.):]|[-*•])\s*")


def goes_in_circles(text: str) -> bool:
    """Say whether a text says the same again and again; blocks of code may repeat a line."""
    tail = text[-WINDOW:]
    if repeats_its_end(tail):
        return True
    return text.count("```") % 2 == 0 and (_repeats_a_line(tail) or _says_little_new(tail))


def repeats_its_end(text: str) -> bool:
    """Say whether a text ends in the same, one after the other, too often; the cheaper question (a microsecond)."""
    tail = text[-WINDOW:]
    probe = tail[-PROBE:]
    before = tail.rfind(probe, 0, len(tail) - 1)
    if len(probe) < PROBE or before < 0:
        return False
    period = len(tail) - PROBE - before
    unit, times = tail[-period:], 1
    while tail.endswith(unit, 0, len(tail) - times * period):
        times += 1
    if not any(sign.isalpha() for sign in unit):
        return times * period >= SIGNS_SHORTEST
    if period >= LONG_UNIT:
        return times >= LONG_TIMES
    return times >= TIMES and times * period >= SHORTEST


def _repeats_a_line(tail: str) -> bool:
    counted = Counter(NUMBER.sub("", line).strip() for line in tail.split("\n"))
    often = (line for line, times in counted.items() if times >= LINE_TIMES)
    return any(sum(map(str.isalpha, line)) >= LINE_LETTERS for line in often)


def _says_little_new(tail: str) -> bool:
    words = re.findall(r"\w+", tail)
    if len(words) < WORDS:
        return False
    threes = list(zip(words, words[1:], words[2:], strict=False))[-2 * WORDS :]
    return len(set(threes)) < NEW * len(threes)
