"""`Memory` and `ChatBot` for programs without asyncio.

    from mindstream.sync import ChatBot, Memory

    with Memory("data", "ann") as memory:
        memory.retain("Anna is allergic to peanuts.")
        print(memory.recall("what must Anna not eat?")[0].text)

    with ChatBot("data", user="ann", model="openai:gpt-5-mini") as bot:
        for piece in bot.stream("What could I cook tonight?"):
            print(piece, end="", flush=True)

    solution = wait(Planner(model="openai:gpt-5-mini", tools=[…]).solve("…"))  # any other coroutine

Each method has the same arguments and the same result as the asynchronous method. All work runs on one event loop in a
background thread. Calls may come from any thread; a call blocks only its caller. These classes cannot be used in a
thread that runs an event loop (use the asynchronous classes there), nor in a tool or `approve=` function that the
background loop runs. Ctrl-C cancels the call. After a fork, the child process must open its memories again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager
from functools import wraps
from types import MappingProxyType, TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from mindstream.adapters import loop
from mindstream.clock import Clock
from mindstream.errors import InputError
from mindstream.guidance import Explained, explained
from mindstream.memory import memory as memories
from mindstream.memory.opening import AnyStore
from mindstream.memory.policy import AnyPolicy
from mindstream.minds import chat_bot
from mindstream.models.embedders.embedder import EmbedderChoice
from mindstream.models.roles import AnyModels
from mindstream.tools.call import Approve
from mindstream.tools.tool import AnyTools

__all__ = ["ChatBot", "Memory", "wait"]
P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
END = object()


def wait(work: Coroutine[Any, Any, R]) -> R:
    """Run a coroutine of mindstream on the background loop and return its result; the calling thread waits.

    Raises:
        InputError: the calling thread runs an event loop, which would be blocked.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return loop.wait(work)
    work.close()
    raise InputError(
        "mindstream.sync cannot be called in a thread that runs an event loop: await the asynchronous method there"
    )


def waits(method: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]) -> Callable[Concatenate[Any, P], R]:
    """Turn an asynchronous method into one that blocks until it has its result."""

    @wraps(method)
    def waiting(self: Blocking[Any], /, *args: P.args, **more: P.kwargs) -> R:
        return wait(method(self.inner, *args, **more))

    return waiting


def iterates(method: Callable[Concatenate[Any, P], AsyncIterator[R]]) -> Callable[Concatenate[Any, P], Iterator[R]]:
    """Turn a method that returns an asynchronous iterator into one that returns an iterator. If the caller ends the
    iteration early, the asynchronous iteration ends, too."""

    @wraps(method)
    def iterating(self: Blocking[Any], /, *args: P.args, **more: P.kwargs) -> Iterator[R]:
        items: Any = method(self.inner, *args, **more)

        async def following() -> Any:
            return await anext(items, END)

        try:
            while (item := wait(following())) is not END:
                yield item
        finally:
            wait(items.aclose())

    return iterating


class Blocking(Explained, Generic[T]):
    """An asynchronous object of mindstream, opened and used from threads without an event loop."""

    def __init__(self, opening: AbstractAsyncContextManager[T]) -> None:
        self._opening, self._inner = opening, None  # type: tuple[AbstractAsyncContextManager[T], T | None]

    @classmethod
    def open(cls, *args: Any, **more: Any) -> Self:
        """Construct the object, to be opened by `with`; the same as calling the class."""
        return cls(*args, **more)

    @property
    def inner(self) -> T:
        """The asynchronous object that does the work.

        Raises:
            InputError: it is not open.
        """
        if self._inner is None:
            raise InputError(f"open it first: `with {type(self).__name__}(…) as {type(self).__name__.lower()}:`")
        return self._inner

    def __enter__(self) -> Self:
        self._inner = wait(_entered(self._opening))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._inner = None
        wait(_left(self._opening, kind, error, trace))


async def _entered(opening: AbstractAsyncContextManager[T]) -> T:
    return await opening.__aenter__()


async def _left(opening: AbstractAsyncContextManager[Any], *error: Any) -> None:
    await opening.__aexit__(*error)


