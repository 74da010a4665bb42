"""Ask many prompts, each once: replies are stored in a file (an `EvaluationCache`), so that interrupted work
resumes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from pydantic import TypeAdapter

from mindstream.clock import SystemClock
from mindstream.errors import ReplyInvalid
from mindstream.evaluation_cache import EvaluationCache
from mindstream.models.model import Request
from mindstream.models.prompt import Prompt, ask
from mindstream.models.recording import fingerprint
from mindstream.models.roles import Models
from mindstream.together import together

CLOCK = SystemClock()
MAX_PARALLEL = 8
T = TypeVar("T")
R = TypeVar("R")
Progress = Callable[[int, int, str], None]
"""Called with the number of finished items, the number of all items, and the name of the current step."""


class KeptReply(NamedTuple, Generic[R]):
    """A stored reply, its key in the evaluation cache, and the seconds that the model took."""

    key: str
    reply: R
    seconds: float


class CachedPrompts:
    """Asks the model of each prompt's role, and stores the reply in an evaluation cache (`ledger`).

    Attributes:
        unreadable: number of replies that could not be read, even after repairs.
    """

    def __init__(
        self, models: Models, ledger: EvaluationCache, told: Progress = lambda *_: None, at_once: int = MAX_PARALLEL
    ) -> None:
        self.models, self.ledger, self.unreadable = models, ledger, 0
        self._report, self._at_once = told, at_once
        self._locks: dict[str, asyncio.Lock] = {}

    def key(self, prompt: Prompt[Any]) -> str:
        """Return the key of a prompt: a hash of its text and the model's name."""
        return fingerprint(Request(prompt, prompt.role), self.models.of(prompt.role).name)

    async def kept(self, prompt: Prompt[R], row: dict[str, Any]) -> KeptReply[R] | None:
        """Return the stored reply. If none is stored, ask the model and store its reply.

        Return None if the model's reply is invalid; `unreadable` counts such replies.

        Args:
            row: further fields that are stored with a new reply.
        """
        key, model = self.key(prompt), self.models.of(prompt.role)
        replies: TypeAdapter[R] = TypeAdapter(prompt.reply_type())
        async with self._locks.setdefault(key, asyncio.Lock()):  # two tasks may ask the same prompt
            found = self.ledger.find(key)
            if found is None:
                began = CLOCK.elapsed()
                try:
                    reply = replies.dump_python(await ask(model, prompt), mode="json")
                except ReplyInvalid:
                    self.unreadable += 1
                    return None
                found = row | {"reply": reply, "seconds": round(CLOCK.elapsed() - began, 3), "model": model.name}
                self.ledger.keep(key, found)
        return KeptReply(key, replies.validate_python(found["reply"]), found.get("seconds", 0.0))

    async def each(self, doing: str, todo: Sequence[T], do: Callable[[T], Awaitable[R | None]]) -> list[R]:
        """Apply a function to the items, several at a time, with a progress report; return the results other than
        None."""
        return await do_each(doing, todo, do, self._report, self._at_once)


async def do_each(
    doing: str, todo: Sequence[T], do: Callable[[T], Awaitable[R | None]], report: Progress, at_once: int
) -> list[R]:
    """Apply a function to the items, several at a time, and return the results other than None; the first error stops
    the rest."""
    turn, done = asyncio.Semaphore(at_once), 0

    async def one(item: T) -> R | None:
        nonlocal done
        async with turn:
            found = await do(item)
        done += 1
        report(done, len(todo), doing)
        return found

    report(0, len(todo), doing)
    return [each for each in await together(*map(one, todo)) if each is not None]
