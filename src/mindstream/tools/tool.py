"""Tools, each with a name, a description, typed arguments and an async call; and tools made from Python functions."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import re
import threading
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cached_property, partial
from types import MappingProxyType
from typing import Annotated, Any, Protocol, TypeAlias, TypeVar, overload

from pydantic import StringConstraints, TypeAdapter, ValidationError
from pydantic_core import ArgsKwargs, to_json

from mindstream.errors import InputError, ReplyInvalid, ToolError
from mindstream.models.model import Call, JsonSchema, ToolSpec
from mindstream.models.prompt import complaints, first_json
from mindstream.models.schema import lean
from mindstream.moved import renamed_arguments

Batch: TypeAlias = Callable[[Sequence[Call]], Awaitable[Sequence[str]]]
"""A function that makes several calls of one tool at once, and returns the results in the order of the calls."""


@renamed_arguments(foreign="untrusted")
@dataclass(frozen=True, slots=True)
class Traits:
    """The properties of a tool that decide how it is called.

    Attributes:
        changes: the tool changes something outside (sends, writes, pays). Chat bots, planners and lives make a call
            only if the call is approved (see tools/call.py), and repeat it only if necessary.
        untrusted: the tool's results are third-party content (of a page, a server), whose instructions are not
            obeyed.
        key: name of the tool's argument for an idempotency key; several calls with the same key have their effect only
            once. "": the tool has no such argument.
        timeout_s: maximum duration of one call; None: the limit of the tool loop, plan or life that makes the call. The
            time that a person takes to approve the call does not count.
        retries: in a plan: maximum number of repetitions of a failed call; a tool with `changes` is called again only
            if it has a `key`.
        at_once: in a plan: maximum number of the tool's calls that run at the same time, if it has no `batch`.
        batch: in a plan: a function that makes several calls of the tool at once; None: each call is made by itself.
        cost_usd: cost of one call in US dollars, which planners count; None: not known.
        concludes: the tool's result is derived only from the arguments.
        finds: the tool's results name pages that may be fetched without approval (a search engine; see tools/call.py).
        ready: a function that returns whether the tool can be used now; while it cannot, a life does not offer the
            tool. None: the tool can always be used.
    """

    changes: bool = False
    untrusted: bool = False
    key: str = ""
    timeout_s: float | None = None
    retries: int = 0
    at_once: int = 8
    batch: Batch | None = None
    cost_usd: float | None = None
    concludes: bool = False
    finds: bool = False
    ready: Callable[[], bool] | None = None


PLAIN = Traits()
UNTRUSTED = Traits(untrusted=True)
"""The traits of a tool that only reads third-party content."""


def traits_of(tool: object) -> Traits:
    """Return a tool's traits. An object without traits has the traits PLAIN (it only computes)."""
    traits = getattr(tool, "traits", PLAIN)
    return traits if isinstance(traits, Traits) else PLAIN


def key_argument(tool: Tool) -> str:
    """Return the name of a tool's argument for an idempotency key; "" if the tool has no such argument."""
    key = traits_of(tool).key
    return key if key in tool.spec.arguments else ""


def accepted_names(schema: JsonSchema) -> tuple[JsonSchema, dict[str, str]]:
    """Return a schema whose arguments have names that endpoints accept, and the original names of renamed arguments.

    Anthropic refuses a whole request if an argument of one tool is called `filter[name]` or `Größe`, or has a name of
    more than 64 characters. The description of a renamed argument begins with its original name.
    """
    known: dict[str, Any] = schema.get("properties") or {}
    odd = [name for name in known if ODD_ARGUMENT.search(name) or not 0 < len(name) <= MAX_ARGUMENT]
    if not odd:
        return schema, {}
    originals: dict[str, str] = {}
    for name in odd:
        plain = stem = ODD_ARGUMENT.sub("_", name).strip("_")[: MAX_ARGUMENT - 4] or "argument"
        number = 1
        while plain in known or plain in originals:
            number += 1
            plain = f"{stem}_{number}"
        originals[plain] = name
    renamed = {name: plain for plain, name in originals.items()}

    def shown(name: str, node: Any) -> Any:
        if name not in renamed or not isinstance(node, dict):
            return node
        return {**node, "description": f"{name}: {said}" if (said := node.get("description")) else name}

    properties = {renamed.get(name, name): shown(name, node) for name, node in known.items()}
    required = schema.get("required")
    if isinstance(required, list):
        schema = {**schema, "required": [renamed.get(name, name) for name in required]}
    return {**schema, "properties": properties}, originals


