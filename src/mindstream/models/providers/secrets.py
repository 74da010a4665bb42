"""Reads API keys, and masks them in messages and logs."""

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

from mindstream.errors import SettingsError

NO_KEY = "no-key"
"""Placeholder that is sent to an endpoint that needs no key."""
KEYS = {
    "openai": ("OPENAI_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "google": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "ollama": ("OLLAMA_API_KEY",),
    "decisions": ("OPENAI_API_KEY",),
    "systemone": ("TYPESAFE_API_KEY",),
}
"""The environment variables of each vendor's key."""
TOOL_KEYS = ("TAVILY_API_KEY", "WOLFRAM_APP_ID")
"""The environment variables of the keys of tools' services."""
MASK = "***"
_MIN_KEY = 8
"""Minimum length of a key that is masked: masking shorter values would remove ordinary words."""
_HEAD = 12
"""Number of first characters of a key that are masked even if the rest of the key was cut off."""
_given: set[str] = set()
_LOOKS_LIKE_A_KEY = re.compile(
    r"(?<![\w-])(?:(?:sk|gsk|xai|tvly|hf|r8|pplx|nvapi)[-_](?=[\w-]*\d)[A-Za-z0-9_-]{20,}|AIza[\w-]{30,})"
)
"""Pattern of vendors' keys, for keys that this process does not know, such as one pasted as a model's name."""


_QUOTES = "\"'`“”‘’„«»"
_BLANK = "\ufeff\u200b\u200c\u200d\u2060\u00a0"
_PREFIX = re.compile(
    r"(?:export\s+)?[A-Z][A-Z0-9_]*_(?:KEY|TOKEN|ID)\s*=\s*|(?:authorization\s*:\s*)?bearer\s+", re.IGNORECASE
)


def clean_key(key: str, source: str) -> str:
    """Return a key without text that was copied along with it: blanks, quotation marks, `Bearer `, `NAME=`.

    Args:
        source: the variable or argument that holds the key, for the error message.

    Raises:
        SettingsError: the key has a character that no HTTP header can carry; the message never shows the key.
    """
    previous = None
    while key != previous:
        previous = key
        key = _PREFIX.sub("", key.strip().strip(_BLANK), count=1) if _PREFIX.match(key.strip().strip(_BLANK)) else key
        key = key.strip().strip(_BLANK)
        if len(key) > 1 and key[0] in _QUOTES and key[-1] in _QUOTES:
            key = key[1:-1]
    wrong = next((place for place, sign in enumerate(key, 1) if not "!" <= sign <= "~"), 0)
    if wrong:
        sign = key[wrong - 1]
        what = "a line break" if sign in "\r\n" else "a blank" if sign.isspace() else f"the character U+{ord(sign):04X}"
        raise SettingsError(
            f"{source} is not a key: its character {wrong} of {len(key)} is {what}, but a key has only visible ASCII"
            " characters. Copy it again"
        )
    return key


def key_of_environment(name: str) -> str:
    """Return the key in an environment variable, cleaned; "" if it is not set.

    Raises:
        SettingsError: see `clean_key`.
    """
    if raw := os.environ.get(name, ""):
        key = clean_key(raw, name)
        if key and key != raw:
            remember(key)
        return key
    return ""


def remember(key: str) -> None:
    """Register a key that was passed as an argument, so that `mask` masks it."""
    if key != NO_KEY:
        _given.add(key)


def mask(text: str) -> str:
    """Replace every key that this process knows, and texts that look like a vendor's key, by `***`.

    A key is found in any letter case, URL-encoded, escaped as in JSON or HTML, in base64 or in hexadecimal.
    """
    keys = [key for key in (*_given, *_of_environment()) if len(key) >= _MIN_KEY]
    for key in sorted(keys, key=len, reverse=True):
        text = _forms(key).sub(MASK, text)
    text = _LOOKS_LIKE_A_KEY.sub(MASK, text)
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
    for before in range(3):  # in base64, the key has one of three forms, depending on its position in the text
        coded = base64.b64encode(b"\0" * before + raw).decode().rstrip("=")
        whole = coded[(0, 2, 3)[before] : -1]
        forms |= {whole, whole.replace("+", "-").replace("/", "_")}
    ways = sorted((re.escape(form) for form in forms if len(form) >= _MIN_KEY), key=len, reverse=True)
    return re.compile(rf"(?:{'|'.join(ways)})[\w=*…-]*", re.IGNORECASE)


def _unescaped(text: str) -> str:
    return re.sub(r"\\(?:u00|x)([0-9a-fA-F]{2})", lambda found: chr(int(found[1], 16)), text)
