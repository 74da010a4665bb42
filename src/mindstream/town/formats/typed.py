"""From the objects of a JSON file to frozen data and back; what is not known is kept in `extra`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, JsonValue, Strict, TypeAdapter, ValidationError

from mindstream.errors import InputError
from mindstream.town.formats.files import expect_object

T = TypeVar("T")
_ADAPTERS: dict[type[Any], TypeAdapter[Any]] = {}
EXTRA = "extra"
FIRST_YEAR, LAST_YEAR = 1970, 9000
LARGEST = 1e9
CLOCK = "%B %d, %Y, %H:%M:%S"
"""How the authors write a moment of the game ("February 13, 2023, 11:21:30")."""
DATE = "%B %d, %Y"
STAMP = "%Y-%m-%d %H:%M:%S"
"""How they write it in nodes ("2023-02-13 11:21:30")."""


def parse_clock(text: str) -> datetime:
    """Read a moment of the game as the authors write it.

    Raises:
        ValueError: it is none.
    """
    return datetime.strptime(text, CLOCK)


def parse_stamp(text: str) -> datetime:
    """Read a moment of the game as nodes have it.

    Raises:
        ValueError: it is none.
    """
    return datetime.strptime(text, STAMP)


def _checked(form: str) -> AfterValidator:
    def check(text: str) -> str:
        if not FIRST_YEAR <= datetime.strptime(text, form).year <= LAST_YEAR:
            raise ValueError(f"a year from {FIRST_YEAR} to {LAST_YEAR} is wanted")
        return text

    return AfterValidator(check)


Whole = Annotated[int, Strict()]


def _is_sane(number: float) -> float:
    if not -LARGEST <= number <= LARGEST:
        raise ValueError(f"a number up to {LARGEST:.0e} is wanted")
    return number


Number = Annotated[Annotated[int, Strict()] | Annotated[float, Strict()], AfterValidator(_is_sane)]
ClockText = Annotated[str, _checked(CLOCK)]
DateText = Annotated[str, _checked(DATE)]
StampText = Annotated[str, _checked(STAMP)]


def parse_as(kind: type[T], data: JsonValue, where: str, **more: object) -> T:
    """Read an object as a frozen dataclass with a field `extra`, which takes the keys it does not know.

    Raises:
        InputError: a key is missing or holds something else; the message begins with `where` and names the key.
    """
    known = {field.name for field in fields(kind)} - {EXTRA}  # type: ignore[arg-type]
    given = expect_object(data, where)
    held = {key: value for key, value in given.items() if key in known}
    rest = {key: value for key, value in given.items() if key not in known}
    try:
        read: T = _adapter(kind).validate_python({**held, **more, EXTRA: rest})
        return read
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise InputError(f"{where}: {place}: {first['msg']} (it is {first['input']!r:.60})") from None


def to_plain(value: object, without: frozenset[str] = frozenset()) -> JsonValue:
    """Return frozen data as plain data, what was in `extra` beside the rest."""
    if is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in fields(value) if field.name not in without | {EXTRA}]
        plain = {name: to_plain(getattr(value, name)) for name in names}
        extra: dict[str, JsonValue] = dict(getattr(value, EXTRA, {}))
        return {**plain, **extra}
    if isinstance(value, Mapping):
        return {str(key): to_plain(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return [to_plain(each) for each in value]
    if value is None or isinstance(value, str | int | float):
        return value
    raise TypeError(f"{type(value).__name__} is no plain data")


def _adapter(kind: type[T]) -> TypeAdapter[T]:
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]
