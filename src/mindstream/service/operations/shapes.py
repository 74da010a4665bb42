"""Base classes and field types of the requests and replies of operations."""

from __future__ import annotations

import re
from typing import Annotated, Any, Self, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr, WithJsonSchema

from mindstream.clock import EARLIEST, LATEST, Moment, moment, out_of_range
from mindstream.errors import InputError

CALLER = "caller"
"""Marks a field of a request that names the caller's user. With a token for one user, it may name only that user."""
MAX_PAGE = 200
"""Maximum number of entries on a page."""


def _apart(names: object) -> object:
    given = [names] if isinstance(names, str) else names
    if not isinstance(given, list | tuple):
        return given
    parts = [part for each in given for part in (each.split(",") if isinstance(each, str) else [each])]
    return [part.strip() if isinstance(part, str) else part for part in parts if part != ""]


Short: TypeAlias = Annotated[str, Field(max_length=100)]
"""A name or an id; "" means none."""
NotBlank: TypeAlias = Annotated[str, Field(min_length=1, max_length=100)]
Seq: TypeAlias = Annotated[int, Field(ge=0, le=2**62)]
"""The number of a row of the log, or 0 for the time before the first row."""
RowNumber: TypeAlias = Annotated[int, Field(ge=1, le=2**62)]
Names: TypeAlias = Annotated[list[str], BeforeValidator(_apart), Field(max_length=100)]
"""A list of names; each given text may contain several names, separated by commas."""


def _reading(*, whole_day: bool = False) -> BeforeValidator:
    def read(when: object) -> object:
        if isinstance(when, bool):
            raise ValueError("a time is a number of seconds since 1970 or an ISO 8601 text, not true or false")
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
"""A time: seconds since 1970, or ISO 8601 text (UTC if it has no time zone)."""
Until: TypeAlias = Annotated[Moment, _reading(whole_day=True), BOUNDS, SHOWN]
"""The last moment of a time span; a date without a time means the end of that day."""


class Ask(BaseModel):
    """The base class of requests; a request with an unknown field is rejected."""

    model_config = ConfigDict(frozen=True, extra="forbid")


CallerName: TypeAlias = Annotated[str, CALLER]
"""The type of a field that names the caller's user (see CALLER)."""


class Reply(BaseModel):
    """The base class of replies."""

    model_config = ConfigDict(frozen=True)
    _local: Any = PrivateAttr(None)

    @property
    def local(self) -> Any:
        """The object that the reply was made from, for callers in this process, such as the command line.

        It is not sent to clients.
        """
        return self._local

    def made_from(self, local: object) -> Self:
        """Attach the object that the reply was made from (see `local`)."""
        self._local = local
        return self

    @classmethod
    def from_object(cls, source: object, /, **values: Any) -> Self:
        """Return a reply whose fields are copied from the attributes of `source`, except those given in `values`."""
        names = [name for name in cls.model_fields if name not in values and hasattr(source, name)]
        return cls(**{name: getattr(source, name) for name in names}, **values).made_from(source)


class EmptyRequest(Ask):
    """A request without parameters."""


class Page(Ask):
    """Which page of a list to return.

    `limit`: the maximum number of entries. `cursor`: the `next` of the previous page, "": the first page.
    """

    limit: int = Field(50, ge=1, le=MAX_PAGE)
    cursor: str = Field("", max_length=200)
