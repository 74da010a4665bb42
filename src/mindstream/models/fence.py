"""The one way in which what people, models, tools or files wrote gets into a prompt: as data between tags.

Text cannot close its tag or open another, for no angle bracket is left in it that could begin one: it is written
`&lt;`. (Why not a mark that nobody can guess: a small model takes a plain `</memory>` for the end whatever its mark is,
and a mark that changes would cost every prefix cache.) A bracket before a number stays: "slept <6 hours", "<3".
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from mindstream.models.legible import without_controls

LONGEST, SHORT = 64_000, 200
"""How much of a text, and of a name or a date, is shown, in characters."""
BRACKET = re.compile(
    r"[<\uff1c\ufe64](?! ?\d)"
    r"|[\u2039\u2329\u3008\u27e8\u27ea\u276c\u276e\u2770\u29fc\u2991\u02c2\u1438\u227a\u22d6\U0001d236]"
    r"(?=[\W_]{0,8}(?![\u3040-\u30ff\u3400-\u9fff])[^\W\d])"
)
"""What a model may read as the beginning of a tag: `<`, and its look-alikes before a letter (〈红楼梦〉 is a title)."""
INDENT = "\n    "


def escaped(text: object) -> str:
    """Return a text in which nothing can be taken for a tag."""
    return BRACKET.sub("&lt;", without_controls(str(text)))


def fenced(text: object, tag: str) -> str:
    """Put what others wrote between tags that it cannot close; of what is too long the middle is cut."""
    return f"<{tag}>\n{escaped(cut(str(text), LONGEST)).strip()}\n</{tag}>"


def fenced_short(text: object, tag: str) -> str:
    """Put a name, a date or a few words between tags, all on one line."""
    return f"<{tag}>{escaped(cut(' '.join(str(text).split()), SHORT))}</{tag}>"


def cut(text: str, longest: int) -> str:
    """Return a text, of a longer one the beginning and the end."""
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]} … ({len(text) - 2 * half} characters cut) … {text[-half:]}"


def indented(text: object) -> str:
    """Return a text whose further lines are indented: none can pass for a line that somebody else wrote."""
    return INDENT.join(str(text).splitlines())


def listed(items: Iterable[object]) -> str:
    """Write one item a line."""
    return "\n".join(indented(item) for item in items)


def numbered(items: Iterable[object]) -> str:
    """Write one item a line, with numbers from 1."""
    return "\n".join(f"{n}. {indented(item)}" for n, item in enumerate(items, 1))
