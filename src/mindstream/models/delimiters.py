"""Delimit untrusted text (from users, models, tools and files) in a prompt, as data between tags.

The text cannot close its tag or open another one, because every angle bracket that could begin a tag is written
`&lt;`. A comparison with a number stays: "slept <6 hours", "<3", "n <> 3", "d < '2022-01-01'". A random delimiter
would not be safer: a small model takes a plain `</memory>` for the end of the data with any delimiter, and a changing
delimiter prevents prefix caching.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from mindstream.models.clean_text import without_controls

MAX_TEXT, MAX_SHORT = 64_000, 200
"""Maximum number of characters shown of a text (`delimited`), and of a name or date (`delimited_short`)."""
BRACKET = re.compile(
    r"[<\uff1c\ufe64](?! ?\d|[=>]? ?['\"]?\d)"
    r"|[\u2039\u2329\u3008\u27e8\u27ea\u276c\u276e\u2770\u29fc\u2991\u02c2\u1438\u227a\u22d6\U0001d236]"
    r"(?=[\W_]{0,8}(?![\u3040-\u30ff\u3400-\u9fff])[^\W\d])"
)
"""Characters that a model may read as the beginning of a tag: `<`, and look-alikes before a letter.

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
