"""Units of measure and how they convert: of one kind, each in how many of its first."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from mindstream.text.words import stem

KINDS: Mapping[str, Mapping[str, str]] = {
    "length": {
        "m": "1", "metre": "1", "meter": "1", "km": "1000", "kilometre": "1000", "kilometer": "1000", "cm": "0.01",
        "centimetre": "0.01", "centimeter": "0.01", "mm": "0.001", "millimetre": "0.001", "millimeter": "0.001",
        "ft": "0.3048", "foot": "0.3048", "feet": "0.3048", "inch": "0.0254", "inche": "0.0254", "yard": "0.9144",
        "mile": "1609.344", "mi": "1609.344", "米": "1", "公里": "1000", "千米": "1000", "厘米": "0.01",
    },
    "area": {"square metre": "1", "square meter": "1", "m²": "1", "square kilometre": "1000000",
             "square kilometer": "1000000", "km²": "1000000", "square mile": "2589988.110336", "hectare": "10000",
             "平方米": "1", "平方公里": "1000000", "平方千米": "1000000"},
    "mass": {"kg": "1", "kilogram": "1", "kilo": "1", "g": "0.001", "gram": "0.001", "tonne": "1000", "t": "1000",
             "pound": "0.45359237", "lb": "0.45359237", "公斤": "1", "千克": "1", "克": "0.001", "吨": "1000"},
    "speed": {"km/h": "1", "mph": "1.609344", "m/s": "3.6"},
    "time": {"second": "1", "minute": "60", "hour": "3600", "day": "86400", "week": "604800", "秒": "1", "分钟": "60",
             "小时": "3600", "天": "86400"},
    "volume": {"litre": "1", "liter": "1", "l": "1", "ml": "0.001", "millilitre": "0.001", "milliliter": "0.001",
               "升": "1", "毫升": "0.001"},
}  # fmt: skip
KIND_OF_STEM = {stem(name): kind for kind, units in KINDS.items() for name in units}


def kind_of(stemmed: str) -> str:
    """Return what a unit that was stemmed measures; "" where it is none."""
    return KIND_OF_STEM.get(stemmed, "")


def size_of(unit: str) -> tuple[str, Decimal] | None:
    """Return a unit's kind, and how many of the kind's first it is; None where it is none."""
    for kind, units in KINDS.items():
        for name in (unit, unit.lower(), unit.lower().removesuffix("s")):
            if name in units:
                return kind, Decimal(units[name])
    return None
