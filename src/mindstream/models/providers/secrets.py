"""Keys, and how they stay out of what is shown and logged."""

from __future__ import annotations

import base64
import binascii
import html
import json
import os
import re
from collections.abc import Iterator
from functools import cache
from urllib.parse import quote, unquote, unquote_plus

NO_KEY = "no-key"
"""What is sent to an endpoint that needs none."""
KEYS = {
    "openai": ("OPENAI_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "google": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "ollama": ("OLLAMA_API_KEY",),
    "decisions": ("OPENAI_API_KEY",),
    "systemone": ("TYPESAFE_API_KEY",),
}
"""The variables that hold a vendor's key."""
TOOL_KEYS = ("TAVILY_API_KEY", "WOLFRAM_APP_ID")
"""The variables that hold the key of a service that a tool asks."""
MASK = "***"
_SHORTEST = 8
"""A shorter value is no key: to mask it would blot out words."""
_HEAD = 12
"""So much of a key's beginning gives it away, also where the rest was cut off."""
_given: set[str] = set()


def remember(key: str) -> None:
    """Note a key that was handed in, so that `mask` knows it."""
    if key != NO_KEY:
        _given.add(key)


def mask(text: str) -> str:
    """Replace every key that this process knows, of whichever vendor, however it is written.

    As it is, in another case, URL-encoded, escaped as in JSON or HTML, in base64 or in hexadecimal.
    """
    keys = [key for key in (*_given, *_of_environment()) if len(key) >= _SHORTEST]
    for key in sorted(keys, key=len, reverse=True):
        text = _forms(key).sub(MASK, text)
    for read in (unquote, unquote_plus, _unescaped, html.unescape):
        plain = read(text)
        if plain != text and any(_forms(key).search(plain) for key in keys):
            text = mask(plain)
    return text


def _of_environment() -> Iterator[str]:
    for names in (*KEYS.values(), TOOL_KEYS):
        yield from filter(None, (os.environ.get(name, "").strip() for name in names))


@cache
def _forms(key: str) -> re.Pattern[str]:
    raw = key.encode()
    forms = {key, quote(key, safe=""), json.dumps(key)[1:-1], json.dumps(json.dumps(key))[3:-3]}
    forms |= {html.escape(key), binascii.hexlify(raw).decode()}
    if len(key) > 2 * _HEAD:
        forms.add(key[:_HEAD])
    for before in range(3):  # base64 of a text that holds the key has one of three shapes, by where the key begins
        coded = base64.b64encode(b"\0" * before + raw).decode().rstrip("=")
        whole = coded[(0, 2, 3)[before] : -1]
        forms |= {whole, whole.replace("+", "-").replace("/", "_")}
    ways = sorted((re.escape(form) for form in forms if len(form) >= _SHORTEST), key=len, reverse=True)
    return re.compile(rf"(?:{'|'.join(ways)})[\w=*…-]*", re.IGNORECASE)


def _unescaped(text: str) -> str:
    return re.sub(r"\\(?:u00|x)([0-9a-fA-F]{2})", lambda found: chr(int(found[1], 16)), text)
