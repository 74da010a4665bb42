"""Translate patterns from Python's syntax to that of RE2, where they may match more than the original, and to that of
`regex`."""

from __future__ import annotations

import re
import string
from enum import Enum

MAX_DEPTH = 100
"""Maximum nesting depth of groups."""


class Form(Enum):
    """The engine and the texts that a pattern is translated for."""

    CHECK = "RE2, with look-arounds as plain groups, so that their syntax is checked too"
    ASCII = "RE2, for texts in ASCII that do not end with a line break"
    ANY = "RE2, for any text: a character beyond ASCII may be a letter, a digit, a space or neither"
    EXACT = "regex"


BEYOND = r"\x{80}-\x{10FFFF}"
KINDS = {
    "w": "0-9A-Za-z_",
    "W": r"\x00-/:-@\[-\^`{-\x7f",
    "d": "0-9",
    "D": r"\x00-/:-\x7f",
    "s": r"\x09-\x0d\x1c-\x20",
    "S": r"\x00-\x08\x0e-\x1b!-\x7f",
}
r"""The ASCII characters that \w, \d and \s match, and those that \W, \D and \S match."""
PLACES = {"A": r"\A", "b": r"\b", "B": r"\B"}
CONTROLS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
ESCAPE = r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|0[0-7]{0,2}|.)"
TOKEN = re.compile(
    rf"(?P<escape>{ESCAPE})|(?P<class>\[\^?\]?(?:[^\]\\]|\\.)*\])|(?P<comment>\(\?#[^)]*\))|(?P<look>\(\?<?[=!])"
    r"|(?P<flags>\(\?[a-zA-Z-]+[:)])|(?P<open>\((?:\?:|\?P<\w+>|(?!\?)))|(?P<odd>(?:\(\?|\[).*)"
    r"|(?P<repeat>(?:[*+?]|\{(?:\d+(?:,\d*)?|,\d*)\})\+?)|.",
    re.DOTALL,
)
IN_CLASS = re.compile(rf"(?P<escape>{ESCAPE})|.", re.DOTALL)
LARGE = "nests repeats, or has large counts: write it with fewer of them, or in several patterns"
REFUSED = {
    "(?P=": "a reference to a group (?P=name): write out what may stand there",
    "(?(": "a condition on a group: write two patterns",
    "(?>": "an atomic group (?>…): a plain group (?:…) costs no more here",
}


def translate(source: str, form: Form) -> tuple[str, bool]:
    """Translate a pattern for an engine; also return whether the result matches exactly the same texts as the
    pattern."""
    out: list[str] = []
    opened: list[int | None] = []  # positions of look-arounds that are left out
    exact = True
    for token in TOKEN.finditer(source):
        kind, text = token.lastgroup, token[0]
        if kind == "escape":
            written, same = _escape(text, form)
        elif kind == "class":
            written, same = _class(text, form)
        elif kind == "repeat":
            written, same = _repeat(text), True
        elif kind in ("look", "open"):
            if len(opened) >= MAX_DEPTH:
                raise ValueError(f"not a regular expression that can be read: more than {MAX_DEPTH} groups deep")
            falls = kind == "look" and form in (Form.ASCII, Form.ANY)
            opened.append(len(out) if falls else None)
            written, same = "(?:" if kind == "look" and form is not Form.EXACT else text, not falls
        elif text == ")" and opened:
            written, same = ")", True
            if (begin := opened.pop()) is not None:
                del out[begin:]
                written = "(?:)"
        elif text == "$":
            written, same = ("(?:)", False) if form is Form.ANY else (text, True)
        elif kind in ("flags", "odd"):
            written, same = _flags(text, token.start()), True
        else:
            written, same = "" if kind == "comment" else _literal(text) if text in "{}]" else text, True
        out.append(written)
        exact = exact and same
    return "".join(out), exact


def _escape(text: str, form: Form) -> tuple[str, bool]:
    letter = text[1:2]
    if letter in KINDS and form is not Form.EXACT:
        return (f"[{KINDS[letter]}{BEYOND}]", False) if form is Form.ANY else (f"[{KINDS[letter]}]", True)
    if letter in "bB" and form is Form.ANY:
        return "(?:)", False
    if letter == "Z":
        return (text if form is Form.EXACT else r"\z"), True
    return (text, True) if letter in KINDS or letter in PLACES else (_character(text), True)


def _class(text: str, form: Form) -> tuple[str, bool]:
    """Translate a character class `[…]`.

    Where the engine's classes differ from Python's, the result matches more characters, never fewer.
    """
    begin = "[^" if text.startswith("[^") else "["
    out, exact = [begin], True
    for item in IN_CLASS.finditer(text, len(begin), len(text) - 1):
        if item["escape"] and item[0][1] in KINDS:
            loose = form is Form.ANY
            exact = exact and not loose
            kind = item[0] if form is Form.EXACT else KINDS[item[0][1]]
            out.append(kind + BEYOND if loose and begin == "[" else kind)
        else:
            out.append(_character(item[0]) if item["escape"] else item[0] if item[0] == "-" else _literal(item[0]))
    return "".join([*out, "]"]), exact


def _character(escape: str) -> str:
    """Return the character that an escape stands for."""
    letter = escape[1:2]
    if letter in CONTROLS:
        return CONTROLS[letter]
    if letter in "xuU" and len(escape) > 2:
        return _literal(chr(int(escape[2:], 16)))
    if letter == "0":
        return chr(int(escape[1:], 8))
    if letter.isdigit():
        raise ValueError(f"contains a reference to a group ({escape}): write out what may stand there")
    if not letter or (letter.isascii() and letter.isalpha()):
        raise ValueError(f"contains {escape}, an escape that is not supported")
    return _literal(letter)


def _literal(character: str) -> str:
    return f"\\{character}" if character in string.punctuation and character != "_" else character


def _repeat(text: str) -> str:
    if len(text) > 1 and text.endswith("+"):
        raise ValueError(f"contains a possessive repeat ({text}): write a plain one, which costs no more here")
    return text.replace("{,", "{0,")


def _flags(text: str, at: int) -> str:
    for begin, told in REFUSED.items():
        if text.startswith(begin):
            raise ValueError(f"contains {told}")
    if text.startswith("["):
        raise ValueError("not a regular expression: a [ is not closed")
    if text.endswith(":"):
        raise ValueError("contains a group with flags of its own (?s:…): write (?s) at the beginning, or [\\s\\S]")
    if at or not text.endswith(")") or set(text[2:-1]) - set("is"):
        raise ValueError(f"contains {text[:9]}, which is not supported; only (?i) and (?s), at the beginning, are")
    return text