def arguments_of(call: Call) -> dict[str, Any]:
    """Return the arguments of a call, unchecked; empty text means none.

    Raises:
        ReplyInvalid: the text contains no JSON object, or an incomplete one.
    """
    given: dict[str, Any] = first_json(call.arguments, dict) if call.arguments.strip() else {}
    return given


def read_arguments(call: Call, spec: ToolSpec, originals: Mapping[str, str] = MappingProxyType({})) -> dict[str, Any]:
    """Return the arguments of a call; `originals`: the original names of renamed arguments.

    Raises:
        ToolError: the arguments are not a JSON object, or do not fit the tool's schema.
    """
    try:
        given = arguments_of(call)
    except ReplyInvalid as error:
        raise ToolError(f"{spec.name}: {error}") from None
    if faults := spec.checker.find_faults(given):
        raise ToolError(f"{spec.name}: the arguments do not fit the tool's schema: {'; '.join(faults)}"[:2_000])
    return {originals.get(name, name): value for name, value in given.items()}


T = TypeVar("T")

ODD_ARGUMENT, MAX_ARGUMENT = re.compile(r"[^A-Za-z0-9_.-]+"), 64
"""Characters that endpoints refuse in the name of an argument, and the maximum length of the name."""
MAX_THREADS = 64
"""Maximum number of functions that run at the same time, including those whose caller has stopped waiting."""

_free = threading.Semaphore(MAX_THREADS)


async def run_in_thread(function: Callable[[], T]) -> T:
    """Run a function in a daemon thread and return its result; cancelling stops only the waiting, not the thread.

    Raises:
        ToolError: MAX_THREADS functions are running already, or no thread can be started.
    """
    if not _free.acquire(blocking=False):
        raise ToolError(f"this function was not started: {MAX_THREADS} earlier ones are still running")
    done: Future[tuple[T, None] | tuple[None, BaseException]] = Future()
    context = contextvars.copy_context()

    def work() -> None:
        came: tuple[T, None] | tuple[None, BaseException]
        try:
            came = context.run(function), None
        except BaseException as error:  # noqa: BLE001 (any error, SystemExit too, is raised in its caller)
            came = None, error
        _free.release()
        with contextlib.suppress(RuntimeError):  # the caller's loop may be closed
            done.set_result(came)

    done.set_running_or_notify_cancel()
    try:
        threading.Thread(target=work, name=getattr(function, "__name__", "tool"), daemon=True).start()
    except RuntimeError as full:  # the machine has no room for another thread
        _free.release()
        raise ToolError(f"no thread can be started: {full}") from None
    result, error = await asyncio.wrap_future(done)
    if error is not None:
        raise error
    return result  # type: ignore[return-value]


Words: TypeAlias = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=20_000)]
"""A request in words; not empty."""
ShortWords: TypeAlias = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=400)]
"""A query to an external service."""


class Tool(Protocol):
    """An object that a model can call with arguments."""

    @property
    def spec(self) -> ToolSpec:
        """The tool's name, description and arguments."""

    async def __call__(self, call: Call) -> str:
        """Run the tool and return its result as text.

        Raises:
            ToolError: the arguments do not fit, or the tool failed; the message is for the caller.
        """


