"""Names of users, sessions, pools, agents, towns and residents: each has one normal form, in which it is compared."""

from __future__ import annotations

import re
import unicodedata

from mindstream.errors import InputError

MAX_NAME = 100
"""Maximum length of a name, in characters."""
NAME = re.compile(rf"\w[\w .:|@+/'-]{{0,{MAX_NAME - 1}}}")
INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Characters that are not visible (Unicode: Default_Ignorable_Code_Point)."""


_JOINERS = re.compile("[\u00ad\u115f\u1160\u200c\u200d\u3164\ufe00-\ufe0f\uffa0]")
"""Invisible characters that belong to the spelling of a word, and letters without a glyph. They are removed: a name
with them is the same name."""
_APOSTROPHES = dict.fromkeys(map(ord, "\u2019\u02bc\u2018"), "'")
"""Typographic apostrophes, which phones and word processors write, are replaced by ': O’Neill becomes O'Neill."""
_AROUND = "\ufeff\u200b\u2060"
"""Invisible characters that may be copied along with a name; they are removed from its ends."""


def normal_name(name: str) -> str:
    """Return the normal form of an identifier, in which it is stored and compared.

    The normal form is Unicode NFKC (so NFD, NFC and full-width spellings are one name), with plain apostrophes, without
    joiners, and without white space and zero-width characters at the ends; letter case is kept. Other invisible
    characters and those that change the direction of text stay, so that `checked_name` rejects them. A text whose
    normal form is not a valid name is returned unchanged. Every interface (command line, REST, MCP, chat headers,
    adapters, Python) passes the names of users, sessions, pools, residents, towns and tenants through this function,
    for writing and for reading.
    """
    if name.isascii() and name.isprintable() and name == name.strip():
        return name
    visible = _JOINERS.sub("", unicodedata.normalize("NFKC", name)).translate(_APOSTROPHES)
    normal = unicodedata.normalize("NFKC", visible)  # again: without a joiner, a mark may combine with its letter
    while normal != (inner := normal.strip().strip(_AROUND)):
        normal = inner
    return normal if is_name(normal) else name


def is_name(text: str) -> bool:
    """Return whether a text is valid as an identifier; combining marks count as parts of letters."""
    if text.isascii():
        return NAME.fullmatch(text) is not None
    letters = "".join(each for each in text if not unicodedata.category(each).startswith("M"))
    return len(text) <= MAX_NAME and text[:1] == letters[:1] and NAME.fullmatch(letters) is not None


def checked_name(name: str, what: str = "name") -> str:
    """Return the normal form of the name of a user, agent or session.

    Raises:
        InputError: the name is empty, too long, does not begin with a letter or digit, or contains characters other
            than letters, digits and ` _.:|@+/'-`.
    """
    normal = normal_name(name)
    if not is_name(normal):
        shown = name if len(name) <= MAX_NAME else f"{name[:40]}…"
        raise InputError(
            f"{what} {shown!r}: use 1 to {MAX_NAME} letters, digits, spaces and . _ : | @ + / ' -,"
            " beginning with a letter or digit; emoji and other symbols are not allowed in names"
        )
    return normal
