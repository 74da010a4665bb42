"""What all requests and replies of operations are."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

CALLER = "caller"
"""Marks a field of a request that names the user who asks: a token for one user may name that user alone."""
MOST_PAGE = 200
"""So much is given at once, at most."""


def _apart(names: object) -> object:
    given = [names] if isinstance(names, str) else names
    if not isinstance(given, list | tuple):
        return given
    parts = [part for each in given for part in (each.split(",") if isinstance(each, str) else [each])]
    return [part.strip() if isinstance(part, str) else part for part in parts if part != ""]


Names: TypeAlias = Annotated[list[str], BeforeValidator(_apart), Field(max_length=100)]
"""Names: one by one, or with commas between."""


class Ask(BaseModel):
    """The base of what is asked for: what is not known is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


CallerName: TypeAlias = Annotated[str, CALLER]
"""A field that names the user who asks (see CALLER)."""


class Reply(BaseModel):
    """The base of what is answered."""

    model_config = ConfigDict(frozen=True)


class NoQuestion(Ask):
    """Nothing is to be said."""


class Page(Ask):
    """A page of a list: `cursor` is what the page before gave as `next`."""

    limit: int = Field(50, ge=1, le=MOST_PAGE)
    cursor: str = Field("", max_length=200)
