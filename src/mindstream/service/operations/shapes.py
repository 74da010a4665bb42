"""Base classes and field types of the requests and replies of operations."""

from __future__ import annotations

import re
from typing import Annotated, Any, Self, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr, WithJsonSchema

from mindstream.clock import EARLIEST, LATEST, Moment, moment, out_of_range
from mindstream.errors import InputError

CALLER = "caller"
"""Marks a field of a request that names the caller's user: a token for one user may name that user alone."""
MAX_PAGE = 200
"""Maximum size of a page."""


def _apart(names: object) -> object:
    given = [names] if isinstance(names, str) else names
    if not isinstance(given, list | tuple):
        return given
    parts = [part for each in given for part in (each.split(",") if isinstance(each, str) else [each])]
    return [part.strip() if isinstance(part, str) else part for part in parts if part != ""]


Names: TypeAlias = Annotated[list[str], BeforeValidator(_apart), Field(max_length=100)]
"""Names: one by one, or separated by commas."""


def _reading(*, whole_day: bool = False) -> BeforeValidator:
    def read(when: object) -> object:
        if isinstance(when, bool):
            raise ValueError("a time is a number of seconds or a text, not true or false")
        is_date = isinstance(when, str) and len(when.strip()) in (len("2026"), len("20261120"))
        if isinstance(when, str) and (is_date or not SECONDS.fullmatch(when)):
            try:
                return moment(when, whole_day=whole_day)
            except InputError as error:
                raise ValueError(str(error).removeprefix("a time: ")) from None
        at = float(when) if isinstance(when, str | int | float) else 0.0
        if not EARLIEST <= at <= LATEST:
            raise ValueError(out_of_range(at))
        return when

    return BeforeValidator(read)


SECONDS = re.compile(r"\d+(\.\d*)?")
BOUNDS = Field(ge=EARLIEST, le=LATEST, allow_inf_nan=False)
SHOWN = WithJsonSchema(
    {
        "anyOf": [
            {"type": "number", "minimum": EARLIEST, "maximum": LATEST},
            {"type": "string", "examples": ["2026-11-20T21:30Z"]},
        ]
    }
)
At: TypeAlias = Annotated[Moment, _reading(), BOUNDS, SHOWN]
"""A time: seconds since 1970, or ISO 8601 text, in UTC where it names no zone."""
Until: TypeAlias = Annotated[Moment, _reading(whole_day=True), BOUNDS, SHOWN]
"""The end of a time span, included: a date alone means the whole day."""


class Ask(BaseModel):
    """The base of requests: unknown fields are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


CallerName: TypeAlias = Annotated[str, CALLER]
"""A field that names the caller's user (see CALLER)."""


class Reply(BaseModel):
    """The base of replies."""

    model_config = ConfigDict(frozen=True)
    _local: Any = PrivateAttr(None)

    @property
    def local(self) -> Any:
        """The object that the reply was made from, for callers in this process, as the command line; it is not sent."""
        return self._local

    def made_from(self, local: object) -> Self:
        """Attach the object that the reply was made from (see `local`)."""
        self._local = local
        return self

    @classmethod
    def from_object(cls, source: object, /, **values: Any) -> Self:
        """Return a reply with a source's attributes; `values`: fields that are not taken from it."""
        names = [name for name in cls.model_fields if name not in values and hasattr(source, name)]
        return cls(**{name: getattr(source, name) for name in names}, **values).made_from(source)


class EmptyRequest(Ask):
    """No parameters."""


class Page(Ask):
    """A page of a list: `cursor` is the `next` of the page before."""

    limit: int = Field(50, ge=1, le=MAX_PAGE)
    cursor: str = Field("", max_length=200)
