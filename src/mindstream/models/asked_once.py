"""Ask many things of models, each once: what was answered is kept, and the same work goes on from there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from mindstream.errors import ReplyInvalid
from mindstream.evaluation_cache import EvaluationCache
from mindstream.models.ask import ask
from mindstream.models.model import Model, Request
from mindstream.models.prompt import Prompt
from mindstream.models.recording import fingerprint
from mindstream.models.roles import Models

AT_ONCE = 8
T = TypeVar("T")
R = TypeVar("R")
Told = Callable[[int, int, str], None]
"""Takes how many are done, of how many, and what is done now."""


class AskedOnce:
    """Prompts by the models of their roles, and a ledger of what came.

    Attributes:
        unreadable: how many replies could not be read, even when they were asked for again.
    """

    def __init__(
        self, models: Models, ledger: EvaluationCache, told: Told = lambda *_: None, at_once: int = AT_ONCE
    ) -> None:
        self.models, self.ledger, self.unreadable = models, ledger, 0
        self._told, self._at_once = told, at_once
        self._asked: dict[str, asyncio.Lock] = {}

    def key(self, prompt: Prompt[Any]) -> str:
        """Return what stands for a prompt, its words and who is asked."""
        return fingerprint(Request(prompt, prompt.role), self._model(prompt).name)

    async def kept(self, prompt: Prompt[R], row: dict[str, Any], dump: Callable[[R], Any]) -> tuple[str, Any] | None:
        """Return the key and the reply, kept or asked now; None where it cannot be read."""
        key = self.key(prompt)
        async with self._asked.setdefault(key, asyncio.Lock()):  # two may ask the very same
            found = self.ledger.find(key)
            if found is None:
                try:
                    reply = dump(await ask(self._model(prompt), prompt))
                except ReplyInvalid:
                    self.unreadable += 1
                    return None
                found = row | {"reply": reply, "model": self._model(prompt).name}
                self.ledger.keep(key, found)
        return key, found["reply"]

    async def each(self, doing: str, todo: Sequence[T], do: Callable[[T], Awaitable[R]]) -> list[R]:
        """Do it for each, some at once; the first error ends it."""
        turn, done = asyncio.Semaphore(self._at_once), 0

        async def one(each: T) -> R:
            nonlocal done
            async with turn:
                found = await do(each)
            done += 1
            self._told(done, len(todo), doing)
            return found

        self._told(0, len(todo), doing)
        tasks = [asyncio.ensure_future(one(each)) for each in todo]
        try:
            return list(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _model(self, prompt: Prompt[Any]) -> Model:
        return self.models.of(prompt.role)
