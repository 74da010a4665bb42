"""Ask many prompts, each once: replies are stored in a ledger, so that interrupted work resumes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from mindstream.errors import ReplyInvalid
from mindstream.evaluation_cache import EvaluationCache
from mindstream.models.ask import ask
from mindstream.models.model import Request
from mindstream.models.prompt import Prompt
from mindstream.models.recording import fingerprint
from mindstream.models.roles import Models

MAX_PARALLEL = 8
T = TypeVar("T")
R = TypeVar("R")
Progress = Callable[[int, int, str], None]
"""Called with the number of finished items, the number of all items, and the name of the current step."""


class CachedPrompts:
    """Asks the models of the prompts' roles, and stores their replies in a ledger.

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

    async def kept(self, prompt: Prompt[R], row: dict[str, Any], dump: Callable[[R], Any]) -> tuple[str, Any] | None:
        """Return the key and the stored reply, asking the model if none is stored; None if the reply is invalid."""
        key, model = self.key(prompt), self.models.of(prompt.role)
        async with self._locks.setdefault(key, asyncio.Lock()):  # two tasks may ask the same prompt
            found = self.ledger.find(key)
            if found is None:
                try:
                    reply = dump(await ask(model, prompt))
                except ReplyInvalid:
                    self.unreadable += 1
                    return None
                found = row | {"reply": reply, "model": model.name}
                self.ledger.keep(key, found)
        return key, found["reply"]

    async def each(self, doing: str, todo: Sequence[T], do: Callable[[T], Awaitable[R]]) -> list[R]:
        """Apply a function to the items, several at a time, and return the results; the first error stops the rest."""
        turn, done = asyncio.Semaphore(self._at_once), 0

        async def one(item: T) -> R:
            nonlocal done
            async with turn:
                found = await do(item)
            done += 1
            self._report(done, len(todo), doing)
            return found

        self._report(0, len(todo), doing)
        tasks = [asyncio.ensure_future(one(item)) for item in todo]
        try:
            return list(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
