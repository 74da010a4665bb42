"""JSON as people write it, read as a last resort: by `pyjson5`, which knows a grammar and guesses nothing.

JSON5 has comments, a comma too many, single quotes, names without quotes. What it does not have either, a value that is
missing, a quote within a text, an end that was cut off, stays broken: to mend that would be to make something up.
"""

from __future__ import annotations

import json

from mindstream.errors import ReplyInvalid
from mindstream.models.reply import DEEPEST, broken_json, without_controls

LONGEST = 100_000
"""A text of more characters is not mended."""


def mend_json(text: str) -> str | None:
    """Return a text with JSON in the place of each JSON5 object or list that is no JSON; None where that cannot be.

    Linear in the text. What is read is what was written; whether it is what was asked for is for others to find out.
    """
    if len(text) > LONGEST:
        return None
    text = without_controls(text)
    parts, at = [], 0
    try:
        for start, end in broken_json(text):
            parts += [text[at:start], _read(text[start:end])]
            at = end
    except (ReplyInvalid, ValueError):
        return None
    return "".join([*parts, text[at:]]) if parts else None


def _read(text: str) -> str:
    """Return JSON for JSON5.

    Raises:
        ValueError: it is none, or JSON has no such number.
    """
    import pyjson5  # only where a model could not mend its own reply

    try:
        value = pyjson5.decode(text, maxdepth=DEEPEST)
    except pyjson5.Json5Exception as error:
        raise ValueError(str(error)[:200]) from None
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
