"""A tool: a name, what it does, typed arguments, an async call. Made from Python functions."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import BaseModel, TypeAdapter, ValidationError, create_model

from mindstream.errors import InputError, ReplyInvalid, ToolError
from mindstream.models.model import Call, JsonSchema, ToolSpec
from mindstream.models.prompt import complaints, first_json
from mindstream.tools.threads import run_in_thread


class Tool(Protocol):
    """Something that can be called with arguments."""

    @property
    def spec(self) -> ToolSpec:
        """Say what it does and what it takes."""

    async def __call__(self, call: Call) -> str:
        """Do it and return what came of it, as text.

        Raises:
            ToolError: the arguments do not fit, or it failed; the message is for the caller.
        """


@dataclass(frozen=True)
class FunctionTool:
    """A Python function as a tool; its type hints are its schema, its docstring says what it does.

    A plain function runs in a thread, so that it may take its time; an async one on the loop.
    """

    spec: ToolSpec
    _arguments: type[BaseModel]
    _function: Callable[..., Any]
    in_run: bool = False
    """What it does it does to the run that calls it: a run that is taken up again has to call it again."""

    async def __call__(self, call: Call) -> str:
        try:
            given = self._arguments.model_validate(first_json(call.arguments) if call.arguments.strip() else {})
        except ValidationError as error:
            raise ToolError(f"{self.spec.name}: the arguments do not fit: {complaints(error)}") from None
        except ReplyInvalid as error:
            raise ToolError(f"{self.spec.name}: {error}") from None
        arguments = {name: getattr(given, name) for name in type(given).model_fields}
        if inspect.iscoroutinefunction(self._function):
            return _written(await self._function(**arguments))
        result = await run_in_thread(lambda: _called(self._function, arguments))
        return result if isinstance(result, str) else _written(await result)


def _called(function: Callable[..., Any], arguments: dict[str, Any]) -> str | Awaitable[Any]:
    """Call a plain function and write down what it returns; an awaitable is for the loop to await."""
    result = function(**arguments)
    return result if isinstance(result, Awaitable) else _written(result)


def _written(result: object) -> str:
    return result if isinstance(result, str) else TypeAdapter(Any).dump_json(result, indent=1).decode()


def tool(function: Callable[..., Any]) -> FunctionTool:
    """Make a tool of a function, sync or async, with type hints and a docstring.

    Raises:
        TypeError: an argument has no type hint, or there is no docstring to tell the model what it does.
    """
    key = (getattr(function, "__code__", function), repr(getattr(function, "__defaults__", None)))
    if key not in _SHAPES:
        _SHAPES[key] = _shape(function)
    return FunctionTool(*_SHAPES[key], function)


def is_in_run(call: Call, tools: Sequence[Tool]) -> bool:
    """Tell whether a call does something to the run itself (see FunctionTool)."""
    return any(getattr(each, "in_run", False) for each in tools if each.spec.name == call.tool)


def checked_tools(tools: Sequence[Tool | Callable[..., Any]]) -> tuple[Tool, ...]:
    """Return tools, made of functions where they are functions.

    Raises:
        InputError: two have one name: which would be called?
        TypeError: see `tool`.
    """
    made: tuple[Tool, ...] = tuple(each if hasattr(each, "spec") else tool(each) for each in tools)
    names = [each.spec.name for each in made]
    if double := next((name for name in names if names.count(name) > 1), None):
        raise InputError(f"two tools are called {double!r}: give one of them another name")
    return made


_SHAPES: dict[tuple[object, str], tuple[ToolSpec, type[BaseModel]]] = {}
"""What was worked out of a function's code: a closure is made a tool every turn, and its code is always the same."""


def _shape(function: Callable[..., Any]) -> tuple[ToolSpec, type[BaseModel]]:
    description = inspect.getdoc(function)
    name = getattr(function, "__name__", "tool")
    if not description:
        raise TypeError(f"the tool {name!r} needs a docstring: it tells the model what the tool does")
    fields: dict[str, Any] = {}
    for parameter in inspect.signature(function, eval_str=True).parameters.values():
        if parameter.annotation is parameter.empty:
            raise TypeError(f"the tool {name!r}: the argument {parameter.name!r} needs a type hint")
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[parameter.name] = (parameter.annotation, default)
    arguments = create_model(name, **fields)
    schema: JsonSchema = arguments.model_json_schema()
    return ToolSpec(name, description, schema), arguments
