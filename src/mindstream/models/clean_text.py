"""Remove characters that no file can store or that control a terminal; join surrogate pairs."""

from __future__ import annotations

import re

ILLEGIBLE = re.compile(r"[\x00\ud800-\udfff]")
"""Surrogates (halves of characters) and NUL, which no UTF-8 file can store."""
CONTROLS = re.compile(r"\x1b(?:\[[0-?]*+[ -/]*+[@-~]|\][^\x07\x1b\n]{0,200}+\x07?)|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Terminal escape sequences, and all control characters except tab and line break."""
SURROGATE = re.compile(r"[\ud800-\udfff]")
HALF = re.compile(r"[\ud800-\udbff]\Z")
"""Matches the first half of a surrogate pair (of a character) at the end of a text."""
PAIR = re.compile(r"[\ud800-\udbff][\udc00-\udfff]")


def is_visible(text: str) -> bool:
    """Return whether a text has a visible character, other than spaces, controls and invisible format characters."""
    return any(sign.isprintable() and not sign.isspace() for sign in text)


def legible(text: str) -> str:
    """Return a text without characters that no file or endpoint accepts; halves of a character are joined."""
    if text.isascii() and "\0" not in text:
        return text
    return ILLEGIBLE.sub("", with_whole_characters(text))


def with_whole_characters(text: str) -> str:
    """Return a text in which the two halves of a character are joined."""
    return PAIR.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)


def without_controls(text: str) -> str:
    """Return a legible text without terminal control characters; line breaks and tabs stay."""
    if text.isascii() and text.isprintable():
        return text
    return CONTROLS.sub("", legible(text).replace("\r\n", "\n"))
