"""What a provider and an endpoint exchange: the protocol `Adapter`, the data that an endpoint sends, the limits of one
reply (tokens, bytes, calls, time), and the prices of tokens, by genai-prices."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, Protocol, TypeAlias

from mindstream.errors import SettingsError
from mindstream.models.model import (
    THOUGHT_TOKENS,
    Call,
    Distribution,
    Logprobs,
    Request,
    TextLogprobs,
    Usage,
    reply_tokens,
)
from mindstream.models.providers.address import Address, address

MAX_GATHERED = 256
"""Maximum number of arrivals that are buffered; at this number, reading from the endpoint pauses."""


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of text: of the reply, of the model's thoughts before it, or of a call's arguments."""

    of: Literal["reply", "thought", "arguments"]
    text: str


@dataclass(frozen=True, slots=True)
class Withheld:
    """The endpoint refuses to answer, with its reason; `filtered`: a content filter refused, not the model itself."""

    why: str
    filtered: bool = False


@dataclass(frozen=True, slots=True)
class Truncated:
    """The reply was cut off at the endpoint's token limit."""


Arrival: TypeAlias = Delta | Call | Logprobs | TextLogprobs | Distribution | Usage | Withheld | Truncated
"""One piece of data from an endpoint. A `Call` is complete; before it, its arguments arrive as `Delta` for counting."""


class Arrivals(Protocol):
    """The reply of an endpoint to one request."""

    async def next(self, gap_s: float = 0.0) -> Sequence[Arrival]:
        """Wait for arrivals and return all of them in order. An empty sequence means that the reply is complete.

        A caller may cancel this method and call it again; no arrival is lost.

        Args:
            gap_s: seconds for which further arrivals are gathered, unless the reply ends. This saves CPU time, because
                waking the tasks between endpoint and reader costs far more than handling the text.

        Raises:
            ModelError: the endpoint failed or refused the request (`failures`). Everything that arrived earlier is
                returned first.
        """


class Adapter(Protocol):
    """A client of one endpoint. Connections belong to one event loop, and so does an adapter."""

    def stream(self, request: Request) -> AbstractAsyncContextManager[Arrivals]:
        """Send a request, whose reply can be read inside the block.

        A failed request is repeated only in two cases:
        - The endpoint has refused a field; the request is repeated without the field.
        - A model in this process wrote nothing or unfinished JSON.
        """

    async def aclose(self) -> None:
        """Close idle connections."""


class Gathered:
    """Buffers the arrivals of a generator, which a separate task reads (see `gathered`)."""

    def __init__(self) -> None:
        self._came: list[Arrival] = []
        self._something, self._room, self._ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._error: BaseException | None = None

    async def next(self, gap_s: float = 0.0) -> list[Arrival]:
        """Wait for arrivals and return all of them; [] at the end (see `Arrivals.next`).

        An error of the generator is raised only after everything that arrived earlier was returned.
        """
        if gap_s and not self._ended.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(gap_s):
                    await self._ended.wait()
        await self._something.wait()
        got, self._came = joined(self._came), []
        self._room.set()
        if not self._ended.is_set():
            self._something.clear()
        if not got and self._error is not None:
            raise self._error
        return got

    async def take(self, stream: AsyncGenerator[Arrival]) -> None:
        """Read a generator until it ends, and close it; pause while MAX_GATHERED parts wait for the reader. The reader
        of the parts gets the generator's error after the parts before it."""
        try:
            async with aclosing(stream):
                async for arrival in stream:
                    self._came.append(arrival)
                    self._something.set()
                    if len(self._came) >= MAX_GATHERED:
                        self._room.clear()
                        await self._room.wait()
        except BaseException as error:
            self._error = error
            if not isinstance(error, Exception):
                raise
        finally:
            self._ended.set()
            self._something.set()


@contextlib.asynccontextmanager
async def gathered(stream: AsyncGenerator[Arrival]) -> AsyncIterator[Gathered]:
    """Gather a generator's arrivals while the block runs; then close it."""
    arrivals = Gathered()
    task = asyncio.create_task(arrivals.take(stream))
    try:
        yield arrivals
    finally:
        task.cancel()
        await asyncio.wait({task})


async def one_by_one(coming: AbstractAsyncContextManager[Arrivals]) -> AsyncGenerator[Arrival]:
    """Yield arrivals one at a time."""
    async with coming as arrivals:
        while came := await arrivals.next():
            for each in came:
                yield each


def joined(arrivals: Iterable[Arrival]) -> list[Arrival]:
    """Return arrivals with adjacent deltas of one kind joined."""
    found, texts, of = list[Arrival](), list[str](), None
    for each in (*arrivals, None):
        if isinstance(each, Delta) and each.of == of:
            texts.append(each.text)
            continue
        if of is not None:
            found.append(Delta(of, "".join(texts)))
        if isinstance(each, Delta):
            of, texts = each.of, [each.text]
        else:
            of = None
            found += [each] if each is not None else ()
    return found


