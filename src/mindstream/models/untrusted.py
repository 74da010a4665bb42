"""Untrusted text (from users, models, tools and files): unprintable characters are removed, and prompts show it as data
between tags.

The text cannot close its tag or open another one, because every angle bracket that could begin a tag is written
`&lt;`. A comparison with a number stays: "slept <6 hours", "<3", "n <> 3", "d < '2022-01-01'". A random delimiter
would not be safer: a small model takes a plain `</memory>` for the end of the data with any delimiter, and a changing
delimiter prevents prefix caching.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

ILLEGIBLE = re.compile(r"[\x00\ud800-\udfff]")
"""Surrogates (halves of characters) and NUL."""
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
    """Join surrogate pairs in a text, and remove NUL and single surrogates, which cannot be stored everywhere."""
    if text.isascii() and "\0" not in text:
        return text
    return ILLEGIBLE.sub("", with_whole_characters(text))


def with_whole_characters(text: str) -> str:
    """Return a text in which the two surrogates of a pair are joined to their character."""
    return PAIR.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)


def without_controls(text: str) -> str:
    """Return a legible text without terminal control characters; line breaks and tabs stay."""
    if text.isascii() and text.isprintable():
        return text
    return CONTROLS.sub("", legible(text).replace("\r\n", "\n"))


MAX_TEXT, MAX_SHORT = 64_000, 200
"""Maximum number of characters shown of a text (`delimited`), and of a name or date (`delimited_short`)."""
BRACKET = re.compile(
    r"[<\uff1c\ufe64](?! ?\d|[=>]? ?['\"]?\d)"
    r"|[\u2039\u2329\u3008\u27e8\u27ea\u276c\u276e\u2770\u29fc\u2991\u02c2\u1438\u227a\u22d6\U0001d236]"
    r"(?=[\W_]{0,8}(?![\u3040-\u30ff\u3400-\u9fff])[^\W\d])"
)
"""Characters that a model may read as the beginning of a tag: `<` unless a number follows, and look-alikes before
a letter.

Look-alikes before a Chinese or Japanese character stay: 〈红楼梦〉 is a title.
"""
INDENT = "\n    "


def escaped(text: object) -> str:
    """Return a text in which every character that could begin a tag is escaped."""
    return BRACKET.sub("&lt;", without_controls(str(text)))


def delimited(text: object, tag: str) -> str:
    """Put untrusted text between tags that it cannot close; a text over MAX_TEXT loses its middle."""
    return f"<{tag}>\n{escaped(cut(str(text), MAX_TEXT)).strip()}\n</{tag}>"


def delimited_short(text: object, tag: str) -> str:
    """Put a name, a date or a few words between tags, all on one line."""
    return f"<{tag}>{escaped(cut(' '.join(str(text).split()), MAX_SHORT))}</{tag}>"


def cut(text: str, longest: int) -> str:
    """Return a text of at most about `longest` characters: its beginning and its end, with a note of the cut."""
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]} … ({len(text) - 2 * half} characters cut) … {text[-half:]}"


def indented(text: object) -> str:
    """Return a text whose lines after the first are indented, so that none looks like a line of another author."""
    return INDENT.join(str(text).splitlines())


def listed(items: Iterable[object]) -> str:
    """Return one item per line."""
    return "\n".join(indented(item) for item in items)


def numbered(items: Iterable[object]) -> str:
    """Return one item per line, with numbers from 1."""
    return "\n".join(f"{n}. {indented(item)}" for n, item in enumerate(items, 1))
