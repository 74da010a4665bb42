"""A page of pairs for people to judge: one file, offline, which gives a CSV."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable
from functools import cache
from html import escape
from pathlib import Path

from mindstream.town.evaluation.evidence import Facts
from mindstream.town.evaluation.pairs import Pair

FOLDER = Path(__file__).parent


def build_page(town: str, pairs: Iterable[tuple[Pair, Facts]]) -> str:
    """Return the page; no condition stands in it, and what was written by others cannot be markup."""
    shown = [
        {
            "id": pair.id,
            "resident": pair.item.resident,
            "question": pair.item.question.id,
            "text": pair.item.question.text,
            "when": facts.when,
            "facts": facts.lines,
            "answers": [pair.first.text, pair.second.text],
        }
        for pair, facts in pairs
    ]
    said = json.dumps({"town": town, "pairs": shown}, ensure_ascii=False).encode("utf-8", "replace").decode()
    style, script = _read("pairs.css"), f'"use strict";\n(() => {{\n{_read("pairs.js")}\n}})();\n'
    parts = {
        "title": escape(town),
        "style": style,
        "script": script,
        "style_source": _source(style),
        "script_source": _source(script),
        "pairs": said.replace("<", "\\u003c"),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda gap: parts[gap[1]], _read("pairs.html"))


def _source(text: str) -> str:
    """Name a script or style as a Content-Security-Policy does."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _read(name: str) -> str:
    return (FOLDER / name).read_text("utf-8")
