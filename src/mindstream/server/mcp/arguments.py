"""Arguments of tools, read as models send them: more than was asked for, JSON in quotes, null for what is left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, from_json

from mindstream.errors import InputError
from mindstream.server.mcp.tools import MemoryTool
from mindstream.server.problems import describe_mistakes


def read_arguments(tool: MemoryTool, given: Mapping[str, Any]) -> BaseModel:
    """Return the request that a call means; what the tool does not know is left out.

    Raises:
        InputError: it does not fit; which argument does not, and why, is said, what was sent is not repeated.
    """
    fields = {shown: name for name, shown in tool.names.items()}
    told: dict[str, Any] = {}
    for name, value in given.items():
        if value is not None and (real := fields.get(name) or (name if name in tool.names else None)):
            told[real] = value if name in fields or real not in told else told[real]
    try:
        return _validated(tool.operation.request, told)
    except ValidationError as error:
        raise InputError(describe_mistakes([_as_called(tool, each) for each in error.errors()])) from None


def _validated(request: type[BaseModel], told: dict[str, Any]) -> BaseModel:
    """Validate; a field that does not fit is tried in the other forms in which models send it.

    Raises:
        ValidationError: it fits in none of them.
    """
    try:
        return request.model_validate(told)
    except ValidationError as error:
        first, wrong = error, _wrong(error)
    for name in wrong & told.keys():
        for form in _other_forms(told[name]):
            try:
                return request.model_validate(told | {name: form})
            except ValidationError as error:
                if name not in _wrong(error):
                    told = told | {name: form}
                    break
    raise first


def _wrong(error: ValidationError) -> set[str]:
    return {str(each["loc"][0]) for each in error.errors() if each["loc"]}


def _other_forms(value: Any) -> Iterator[Any]:
    """Yield what else a value may mean: JSON in quotes, a list with commas, a number as text."""
    if isinstance(value, str):
        try:
            yield from_json(value)
        except ValueError:
            yield [part.strip() for part in value.split(",") if part.strip()]
    elif isinstance(value, list) and all(isinstance(each, str) for each in value):
        yield ",".join(value)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)


def _as_called(tool: MemoryTool, mistake: ErrorDetails) -> dict[str, Any]:
    """Return a mistake about an argument by the name that the tool has for it."""
    first, *more = mistake["loc"] or ("",)
    return {**mistake, "loc": (tool.names.get(str(first), first), *more)}
