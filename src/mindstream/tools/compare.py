"""Comparison of two quantities or dates that were found: which is more, and by which numbers."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field

from mindstream.errors import ToolError
from mindstream.text.numerals import in_digits
from mindstream.text.units import size_of

Pair = Annotated[list[str], Field(min_length=2, max_length=2)]
QUANTITY = re.compile(
    r"(\d[\d,]*(?:\.\d+)?)\s*(thousand|million|billion|[千万亿](?!米))?\s*((?:square )?[^\s\d.,;()]*)"
)
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "千": 10**3, "万": 10**4, "亿": 10**8}


async def compare(which: Literal["more", "less", "difference"], names: Pair, values: Pair) -> str:
    """Compare two numbers with their units, or two dates, and return the name of the one that is more (or less).

    names: what to call the two; values: theirs, as "8,849 metres" or "16 August 2001"; of dates the later is more;
    difference: how much more the first number is.
    """
    (kind, first), (other, second) = map(_measure, values)
    if kind != other:
        raise ToolError(f"{values[0][:60]!r} and {values[1][:60]!r} cannot be compared: they are of different kinds")
    if which == "difference":
        return _difference(values, first, second)
    if first == second:
        return f"neither: {values[0]} against {values[1]}"
    won = int((first > second) is (which == "less"))
    return f"{names[won]} ({values[won]} against {values[1 - won]})"


def _difference(values: list[str], first: tuple[Decimal | int, ...], second: tuple[Decimal | int, ...]) -> str:
    """Return how much more the first is, in its unit; where it is less, that it is."""
    found = QUANTITY.search(in_digits(values[0]))
    if found is None or len(first) > 1 or isinstance(first[0], int):
        raise ToolError("how much lies between two dates is not worked out; ask which is earlier")
    measured = size_of(found[3])
    much = (first[0] - second[0]) / (measured[1] if measured else 1)
    said = f"{f'{abs(much):,f}'.rstrip('0').rstrip('.') if much % 1 else f'{abs(much):,.0f}'} {found[3]}".strip()
    return f"{said} ({values[0]} against {values[1]})" if much > 0 else f"it is not: {values[0]} against {values[1]}"


def _measure(text: str) -> tuple[str, tuple[Decimal | int, ...]]:
    """Return the kind of a quantity and its size in one unit; of a date, year, month and day."""
    if date := _date(text):
        return "date", date
    found = QUANTITY.search(in_digits(text))
    if not found:
        raise ToolError(f"there is no number and no date in {text[:80]!r}")
    size = Decimal(found[1].replace(",", "")) * SCALES.get(found[2], 1)
    if measured := size_of(found[3]):
        kind, unit = measured
        return kind, (size * unit,)
    return found[3].removesuffix("s").lower(), (size,)


def _date(text: str) -> tuple[Decimal | int, ...] | None:
    month = re.search(rf"\b({'|'.join(MONTHS)})[a-z]*\b", text, re.I)
    year = re.search(r"(?<![\d,.])(\d{4})(?:年|(?![\d,.]| ?[a-z²/%]))", text)
    if not year or not (month or "年" in text or re.fullmatch(r"(?:in |around |about )?\d{4}", text.strip())):
        return None
    day = re.search(r"(?<!\d)(\d{1,2})(?!\d)", text)
    if not month:
        return (int(year[1]),)
    return (int(year[1]), MONTHS.index(month[1].lower()) + 1, *([int(day[1])] if day else []))
