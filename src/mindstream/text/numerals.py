"""Replace numbers in words, English and Chinese, by digits: "twenty-five" and 二十五 become 25."""

from __future__ import annotations

import re
from collections.abc import Sequence

ONES = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
SMALL = {word: n for n, word in enumerate(ONES)} | {word: 10 * n for n, word in enumerate(TENS, 2)}
LARGE = {"hundred": 100, "thousand": 1_000, "million": 10**6, "billion": 10**9}
DIGITS = dict(zip("零一二三四五六七八九", range(10), strict=True)) | {"两": 2}
PLACES = {"十": 10, "百": 100, "千": 1_000, "万": 10_000, "亿": 10**8}
_WORD = "|".join((*SMALL, *LARGE))
_ENGLISH = re.compile(
    rf"\b(?:(?:a|an) (?=(?:{'|'.join(LARGE)})\b))?(?:{_WORD})(?:(?:-|\s+and\s+|\s+)(?:{_WORD}))*\b", re.I
)
_CHINESE = re.compile(r"(?!一[共样起般]|百分之)[零一二两三四五六七八九十百千万亿]+")


def in_digits(text: str) -> str:
    """Return a text with its numbers in digits."""
    return _CHINESE.sub(_chinese, _ENGLISH.sub(_english, text))


def _english(found: re.Match[str]) -> str:
    words = re.findall(r"[a-z]+", found[0].lower())
    known = [word for word in words if word in SMALL or word in LARGE]
    parts = re.split(r"\s+and\s+", found[0])
    if len(parts) > 1 and not _is_one_number(parts):
        return " and ".join(in_digits(part) for part in parts)
    whole, group = 0, 0
    for word in known:
        if word in SMALL:
            group += SMALL[word]
        elif word == "hundred":
            group = max(group, 1) * 100
        else:
            whole, group = whole + max(group, 1) * LARGE[word], 0
    return str(whole + group)


def _is_one_number(parts: Sequence[str]) -> bool:
    """Return whether parts joined by "and" are one number ("two hundred and five") or several ("two and five")."""
    return all(re.search(rf"\b(?:{'|'.join(LARGE)})$", part, re.I) for part in parts[:-1])


def _chinese(found: re.Match[str]) -> str:
    if not any(sign in PLACES for sign in found[0]):
        return "".join(str(DIGITS[sign]) for sign in found[0])
    whole, group, digit = 0, 0, 0
    for at, sign in enumerate(found[0]):
        if sign in DIGITS:
            digit = DIGITS[sign]
        elif PLACES[sign] >= 10_000:
            if not at:
                return found[0]  # 3.5万: a unit of the preceding number
            whole, group, digit = (whole + group + digit) * PLACES[sign], 0, 0
        else:
            group, digit = group + (digit or 1) * PLACES[sign], 0
    return str(whole + group + digit)
