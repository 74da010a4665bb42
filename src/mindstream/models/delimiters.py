"""Delimit untrusted text (of users, models, tools and files) in a prompt: as data between tags.

Text cannot close its tag or open another one, since every angle bracket that could begin a tag is written `&lt;`. (Why
not a random delimiter: a small model takes a plain `</memory>` for the end whatever the delimiter is, and a changing
delimiter would prevent prefix caching.) A bracket before a number stays: "slept <6 hours", "<3".
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from mindstream.models.clean_text import without_controls

MAX_TEXT, MAX_SHORT = 64_000, 200
"""Maximum length of a text, and of a name or a date, that is shown, in characters."""
BRACKET = re.compile(
    r"[<\uff1c\ufe64](?! ?\d)"
    r"|[\u2039\u2329\u3008\u27e8\u27ea\u276c\u276e\u2770\u29fc\u2991\u02c2\u1438\u227a\u22d6\U0001d236]"
    r"(?=[\W_]{0,8}(?![\u3040-\u30ff\u3400-\u9fff])[^\W\d])"
)
"""What a model may read as the beginning of a tag: `<`, and look-alikes before a letter (〈红楼梦〉 is a title)."""
INDENT = "\n    "


def escaped(text: object) -> str:
    """Return a text in which nothing can be read as a tag."""
    return BRACKET.sub("&lt;", without_controls(str(text)))


def delimited(text: object, tag: str) -> str:
    """Put untrusted text between tags that it cannot close; the middle of a text that is too long is removed."""
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
    """Return a text whose further lines are indented, so that none looks like a line of another author."""
    return INDENT.join(str(text).splitlines())


def listed(items: Iterable[object]) -> str:
    """Return one item per line."""
    return "\n".join(indented(item) for item in items)


def numbered(items: Iterable[object]) -> str:
    """Return one item per line, with numbers from 1."""
    return "\n".join(f"{n}. {indented(item)}" for n, item in enumerate(items, 1))