AnyTools: TypeAlias = Sequence[Tool | Callable[..., Any]]
"""Values of `tools=`: a list of tools and of functions, which are made into tools (see `tool`)."""


@dataclass(frozen=True)
class FunctionTool:
    """A Python function as a tool: its type hints are the schema, its docstring is the description.

    A plain function runs in a thread, so it may block; an async function runs on the event loop.
    """

    spec: ToolSpec
    _arguments: TypeAdapter[dict[str, Any]]
    function: Callable[..., Any]
    """The original function, for callers that want to call it directly."""
    in_run: bool = False
    """Whether the tool changes the run that calls it, so that a resumed run has to call it again."""
    traits: Traits = PLAIN

    @cached_property
    def _is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.function)

    async def __call__(self, call: Call) -> str:
        try:
            arguments = self._arguments.validate_python(ArgsKwargs((), arguments_of(call)))
        except ValidationError as error:
            raise ToolError(
                f"{self.spec.name}: the arguments do not fit the tool's schema: {complaints(error)}"
            ) from None
        except ReplyInvalid as error:
            raise ToolError(f"{self.spec.name}: {error}") from None
        if self._is_async:
            return as_text(await self.function(**arguments))
        result = await run_in_thread(lambda: _called(self.function, arguments))
        return result if isinstance(result, str) else as_text(await result)


def _called(function: Callable[..., Any], arguments: dict[str, Any]) -> str | Awaitable[Any]:
    """Call a plain function and return its result as text, or the awaitable for the loop to await."""
    result = function(**arguments)
    return result if isinstance(result, Awaitable) else as_text(result)


def as_text(result: object) -> str:
    """Return the result of a tool as text: a text unchanged, any other value as JSON.

    A value of a type that JSON does not have is written by its `tolist` or `to_dict` (NumPy, pandas), or by its own
    `str`.

    Raises:
        ValueError: the result is a value without these methods, or an object (other than a collection) that contains
            such a value. A collection that contains such a value is written by its `str`.
    """
    if isinstance(result, str):
        return result
    try:
        return to_json(result, indent=1, inf_nan_mode="constants", fallback=_plain).decode()
    except ValueError:
        if not isinstance(result, Collection):
            raise
        return str(result)  # bytes that are no UTF-8, or a list that contains itself


def _plain(value: Any) -> Any:
    for name in ("tolist", "to_dict"):
        if callable(given := getattr(value, name, None)) and not isinstance(value, type):
            return given()
    if getattr(type(value), "__str__", None) is object.__str__:
        raise TypeError(f"expected a text or data as the result, found {type(value).__name__}")
    return str(value)


@overload
def tool(function: Callable[..., Any], traits: Traits = PLAIN) -> FunctionTool: ...
@overload
def tool(*, changes: bool) -> Callable[[Callable[..., Any]], FunctionTool]: ...
def tool(
    function: Callable[..., Any] | None = None, traits: Traits = PLAIN, *, changes: bool = False
) -> FunctionTool | Callable[[Callable[..., Any]], FunctionTool]:
    """Make a tool of a function, a method or a `partial`, sync or async, with type hints and a docstring.

        @tool
        def weather(city: str) -> str:
            \"\"\"Return today's weather in a city.\"\"\"
            return "rain"

    Functions may also be passed as they are (`tools=[weather]`).
    Arguments that a `partial` has set are not shown to the model, and cannot be set again. `@tool(changes=True)` means
    that the tool changes the world (sends, writes, pays), and is called only if the call is approved.

    Raises:
        TypeError: an argument has no type hint or cannot be given by name, or there is no docstring, which is the
            description for the model.
    """
    if function is None:
        return partial(tool, traits=Traits(changes=changes))
    key = _key(function)
    shape = _SHAPES[key] = _SHAPES.get(key) or _shape(function)
    if len(_SHAPES) > MAX_SHAPES:
        del _SHAPES[next(iter(_SHAPES))]
    return FunctionTool(*shape, function, traits=traits)


