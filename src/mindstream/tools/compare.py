"""Comparison of two quantities or dates that were found: which is more, and by which numbers."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field

from mindstream.errors import ToolError
from mindstream.text.numerals import in_digits

Pair = Annotated[list[str], Field(min_length=2, max_length=2)]
QUANTITY = re.compile(
    r"(\d[\d,]*(?:\.\d+)?)\s*(thousand|million|billion|[千万亿](?!米))?\s*((?:square )?[^\s\d.,;()]*)"
)
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
SCALES = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "千": 1e3, "万": 1e4, "亿": 1e8}
UNITS = {
    "length": {"m": 1, "metre": 1, "meter": 1, "km": 1e3, "kilometre": 1e3, "kilometer": 1e3, "cm": 0.01, "mm": 1e-3,
               "ft": 0.3048, "foot": 0.3048, "feet": 0.3048, "mile": 1609.344, "mi": 1609.344,
               "米": 1, "公里": 1e3, "千米": 1e3},
    "area": {"square metre": 1, "m²": 1, "square kilometre": 1e6, "square kilometer": 1e6, "km²": 1e6,
             "square mile": 2.59e6, "hectare": 1e4, "平方公里": 1e6, "平方千米": 1e6},
    "mass": {"g": 1e-3, "gram": 1e-3, "kg": 1, "kilogram": 1, "tonne": 1e3, "ton": 1e3, "t": 1e3, "公斤": 1, "吨": 1e3},
    "speed": {"km/h": 1, "mph": 1.609344, "m/s": 3.6},
}  # fmt: skip


async def compare(which: Literal["more", "less"], names: Pair, values: Pair) -> str:
    """Compare two numbers with their units, or two dates, and return the name of the one that is more (or less).

    names: what to call the two; values: theirs, as "8,849 metres" or "16 August 2001"; of dates the later is more.
    """
    (kind, first), (other, second) = map(_measure, values)
    if kind != other:
        raise ToolError(f"{values[0][:60]!r} and {values[1][:60]!r} cannot be compared: they are of different kinds")
    if first == second:
        return f"neither: {values[0]} against {values[1]}"
    won = int((first > second) is (which == "less"))
    return f"{names[won]} ({values[won]} against {values[1 - won]})"


def _measure(text: str) -> tuple[str, tuple[float, ...]]:
    """Return the kind of a quantity and its size in one unit; of a date, year, month and day."""
    if date := _date(text):
        return "date", date
    found = QUANTITY.search(in_digits(text))
    if not found:
        raise ToolError(f"there is no number and no date in {text[:80]!r}")
    size = float(found[1].replace(",", "")) * SCALES.get(found[2], 1)
    for kind, units in UNITS.items():
        for unit in (found[3], found[3].removesuffix("s")):
            if unit in units:
                return kind, (size * units[unit],)
    return found[3].removesuffix("s").lower(), (size,)


def _date(text: str) -> tuple[float, ...] | None:
    month = re.search(rf"\b({'|'.join(MONTHS)})[a-z]*\b", text, re.I)
    year = re.search(r"(?<![\d,.])(\d{4})(?:年|(?![\d,.]| ?[a-z²/%]))", text)
    if not year or not (month or "年" in text or re.fullmatch(r"(?:in |around |about )?\d{4}", text.strip())):
        return None
    day = re.search(r"(?<!\d)(\d{1,2})(?!\d)", text)
    if not month:
        return (float(year[1]),)
    return (float(year[1]), MONTHS.index(month[1].lower()) + 1.0, *([float(day[1])] if day else []))
