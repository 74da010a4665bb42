"""Errors that say what to do after mistakes for which Python's own error gives no help: an unknown argument, a
forgotten `await`, a forgotten `async with`."""

from __future__ import annotations

import difflib
import inspect
import shlex
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Collection,
    Coroutine,
    Generator,
    Iterable,
    Sequence,
)
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from functools import partial, wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, TypeVar

from mindstream.errors import InputError


def unlocated(user: str) -> str:
    """Return the flag ` --user NAME` for a user; "" if `user` is ""."""
    return f" --user {shlex.quote(user)}" if user else ""


LOCATED: ContextVar[Callable[[str], str]] = ContextVar("LOCATED", default=unlocated)
"""A function that returns the flags that select a user's data in a suggested command, such as ` --data DIR --user ann`.
Its argument is the user; "": the user of the running command. Outside the command line the function is `unlocated`."""
P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
SYNC = "in a program without asyncio, use mindstream.sync"


def nearest(name: str, known: Iterable[str], least: float = 0.6) -> str:
    """Return the known name that is spelled most like `name`; "" if no similarity (0 to 1) reaches `least`."""
    return next(iter(difflib.get_close_matches(name, list(known), 1, least)), "")


def next_step(words: str, user: str = "") -> str:
    """Return a command for a message, in backquotes, with the flags that say whose data it is about.

    Args:
        user: the user who has to give the command; "": the user of the running command.
    """
    return f"`mindstream {words}{LOCATED.get()(user)}`"


COUNTS = ("k", "limit", "n", "top_k", "topk", "top_n", "count", "max_results")
"""Names of the argument for a maximum number of results."""
COMMON = {
    "data": ("path", "folder", "directory", "dir", "url", "db", "database", "data_dir", "metadata", "meta"),
    "name": ("user", "user_id", "username", "owner"),
    "user": ("name", "user_id", "username", "owner"),
    "model": ("llm", "model_name", "provider"),
    "instructions": ("system", "system_prompt", "prompt", "persona"),
    "session": ("thread", "thread_id", "session_id", "conversation", "conversation_id", "run_id"),
    "limit": COUNTS,
    "k": COUNTS,
    "floor": ("threshold", "min_score", "min_certainty", "score_threshold"),
    "where": ("filter", "filters", "metadata_filter"),
    "asked_in": ("query_record_id",),
    "episode": ("session", "session_id", "thread", "conversation"),
    "by": ("role", "author", "speaker"),
    "embed": ("embedder", "embedding", "embeddings", "embedding_model"),
    "approve": ("approver", "permission", "allow"),
    "how": ("strategy", "method"),
    "until": ("hours", "steps", "days", "to"),
    "seconds": ("timeout", "timeout_s"),
    "tools": ("functions", "tool"),
    "tool_calls": ("max_tool_calls", "max_steps", "max_iterations"),
    "residents": ("people", "agents", "characters"),
    "places": ("locations", "rooms"),
}
"""For each argument, the names that other libraries use for the same thing."""
METHODS = {
    "retain": ("add", "save", "store", "write", "insert", "remember", "put"),
    "retain_messages": ("add_messages", "add_memory", "save_context"),
    "recall": ("search", "query", "retrieve", "find_similar", "ask"),
    "correct": ("update", "edit", "modify"),
    "forget": ("delete", "erase", "drop", "delete_all", "clear"),
    "list": ("get_all", "all", "items"),
    "send": ("chat", "say", "ask", "run", "invoke", "complete"),
    "stream": ("stream_chat", "astream"),
    "interview": ("ask", "question"),
    "timeline": ("history", "log", "events"),
    "run": ("step", "steps", "simulate", "live", "advance"),
    "solve": ("run_task", "execute", "invoke", "do", "ask", "ainvoke", "kickoff"),
    "knowers": ("who_knows", "spread", "diffusion"),
    "text": ("content", "memory", "page_content", "value", "message"),
    "answer": ("result", "output_text", "final", "final_output", "content", "text"),
    "confidence": ("similarity", "relevance", "probability"),
}
"""For each method or attribute, the names that other libraries use for the same thing."""
CALLED = {"": "memory", "Stream": "memory", "ChatBot": "bot"}
"""By class name: the variable name that messages use for an object of the class, as in `memory.recall(…)`. For other
classes, messages use the class name in lower case."""


