"""Write every model call of a mind to its log, in the background."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, TypeVar

from pydantic import BaseModel

from mindstream.clock import Clock, Moment
from mindstream.errors import PromptBlocked
from mindstream.log.events import MessageRefused, ModelCalled
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import Record
from mindstream.memory.store.store import Entry
from mindstream.models.model import Layer, Layered, Message, Model, Request
from mindstream.models.roles import Models
from mindstream.models.untrusted import escaped
from mindstream.models.wrappers.meter import Metered

LATER_S = 0.3
"""Maximum delay in seconds until the log row of a call is written. Because of the delay, most calls are written in the
commit of the answer or thought for which they were made."""


class CallLog:
    """Collect the model calls of a mind, with their usage, and write them to its log.

    Args:
        clock: gives the time when each call ended; None: the time of the log row is used.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock
        self._calls: list[Entry] = []
        self._more = asyncio.Event()
        self._under_way: asyncio.Future[None] | None = None

    def take(self, call: Metered) -> None:
        """Queue a call for the log, without waiting."""
        event = build_event(call, self._clock.now() if self._clock else None)
        self._calls.append(Entry(event, "mindstream", system=True))
        self._more.set()

    async def run(self, memory: Memory) -> None:
        """Write queued calls with the memory's next commit, or at most LATER_S later, until cancelled. If a queued call
        contains a prompt, write at once."""
        memory.beside += self._calls
        self._calls = memory.beside
        while True:
            await self._more.wait()
            self._more.clear()
            has_words = any(isinstance(each.event, ModelCalled) and each.event.asked for each in self._calls)
            await asyncio.sleep(0 if has_words else LATER_S)  # an erasure does not find texts that are only queued
            await self._write(memory)

    @contextlib.asynccontextmanager
    async def writing(self, memory: Memory) -> AsyncIterator[None]:
        """Write calls in the background while the block runs, and the remaining ones at its end."""
        running = asyncio.ensure_future(self.run(memory))
        try:
            yield
        finally:
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running
            await self.flush(memory)

    async def flush(self, memory: Memory) -> None:
        """Write the queued calls. First wait for the commit that was in progress when `run` was cancelled."""
        if self._under_way is not None:
            await asyncio.wait([self._under_way])
        await self._write(memory)

    async def _write(self, memory: Memory) -> None:
        entries = self._calls[:]
        self._calls.clear()

        async def commit() -> None:
            with contextlib.suppress(Exception):  # a failing store must not end the conversation
                await memory.commit(*entries)

        if entries:
            self._under_way = asyncio.ensure_future(commit())
            await asyncio.shield(self._under_way)


def build_event(call: Metered, called_at: Moment | None = None) -> ModelCalled:
    """Return the log event of a call. `called_at`: the time when the call ended; None: the time of the log row."""
    usage, words = call.usage, call.words
    asked = [[each.role, each.text] for each in words.asked] if words else None
    return ModelCalled(
        role=call.role,
        prompt=call.prompt,
        model=call.model,
        seconds=call.seconds,
        first_part_s=call.first_s,
        input_tokens=usage.input_tokens if usage else 0,
        output_tokens=usage.output_tokens if usage else 0,
        cached_tokens=usage.cached_tokens if usage else 0,
        cost_usd=usage.cost_usd if usage else None,
        cut=", ".join(map(str, call.cut)),
        error=call.error or ("broken off" if call.broken_off else ""),
        mended=call.mended,
        about=call.cause.rows,
        resident=call.cause.resident,
        step=call.cause.step,
        called_at=called_at,
        asked=json.dumps(asked, ensure_ascii=False) if asked is not None else "",
        answered=words.answered if words else "",
    )


T = TypeVar("T")
MARKER = "(A message was left out here: the content filter of the language model's provider refused it.)"
"""Replaces a refused message in prompts."""
CANDIDATES = 4
"""Maximum number of the user's messages that are tried, newest first, to find the message that a provider refuses.

A message is tried by sending the refused prompt again without it.
"""
LOOKED_AT = 60
"""Maximum number of chat records, the newest ones, among which the messages of a prompt are searched."""
SHORTEST_WITHIN = 8
"""Minimum length, in characters, of a refused message that is replaced even within a longer text of the prompt. A
shorter message is replaced only where it is the whole text."""


class RefusedMessages:
    """The messages of one mind or life that a provider refuses to read."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._records: set[str] | None = None
        """Ids of the refused messages' records; None: the log was not read yet."""

    def around(self, models: Models) -> Models:
        """Wrap models so that refused messages are left out of prompts, and newly refused ones are found and logged."""
        return models.each(lambda model: _WithoutRefused(model, self))

    async def texts(self) -> list[str]:
        """Return the texts of the refused messages; erased messages have none."""
        if self._records is None:
            rows = await self._memory.store.events(self._memory.key, kinds=[MessageRefused.kind])
            found = {row.event.record for row in rows if isinstance(row.event, MessageRefused)}
            self._records = found | (self._records or set())
        if not self._records:
            return []
        return [record.text for record in await self._memory.records(sorted(self._records)) if record.text]

    async def candidates(self, request: Request) -> list[Record]:
        """Return the newest messages of the user in a refused request, newest first, at most CANDIDATES.

        One of these messages may be the reason for the refusal.
        """
        chat = await self._memory.latest("chat", LOOKED_AT)
        said = [record for record in reversed(chat) if record.data.get("by_user")]
        first = {record.text: record for record in reversed(said) if record.id not in (self._records or ())}
        there = [first[text] for text in dict.fromkeys(record.text for record in said) if text in first]
        return [record for record in there if _without(request, [record.text]) != request][:CANDIDATES]

    async def add(self, record: Record, model: str, error: PromptBlocked) -> None:
        """Log that a message is refused, unless that is logged already."""
        if self._records is not None and record.id in self._records:
            return
        self._records = {*(self._records or ()), record.id}
        event = MessageRefused(record=record.id, heard=record.seq, model=model, reason=str(error))
        await self._memory.commit(Entry(event, "mindstream", system=True))


