"""Which language a text is in, by its script."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

Language: TypeAlias = str
"""A language code: en, zh, …"""
CJK = re.compile(r"[\u3400-\u9fff]")


def language_of(text: str, among: tuple[Language, ...] = ("en", "zh")) -> Language:
    """Tell the language of a text by its script; the first of `among` where it cannot be told."""
    if "zh" in among and len(CJK.findall(text)) * 5 > sum(map(str.isalpha, text)):  # one says as much as four letters
        return "zh"
    return next((language for language in among if language != "zh"), among[0])


def simplify(text: str) -> str:
    """Return a text with simplified characters for traditional ones; each character keeps its place."""
    return text if text.isascii() else text.translate(_table())


@lru_cache(1)
def _table() -> dict[int, int]:
    lines = Path(__file__).with_name("traditional.txt").read_text("utf-8").splitlines()
    return str.maketrans("".join(lines[::2]), "".join(lines[1::2]))