def meant_by(given: str, known: Collection[str]) -> str:
    """Return the known argument that the caller probably meant by an unknown one; "" if there is none."""
    meant = [name for name, others in COMMON.items() if name in known and given in others]
    return meant[0] if meant else nearest(given, known)


def explain_arguments(
    called: str, function: Callable[..., Any], given: dict[str, Any], error: TypeError, placed: Sequence[object] = ()
) -> NoReturn:
    """Raise a TypeError that names the arguments of a function, and the arguments that the caller probably meant.

    Args:
        called: the function's name in the message.
        given: the keyword arguments of the call that failed.
        error: the error of the call. It is raised unchanged, unless an argument is unknown or must be passed by
            keyword.
        placed: the positional arguments of the call, including `self`.
    """
    known = {name: each for name, each in inspect.signature(function).parameters.items() if name not in ("self", "cls")}
    unknown = [each for each in given if each not in known]
    if any(each.kind in (each.VAR_KEYWORD, each.VAR_POSITIONAL) for each in known.values()):
        raise error
    told = []
    for each in unknown:
        meant = meant_by(each, known)
        told.append(f"{each!r}{f' (did you mean {meant!r}?)' if meant else ''}")
    if told:
        raise TypeError(f"{called}() has no argument {', '.join(told)}; its arguments are {', '.join(known)}") from None
    named = [name for name, each in known.items() if each.kind is each.KEYWORD_ONLY]
    first = [name for name in known if name not in named]
    count = len(placed) - (len(inspect.signature(function).parameters) - len(known))
    if count > len(first) and named:
        raise TypeError(
            f"{called}() takes {' and '.join(first) or 'no argument'} by position; pass the other arguments by name,"
            f" such as {named[0]}=…; their names are {', '.join(named)}"
        ) from None
    raise error


def explain_attribute(thing: object, name: str) -> NoReturn:
    """Raise an AttributeError. If a public method or field was probably meant, the message names it."""
    kind = type(thing)
    if name.startswith("__"):
        raise AttributeError(f"{kind.__name__!r} object has no attribute {name!r}")
    has = [each for each in {*dir(kind), *getattr(kind, "__dataclass_fields__", ())} if each[0] != "_"]
    meant = [known for known, others in METHODS.items() if name in others and known in has]
    meant = meant or difflib.get_close_matches(name, sorted(has), 1)
    text = (
        f"{type(thing).__name__!r} object has no attribute {name!r}{f'; did you mean {meant[0]!r}?' if meant else ''}"
    )
    raise AttributeError(text)  # without name= and obj=: with these, Python would add its own guess


class Explained:
    """A base class whose objects explain an unknown attribute."""

    __slots__ = ()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            explain_attribute(self, name)


def checked_id(value: object) -> str:
    """Return the id of a record.

    Raises:
        InputError: the value is not an id, but for example the record itself.
    """
    if isinstance(value, str):
        return value
    raise InputError(f"expected the id of a record, such as note.id or hit.id, found {type(value).__name__}")