def is_in_run(call: Call, tools: Sequence[Tool]) -> bool:
    """Return whether a call changes the run itself (see FunctionTool.in_run)."""
    return any(getattr(each, "in_run", False) for each in tools if each.spec.name == call.tool)


def checked_tools(tools: AnyTools) -> tuple[Tool, ...]:
    """Return the tools of a list, with functions made into tools.

    Raises:
        InputError: two tools have the same name, a tool is a text, or `tools` is a single tool or function, not a list.
        TypeError: a function has no docstring, an argument without a type hint, or an argument that cannot be given by
            name.
    """
    if callable(tools) or hasattr(tools, "spec"):
        raise InputError(f"tools= expects a list of tools, such as [{getattr(tools, '__name__', 'weather')}]")
    if text := next((each for each in tools if isinstance(each, str)), None):
        raise InputError(
            f"{text!r} is a text, not a tool: pass a function or a Tool; tools of mindstream are opened by name with"
            f" `async with mindstream.tools.named.named_tools([{text!r}]) as tools:`"
        )
    made: tuple[Tool, ...] = tuple(each if hasattr(each, "spec") else tool(each) for each in tools)
    names = [each.spec.name for each in made]
    if double := next((name for name in names if names.count(name) > 1), None):
        raise InputError(f"two tools are called {double!r}: give one of them another name")
    return made


MAX_SHAPES = 500
_SHAPES: dict[object, tuple[ToolSpec, TypeAdapter[dict[str, Any]]]] = {}
"""Cache of each function's spec and arguments adapter. The key is the function's code and signature (`_key`), because a
closure is made into a tool again in every turn."""


def _key(function: Callable[..., Any]) -> object:
    """Return the cache key of a function's shape. If the key cannot be hashed, return a new object, which matches no
    other key."""
    hints = tuple(getattr(function, "__annotations__", {}).items())
    defaults = repr((getattr(function, "__defaults__", None), getattr(function, "__kwdefaults__", None)))
    words = getattr(function, "__name__", ""), getattr(function, "__doc__", "")
    key = getattr(function, "__code__", function), inspect.ismethod(function), *words, defaults, hints
    try:
        hash(key)
    except TypeError:
        return object()
    return key


def _shape(function: Callable[..., Any]) -> tuple[ToolSpec, TypeAdapter[dict[str, Any]]]:
    """Return a function's spec, and a Pydantic adapter that validates its arguments and returns them by name."""
    fixed: dict[str, Any] = {}
    inner = function
    while isinstance(inner, partial):
        fixed, inner = {**inner.keywords, **fixed}, inner.func
    name, description = getattr(inner, "__name__", "tool"), inspect.getdoc(inner)
    if not description:
        raise TypeError(f"the tool {name!r} needs a docstring: it is the description for the model")
    signature = inspect.signature(function, eval_str=True)
    wanted = [each for each in signature.parameters.values() if each.name not in fixed]
    for parameter in wanted:
        _check_parameter(parameter, name)

    def arguments(**given: Any) -> dict[str, Any]:
        return given

    arguments.__signature__ = inspect.Signature(wanted)  # type: ignore[attr-defined]
    arguments.__annotations__ = {parameter.name: parameter.annotation for parameter in wanted}
    arguments.__name__ = arguments.__qualname__ = name
    adapter: TypeAdapter[dict[str, Any]] = TypeAdapter(arguments)  # type: ignore[arg-type]
    return ToolSpec(name, description, lean(adapter.json_schema(), drop=("title",))), adapter


def _check_parameter(parameter: inspect.Parameter, name: str) -> None:
    if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
        raise TypeError(f"the tool {name!r}: a model cannot give {parameter}: each argument needs a name")
    if parameter.annotation is parameter.empty:
        raise TypeError(f"the tool {name!r}: the argument {parameter.name!r} needs a type hint")