class _WithoutRefused(Layered):
    """A model that is called without the refused messages.

    If a prompt is refused, find the refused message:
    1. Send the prompt again without the user's newest message, then with this message but without the next older one,
       and so on. If a prompt is accepted, the message that it lacks is the refused one.
    2. If all these prompts are refused, send the prompt without all these messages. If this prompt is refused, too, no
       message is recorded as refused.
    3. Otherwise send the prompt with each of the messages alone, to find the refused ones.

    In a prompt, MARKER replaces a refused message. A prompt that asks for the answer to a refused message fails,
    because a reply to MARKER would not be an answer.
    """

    def __init__(self, inner: Model, refused: RefusedMessages) -> None:
        super().__init__(inner)
        self._refused = refused

    def layer(self, request: Request) -> Layer:
        return _Attempts(self.inner, request, self._refused)


class _Attempts(Layer):
    """The attempts to find a request that the provider accepts.

    Attributes:
        asked: the request without the messages that are known to be refused.
        blocked: the first refusal; an empty error if the request was not refused.
        candidates: the messages of the request that may be the refused one; None: not searched yet.
        waiting: the candidates that no attempt has left out yet.
        left_out: the only message that the current attempt leaves out; None: the attempt leaves out none or several.
        is_last: whether no attempt follows the current one.
    """

    def __init__(self, inner: Model, request: Request, refused: RefusedMessages) -> None:
        super().__init__(inner, request)
        self._refused, self._utterance = refused, getattr(request.prompt, "utterance", "")
        self.asked, self.blocked = request, PromptBlocked("")
        self.candidates: list[Record] | None = None
        self.waiting: list[Record] = []
        self.left_out: Record | None = None
        self.is_last = False

    async def begin(self) -> None:
        texts = await self._refused.texts()
        if self._utterance and self._utterance in texts:
            raise PromptBlocked(f"{self.inner.name} has refused this message before, so the message is not sent again")
        self.asked = self.request = _without(self.request, texts)

    async def start(self) -> None:
        if self.left_out is not None:
            await self._refused.add(self.left_out, self.inner.name, self.blocked)
            if self.left_out.text == self._utterance:
                raise self.blocked

    async def again(self, failure: Exception | None) -> bool:
        if not isinstance(failure, PromptBlocked) or self.begun or self.is_last:
            return False
        if self.candidates is None:
            self.blocked, self.candidates = failure, await self._refused.candidates(self.asked)
            self.waiting = list(self.candidates)
        if self.waiting:
            self.left_out = self.waiting.pop(0)
            self.request = _without(self.asked, [self.left_out.text])
            return True
        self.left_out, self.is_last = None, True
        refused = await self._of_several(self.candidates) if len(self.candidates) > 1 else []
        for message in refused:
            await self._refused.add(message, self.inner.name, self.blocked)
        texts = [message.text for message in refused]
        if not texts or self._utterance in texts:
            raise self.blocked
        self.request = _without(self.asked, texts)
        return True

    async def _of_several(self, candidates: Sequence[Record]) -> list[Record]:
        """Return the refused messages: the candidates that are refused alone, or all candidates if none is. [] if the
        prompt is refused even without all candidates."""
        passes = _without(self.asked, [each.text for each in candidates])
        if not await self._takes(passes):
            return []
        alone = [each for each in candidates if not await self._takes(passes.then(Message("user", escaped(each.text))))]
        return alone or list(candidates)

    async def _takes(self, request: Request) -> bool:
        """Return whether the provider accepts a prompt; only the first part of the reply is awaited."""
        try:
            async with aclosing(self.inner.reply(request)) as parts:
                async for _ in parts:
                    return True
        except PromptBlocked:
            return False
        return True


def _without(request: Request, texts: Sequence[str]) -> Request:
    """Return a request with MARKER in place of these texts. It equals the given request if none of the texts occurs in
    it."""
    wanted = sorted({text.strip() for text in texts if text.strip()}, key=len, reverse=True)
    if not wanted:
        return request
    prompt = _replaced(request.prompt, wanted)
    turns = tuple(replace(turn, text=_replaced(turn.text, wanted)) for turn in request.turns)
    return replace(request, prompt=prompt, turns=turns)


def _replaced(value: T, wanted: Sequence[str]) -> T:
    """Return a value with MARKER in place of the texts in `wanted`, at any depth. A text shorter than
    SHORTEST_WITHIN characters is replaced only where it is a whole string."""
    new: Any = value
    if isinstance(value, str):
        for text in wanted:
            if value.strip() == text:
                new = MARKER
            elif len(text) >= SHORTEST_WITHIN:
                new = new.replace(text, MARKER)
    elif isinstance(value, BaseModel):
        fields = {name: getattr(value, name) for name in type(value).model_fields}
        changed = {name: each for name, old in fields.items() if (each := _replaced(old, wanted)) is not old}
        new = value.model_copy(update=changed) if changed else value
    elif isinstance(value, tuple | list):
        items = [_replaced(each, wanted) for each in value]
        if any(one is not other for one, other in zip(items, value, strict=True)):
            new = type(value)(items) if type(value) in (tuple, list) else value
    elif isinstance(value, dict):
        pairs = {key: _replaced(each, wanted) for key, each in value.items()}
        new = pairs if any(pairs[key] is not each for key, each in value.items()) else value
    return new  # type: ignore[no-any-return]