def explained(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function so that a call with an unknown argument raises an error that explains it."""

    @wraps(function)
    def calling(*args: P.args, **given: P.kwargs) -> R:
        try:
            return function(*args, **given)
        except TypeError as error:
            explain_arguments(function.__qualname__.removesuffix(".__init__"), function, dict(given), error, args)

    return calling


class Opening(AbstractAsyncContextManager[T]):
    """The result of `open`: an object that exists inside an `async with` block. Any other use is explained.

    After its end, the block can be entered again, with the same arguments.
    """

    def __init__(self, called: str, make: Callable[[], AbstractAsyncContextManager[T]]) -> None:
        self._called, self._make = called, make
        # called now, so that wrong arguments raise an error here
        self._next: AbstractAsyncContextManager[T] | None = make()
        self._open: AbstractAsyncContextManager[T] | None = None

    async def __aenter__(self) -> T:
        if self._open is not None:
            raise InputError(
                f"this {self._called}(…) is open already: use the object that it returned, or call {self._called} again"
            )
        self._open, self._next = self._next or self._make(), None
        try:
            return await self._open.__aenter__()
        except BaseException:
            self._open = None
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        context, self._open = self._open, None
        return None if context is None else await context.__aexit__(kind, error, trace)

    def _explain(self, *_: object) -> NoReturn:
        name = self._called.split(".")[0]
        raise InputError(f"open it with `async with {self._called}(…) as {name.lower()}:`; {SYNC}")

    __enter__ = __await__ = __iter__ = _explain

    def __exit__(self, *_: object) -> None:
        """Do nothing. Without this method, `with` would fail before it calls `__enter__`; the error of `__enter__`
        explains the mistake."""

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        self._explain()


def opens(function: Callable[P, AsyncIterator[T]]) -> Callable[P, AbstractAsyncContextManager[T]]:
    """Turn an asynchronous generator that yields once into an asynchronous context manager that explains wrong use."""
    made = asynccontextmanager(function)
    called = function.__qualname__

    @wraps(function)
    def opening(*args: P.args, **given: P.kwargs) -> AbstractAsyncContextManager[T]:
        try:
            return Opening(called, partial(made, *args, **given))
        except TypeError as error:
            explain_arguments(called, function, dict(given), error, args)

    return opening


class Unawaited(Coroutine[Any, Any, R]):
    """A coroutine with a helpful error for callers that forget `await`.

    If a caller uses the coroutine as if it were the result, the error says that the result must be awaited.
    """

    __slots__ = ("_called", "_inner")

    def __init__(self, called: str, inner: Coroutine[Any, Any, R]) -> None:
        self._called, self._inner = called, inner
        inner.__qualname__ = called  # type: ignore[attr-defined]  # Python's warning "… was never awaited" shows it

    def __await__(self) -> Generator[Any, Any, R]:
        return self._inner.__await__()

    def send(self, value: Any) -> Any:
        """Continue the coroutine."""
        return self._inner.send(value)

    def throw(self, *error: Any) -> Any:
        """Raise an error in the coroutine."""
        return self._inner.throw(*error)

    def close(self) -> None:
        """Close the coroutine."""
        self._inner.close()

    def _explain(self, *_: object) -> NoReturn:
        self.close()
        raise TypeError(f"the result of {self._called}(…) must be awaited: `await {self._called}(…)`; {SYNC}")

    __getitem__ = __iter__ = __len__ = __contains__ = _explain

    def __repr__(self) -> str:
        return f"<{self._called}(…) was not awaited: write `await {self._called}(…)`>"

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("_", "cr_", "gi_", "ag_")):
            return getattr(self._inner, name)
        return self._explain()


class Streamed(AsyncGenerator[T, None]):
    """An asynchronous generator; using it in another way than by `async for` raises an error that says so."""

    def __init__(self, called: str, inner: AsyncGenerator[T, None]) -> None:
        self._called, self._inner = called, inner

    async def asend(self, value: None) -> T:
        """Return the next item."""
        return await self._inner.asend(value)

    async def athrow(self, *error: Any) -> T:
        """Raise an error in the generator."""
        return await self._inner.athrow(*error)

    async def aclose(self) -> None:
        """Close the generator."""
        await self._inner.aclose()

    def _explain(self) -> NoReturn:
        raise TypeError(f"{self._called}(…) yields pieces: `async for piece in {self._called}(…):`; {SYNC}")

    __iter__ = __await__ = _explain


def _name_of(function: Callable[..., object]) -> str:
    """Return a method's name as callers write it, with the usual name of the object: `memory.recall`."""
    owner, _, name = function.__qualname__.rpartition(".")
    return f"{CALLED.get(owner, owner.lower())}.{name}"


def streamed(function: Callable[P, AsyncGenerator[T, None]]) -> Callable[P, AsyncGenerator[T, None]]:
    """Decorate an asynchronous generator function so that a wrong use of its generator raises an error that explains
    it."""
    called = _name_of(function)

    @wraps(function)
    def calling(*args: P.args, **given: P.kwargs) -> AsyncGenerator[T, None]:
        return Streamed(called, function(*args, **given))

    return calling


def awaited(function: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, Coroutine[Any, Any, R]]:
    """Decorate an asynchronous function: an unknown argument or a forgotten `await` raises an error that explains
    it."""
    called = _name_of(function)

    @wraps(function)
    def calling(*args: P.args, **given: P.kwargs) -> Coroutine[Any, Any, R]:
        try:
            return Unawaited(called, function(*args, **given))
        except TypeError as error:
            explain_arguments(called, function, dict(given), error, args)

    return calling
