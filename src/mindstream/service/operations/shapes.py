"""What all requests and replies of operations are."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

MOST_PAGE = 200
"""So much is given at once, at most."""


class Ask(BaseModel):
    """The base of what is asked for: what is not known is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Reply(BaseModel):
    """The base of what is answered."""

    model_config = ConfigDict(frozen=True)


class NoQuestion(Ask):
    """Nothing is to be said."""


class Page(Ask):
    """A page of a list: `cursor` is what the page before gave as `next`."""

    limit: int = Field(50, ge=1, le=MOST_PAGE)
    cursor: str = Field("", max_length=200)
