"""What goes wrong, as application/problem+json (RFC 9457): a dozen types, a sentence, never a trace."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType

from pydantic import BaseModel, ValidationError

from mindstream.errors import (
    BudgetSpent,
    Conflict,
    ErasedMeanwhile,
    InputError,
    MindstreamError,
    ModelError,
    SettingsError,
    StorageError,
    ToolError,
    UserError,
)
from mindstream.service.operations.principal import Forbidden, NotFound, NotOffered

TYPE = "application/problem+json"


class Problem(BaseModel):
    """What went wrong. `type` is one of the table in docs/server.md; `detail` says what to do, where that is known."""

    type: str
    title: str
    status: int
    detail: str = ""


class Refusal(Exception):  # noqa: N818
    """Ends a request with a problem.

    Attributes:
        kind: one of `PROBLEMS`.
        headers: that go with it.
    """

    def __init__(self, kind: str, detail: str = "", headers: Mapping[str, str] = MappingProxyType({})) -> None:
        super().__init__(kind, detail)
        self.kind, self.detail, self.headers = kind, detail, headers


PROBLEMS = {
    "invalid": (422, "The request does not fit"),
    "malformed": (400, "The request cannot be read"),
    "unauthenticated": (401, "A token is wanted"),
    "forbidden": (403, "That is not allowed"),
    "not-found": (404, "There is no such thing"),
    "method": (405, "That cannot be done here"),
    "not-acceptable": (406, "It cannot be given in that form"),
    "conflict": (409, "Somebody was first"),
    "too-large": (413, "It is too large"),
    "media-type": (415, "It cannot be read in that form"),
    "misdirected": (421, "This host is not served here"),
    "too-many": (429, "Too much was asked for"),
    "internal": (500, "It is our fault"),
    "not-offered": (501, "The operator has not set that up"),
    "model": (502, "A model or tool did not answer as asked"),
    "unavailable": (503, "It cannot be done just now"),
}
"""By the last part of its type: the status and the title."""

KINDS: tuple[tuple[type[Exception], str], ...] = (
    (NotFound, "not-found"),
    (Forbidden, "forbidden"),
    (NotOffered, "not-offered"),
    (SettingsError, "not-offered"),
    (InputError, "invalid"),
    (UserError, "invalid"),
    (Conflict, "conflict"),
    (ErasedMeanwhile, "conflict"),
    (StorageError, "unavailable"),
    (BudgetSpent, "too-many"),
    (ModelError, "model"),
    (ToolError, "model"),
    (MindstreamError, "internal"),
)


def problem(kind: str, detail: str = "") -> Problem:
    """Return a problem of a kind."""
    status, title = PROBLEMS[kind]
    return Problem(type=f"urn:mindstream:problem:{kind}", title=title, status=status, detail=detail)


def problem_of(error: BaseException) -> tuple[Problem, Mapping[str, str]]:
    """Return how an error is told, and its headers; of what is our own fault nothing is told but that."""
    if isinstance(error, Refusal):
        return problem(error.kind, error.detail), error.headers
    if isinstance(error, ValidationError):
        return problem("invalid", describe_mistakes(error.errors())), {}
    for shape, kind in KINDS:
        if isinstance(error, shape):
            if kind == "unavailable":
                return problem(kind, "the memory cannot be read or written just now"), {"Retry-After": "2"}
            return problem(kind, "" if kind == "internal" else str(error)[:2_000]), {}
    return problem("internal"), {}


PLACES = ("body", "query", "path", "header")
"""The first part of where a mistake is in a REST request; an argument may have such a name, too."""


def describe_mistakes(mistakes: object, *, is_rest: bool = False) -> str:
    """Say what does not fit, field by field, and of what type it was; what was sent is not repeated."""
    told = []
    for each in list(mistakes)[:10] if isinstance(mistakes, list | tuple) else []:
        parts = list(each["loc"])
        if is_rest and len(parts) > 1 and parts[0] in PLACES:
            del parts[0]
        where = ".".join(map(str, parts))[:100]
        found = f", found {_type(each['input'])}" if each.get("type") != "missing" and "input" in each else ""
        told.append(f"{where}: {each['msg']}{found}" if where else f"{each['msg']}{found}")
    return "; ".join(told)


def _type(value: object) -> str:
    names = {str: "a text", bool: "a boolean", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return "null" if value is None else names.get(type(value), "something else")


def body_of(found: Problem) -> bytes:
    """Return a problem as bytes."""
    return json.dumps(found.model_dump(), ensure_ascii=True).encode()