BYTES_PER_TOKEN = 6
"""Bytes allowed per token: more than most tokens have, so that only a reply beyond its token limit is cut off."""
MAX_CALLS = 16
"""Maximum number of tool calls in one reply; further ones are dropped."""
MAX_CALL_BYTES = 64_000
"""Maximum length of the arguments of all calls of one reply, in characters."""


@dataclass(frozen=True, slots=True)
class Waits:
    """Timeouts of one reply, in seconds: for its first part, between two parts, and for the whole reply."""

    first_s: float = 60.0
    between_s: float = 30.0
    whole_s: float = 180.0


LOCAL = Waits(300.0, 120.0, 1_200.0)
"""Timeouts of a model on this machine or network, which may process its queue of prompts for minutes before a reply."""


def waits(patience_s: float | None = None, *, local: bool = False) -> Waits:
    """Return the timeouts of a model.

    Args:
        patience_s: the user's own limit, in seconds, for the time before the first part and between two parts. A whole
            reply may take at least three times as long. None: the usual timeouts.
        local: whether the model runs on this machine or network, so that the usual timeouts are longer.
    """
    usual = LOCAL if local else Waits()
    return usual if patience_s is None else Waits(patience_s, patience_s, max(usual.whole_s, 3 * patience_s))


COMPLAINTS = {
    "reply": "exceeded the maximum length of a reply",
    "thought": "exceeded the maximum length of its thoughts",
    "arguments": "exceeded the maximum length of tool arguments",
    "calls": f"called more than {MAX_CALLS} tools at once",
}
"""Descriptions of the limits that a reply can exceed, for `Tally.full`."""


class Tally:
    """Counts the content of one reply, and compares it with the limits.

    Attributes:
        full: a description of the limit that was reached; "": no limit was reached.
        late: whether the limit that was reached is the timeout of the whole reply.
        said: whether the reply has text.
        called: whether the reply has a call.
    """

    def __init__(self, request: Request) -> None:
        reply, thought = reply_tokens(request), THOUGHT_TOKENS[request.schema is None]
        self._left = {"reply": reply * BYTES_PER_TOKEN, "thought": thought * BYTES_PER_TOKEN}
        self._left |= {"arguments": MAX_CALL_BYTES, "calls": MAX_CALLS - 1}
        self.full, self.said, self.called, self.late = "", False, False, False

    def count(self, of: str, amount: int) -> None:
        """Count an amount. `of` names its kind: bytes of the "reply", characters of a "thought" or of
        "arguments", or a number of "calls"."""
        self._left[of] -= amount
        self.called = self.called or of == "calls"
        if self._left[of] < 0:
            self.full = COMPLAINTS[of]

    def clip(self, text: str) -> str:
        """Count a piece of the reply's text; return the part of it that the limit allows."""
        self.said = self.said or not text.isspace()
        data = text.encode("utf-8", "replace")  # half of a surrogate pair cannot be encoded
        left = max(0, self._left["reply"])
        self.count("reply", len(data))
        return data[:left].decode("utf-8", "ignore")


def price(model: str, at: Address, asked: int, answered: int, cached: int = 0) -> float | None:
    """Return the price of tokens in US dollars by genai-prices.

    Return None if the price is not known, and 0 for GGUF files and models of Ollama.

    Args:
        model: the model's name in the endpoint's reply. If this name has no price, the name in the address is used.
        asked, answered: numbers of input and output tokens.
        cached: number of input tokens that were read from the endpoint's cache, usually at a lower price.
    """
    if at.vendor in ("gguf", "ollama"):
        return 0.0
    model = next((name for name in (model, at.model) if _is_priced(name, at.vendor, at.url)), "")
    if not model:
        return None
    from genai_prices import Usage, calc_price

    used = Usage(input_tokens=asked, output_tokens=answered, cache_read_tokens=min(cached, asked))
    place: Any = {"provider_api_url": at.url} if at.url else {"provider_id": at.vendor}
    try:
        return float(calc_price(used, model, **place).total_price)
    except (LookupError, ValueError):
        return None


def has_price(name: str) -> bool:
    """Return whether the calls of the model with this name are free or have a known price in US dollars."""
    try:
        at = address(name)
    except SettingsError:
        return True  # rules, a recording, or a model object of the calling program
    return price(at.model, at, 1, 1) is not None


@lru_cache(maxsize=256)  # bounded, because endpoints can report any model name
def _is_priced(model: str, vendor: str, url: str | None) -> bool:
    """Return whether a model has a price; cached, since a failed look-up takes genai-prices 2 ms."""
    from genai_prices.data_snapshot import get_snapshot

    try:
        get_snapshot().find_provider_model(model, None, None if url else vendor, url)
    except (LookupError, ValueError):
        return False
    return True