M = memories.Memory


class Memory(Blocking[memories.Memory]):
    """The memory of one user, for programs without asyncio. It needs neither a language model nor a service.

        with Memory("data", "ann") as memory:  # the data folder, and the user's name
            note = memory.retain("Anna is allergic to peanuts.")
            for hit in memory.recall("what must Anna not eat?", limit=3):
                print(hit.text, hit.created, hit.confidence)
            memory.correct(note.id, "Anna is allergic to peanuts and cashews.")
            memory.forget(about="cashews")

    Args:
        data: the data folder (created if missing), the URL of a PostgreSQL database, or a store.
        name: the user whose memory it is.
        embed, clock, seed, policy, model: as in `mindstream.Memory.open`.

    `Memory.open(…)` takes the same arguments.
    """

    @explained
    def __init__(
        self,
        data: AnyStore,
        name: str,
        *,
        embed: EmbedderChoice = None,
        clock: Clock | None = None,
        seed: int | str | None = None,
        policy: AnyPolicy = MappingProxyType({}),
        model: AnyModels | None = None,
    ) -> None:
        super().__init__(M.open(data, name, embed=embed, clock=clock, seed=seed, policy=policy, model=model))

    retain, retain_all, retain_messages = waits(M.retain), waits(M.retain_all), waits(M.retain_messages)
    recall, find, latest, get = waits(M.recall), waits(M.find), waits(M.latest), waits(M.get)
    messages, records = waits(M.messages), waits(M.records)
    list, history, sessions, evidence_of = waits(M.list), waits(M.history), waits(M.sessions), waits(M.evidence_of)
    correct, supersede, replace = waits(M.correct), waits(M.supersede), waits(M.replace)
    forget, find_removal, remove = waits(M.forget), waits(M.find_removal), waits(M.remove)
    archive, purge, reembed, audit = waits(M.archive), waits(M.purge), waits(M.reembed), waits(M.audit)
    sleep, propose_sleep, accept, undo_sleep = waits(M.sleep), waits(M.propose_sleep), waits(M.accept), waits(M.undo_sleep)  # fmt: skip # noqa: E501
    log = iterates(M.log)


B = chat_bot.ChatBot


class ChatBot(Blocking[chat_bot.ChatBot]):
    """A chat bot that remembers its user, for programs without asyncio.

        with ChatBot("data", user="ann", model="openai:gpt-5-mini", instructions="You are a cook.") as bot:
            print(bot.send("I am allergic to peanuts."))
            for piece in bot.stream("What could I cook tonight?"):
                print(piece, end="", flush=True)

    `help(mindstream.ChatBot)` describes its memory, tools and approval.

    Args:
        data: the data folder (created if missing), the URL of a PostgreSQL database, or a store.
        user, model, instructions, tools, approve, session, embed, clock, policy, settle_s: as in
            `mindstream.ChatBot.open`.

    `ChatBot.open(…)` takes the same arguments.
    """

    @explained
    def __init__(
        self,
        data: AnyStore = "data",
        *,
        user: str = "you",
        model: AnyModels | None = None,
        instructions: str = "",
        tools: AnyTools = (),
        approve: Approve = (),
        session: str | None = None,
        embed: EmbedderChoice = None,
        clock: Clock | None = None,
        policy: AnyPolicy = MappingProxyType({}),
        settle_s: float = chat_bot.SETTLE_S,
    ) -> None:
        opening = B.open(
            data,
            user=user,
            model=model,
            instructions=instructions,
            tools=tools,
            approve=approve,
            session=session,
            embed=embed,
            clock=clock,
            policy=policy,
            settle_s=settle_s,
        )
        super().__init__(opening)

    send, stream = waits(B.send), iterates(B.stream)
    settled, cancel = waits(B.settled), waits(B.cancel)

    @property
    def memory(self) -> Memory:
        """The memory of the bot's user."""
        found = Memory.__new__(Memory)
        found._inner = self.inner.memory
        return found

    @property
    def session(self) -> str:
        """The name of this conversation; pass it as `session=` to continue the conversation."""
        return self.inner.session
