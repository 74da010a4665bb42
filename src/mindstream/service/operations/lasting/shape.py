"""How an operation that takes its time is shown: by doors, and in the file in which its end is kept."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import Field, JsonValue

from mindstream.clock import Moment
from mindstream.service.operations.shapes import Reply

State: TypeAlias = Literal["running", "waiting", "done", "failed", "cancelled", "interrupted"]


class Note(Reply):
    """A line of progress."""

    at: Moment
    text: str


class Wanted(Reply):
    """Something that waits for a yes: a plan before it is run, a call that changes the world."""

    id: str
    what: Literal["plan", "call"]
    text: str
    data: dict[str, JsonValue] = Field({})


class OperationShape(Reply):
    """An operation as doors show it; `result` is that of the operation, where it is done.

    `interrupted`: the server ended first; `problem` says how to go on.
    """

    id: str
    operation: str
    user: str = ""
    run: str = ""
    state: State
    began: Moment
    ended: Moment | None = None
    progress: list[Note] = Field([])
    waits_for: list[Wanted] = Field([])
    result: JsonValue = None
    problem: str = ""
