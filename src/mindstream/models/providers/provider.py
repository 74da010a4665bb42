"""Models by name: `local`, `gguf:…`, `openai:…`, `anthropic:…`, `google:…`, `ollama:…`, any OpenAI-compatible URL.

An adapter is imported in a thread when the first request is made, because importing a client library takes a moment.
A request that failed is repeated by the wrapper `Retry`. An adapter repeats a request itself in two cases only:
- The endpoint refused a field or a role; the field or role is left out of the new request.
- A model in this process wrote nothing, or unfinished JSON.

The replies of an `EngineModel` are fetched by the workers of an engine (see `mindstream.engines`); counters, limits and
caches stay in this process.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import replace
from functools import cache
from typing import TypeVar
from weakref import WeakKeyDictionary

from mindstream.engines import Engine
from mindstream.errors import ModelError, ModelRefused, ModelSilent, PromptBlocked, ReplyInvalid
from mindstream.models.model import Call, Model, Part, Piece, Request, Usage, estimate_tokens
from mindstream.models.providers.adapter import Adapter, Delta, Tally, Truncated, Waits, Withheld, waits
from mindstream.models.providers.address import DECISIONS, Address, address
from mindstream.models.providers.failures import capabilities_of
from mindstream.models.reply import Thinking
from mindstream.models.rules import Rules
from mindstream.models.untrusted import HALF, legible, with_whole_characters

T = TypeVar("T")
HOLD_S = 0.25
"""Time in seconds for which the first text of a reply is held back, because it may be a thought. This applies to
endpoints that have not answered before."""
GAP_S = 0.08
"""Seconds for which the data that arrives is gathered before it is passed on. Twelve updates a second still look
smooth, and each costs about 0.5 ms of CPU on its way from the endpoint to a server's client."""
MAX_UNGATHERED = 8
"""Number of characters at the beginning of a reply that are passed on at once, because the user waits for the first
word."""
WITHOUT_TEXT_LOGPROBS = ("anthropic", "google", *DECISIONS)
"""Vendors whose models never report the log-probabilities of a given text."""


def provider(
    name: str,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    patience_s: float | None = None,
    window: int | None = None,
) -> Provider:
    """Return the model of this name; nothing is sent yet.

    Args:
        patience_s: maximum time in seconds before the first word and between two words; None: it depends on the address
            (see `waits`).
        window: context window in tokens of a model in this process; None: 4,096. Ignored for endpoints.

    Raises:
        SettingsError: the name has none of the forms, there is no key, or a package is not installed.
    """
    at = address(name, base_url=base_url, api_key=api_key)
    return Provider(replace(at, window=window) if at.window and window else at, patience_s)


class Provider:
    """A model behind an endpoint or in this process. A reply is cut off at the limits of its request (see `Tally`)."""

    def __init__(self, address: Address, patience_s: float | None = None) -> None:
        self.name, self._address = address.name, address
        self.window, self.is_here = address.window or None, address.vendor == "gguf"
        self.waits = waits(patience_s, local=address.is_local)
        self._connecting = threading.Lock()
        self._adapters: WeakKeyDictionary[asyncio.AbstractEventLoop, Adapter] = WeakKeyDictionary()

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        if request.continuation and self._address.vendor in WITHOUT_TEXT_LOGPROBS:
            raise ModelRefused(f"{self.name} reports no log-probabilities of a given text")
        loop = asyncio.get_running_loop()
        if (adapter := self._adapters.get(loop)) is None:
            adapter = await asyncio.to_thread(self._connected, loop)
        tally, watch = Tally(request), _Deadlines(self.name, self.waits)
        reading = _Reading(request, tally, self._address)
        used = withheld = None
        async with adapter.stream(request) as arrivals:
            while not tally.full:
                try:
                    gap_s = GAP_S if reading.came > MAX_UNGATHERED else 0.0
                    came = await watch.wait(arrivals.next(gap_s), tally, reading.until)
                except _HeldLongEnough:
                    if piece := reading.release():
                        yield piece
                    continue
                if not came:
                    break
                for arrival in came:
                    match arrival:
                        case Usage():
                            used = arrival
                        case Withheld():
                            withheld = arrival
                        case Truncated():
                            reading.truncated = True
                        case Delta() | Call():
                            watch.extend()
                            if part := reading.take(arrival):
                                yield part
                        case _:
                            watch.extend()
                            yield arrival
                    if tally.full:
                        break
        if piece := reading.end():
            yield piece
        self._check(request, withheld, tally, reading)
        if used:
            yield used

    async def aclose(self) -> None:
        """Close idle connections."""
        if adapter := self._adapters.pop(asyncio.get_running_loop(), None):
            await adapter.aclose()

    def _check(self, request: Request, withheld: Withheld | None, tally: Tally, reading: _Reading) -> None:
        """Raise an error if a reply cannot be used:

        - It was cut off at a limit and has no calls, unless it is free text with words.
        - It has neither words nor calls, and the model refused, or was still thinking at its token limit.
        """
        label = request.prompt.label()
        if tally.full and not tally.called and not (tally.said and request.schema is None):
            error = ModelSilent if tally.late else ReplyInvalid  # after a timeout, another attempt would take as long
            raise error(f"{self.name} {tally.full}: its reply to the prompt {label!r} was discarded")
        if tally.said or tally.called:
            return
        if withheld:
            why = self._address.quote(withheld.why)
            raise (PromptBlocked if withheld.filtered else ModelRefused)(f"{self.name} refuses to answer: {why}")
        if reading.truncated and reading.thought:
            raise ReplyInvalid(
                f"{self.name} reached its limit of tokens while still thinking about the prompt {label!r}"
            )

    def _connected(self, loop: asyncio.AbstractEventLoop) -> Adapter:
        """Return the adapter for an event loop; connections belong to one loop."""
        with self._connecting:
            if (adapter := self._adapters.get(loop)) is None:
                adapter = self._adapters[loop] = _adapter_of(self._address.vendor)(self._address)
            return adapter


def _adapter_of(vendor: str) -> Callable[[Address], Adapter]:
    if vendor in ("anthropic", "google"):
        from mindstream.models.providers.vendors import Vendor as Found
    elif vendor == "gguf":
        from mindstream.models.providers.gguf import Gguf as Found  # type: ignore[assignment]
    elif vendor in DECISIONS:
        from mindstream.models.providers.decisions import Decisions as Found  # type: ignore[assignment]
    else:
        from mindstream.models.providers.openai_chat import OpenAIChat as Found  # type: ignore[assignment]
    return Found


class _Deadlines:
    """Waits for arrivals within the timeouts; keep-alives and empty pieces do not extend them."""

    def __init__(self, name: str, waits: Waits) -> None:
        self._name, self._waits = name, waits
        self._now = asyncio.get_running_loop().time
        self._end = self._now() + waits.whole_s
        self._patience_s = waits.first_s
        self._until = self._now() + waits.first_s

    def extend(self) -> None:
        """Restart the timeout between two parts, because something arrived."""
        self._patience_s = self._waits.between_s
        self._until = self._now() + self._patience_s

    async def wait(self, coming: Awaitable[T], tally: Tally, held_until: float | None = None) -> T | None:
        """Return the result of `coming` (the next arrivals).

        Return None if the time for the complete reply is over before; `tally` notes this.

        Raises:
            _HeldLongEnough: the loop's clock reached `held_until`, and nothing arrived.
            ModelSilent: nothing arrived within the timeout for the first or the next part.
        """
        until = min(self._until, self._end)
        held_until = until if held_until is None else held_until
        try:
            async with asyncio.timeout_at(min(until, held_until)):
                return await coming
        except TimeoutError:
            if held_until < until:
                raise _HeldLongEnough from None
            if self._until > self._end:
                tally.late, tally.full = True, f"took longer than {self._waits.whole_s:g} s"
                return None
        raise ModelSilent(
            f"{self._name} sent nothing for {self._patience_s:g} s. Is it busy, or still loading?"
            " --patience S waits longer"
        )


class _HeldLongEnough(Exception):  # noqa: N818
    """Signals that text which was held back because it may be a thought must be passed on now."""


class _Reading:
    """Processes the arrivals of one reply: counts them, separates thoughts, and learns how the endpoint marks thoughts.

    Some endpoints mark only the end of thoughts. So free text may have to be held back until the end mark:

    - The endpoint is known to mark the beginning of thoughts: nothing is held back.
    - The endpoint is known not to mark the beginning, or the model's name says that the model thinks: text is held
      back.
    - Neither is known: text is held back for HOLD_S only.

    Attributes:
        until: the time on the loop's clock at which held-back text is passed on; None: only a closing mark or the end
            of the reply releases the text.
        truncated: whether the endpoint's token limit was reached.
        thought: whether there were thoughts.
        came: number of characters that arrived (reply, thoughts, arguments). Of an arrival with a `]`, only the
            characters after the last `]` count. So a talker's decision (`[ALONE]`), which no user sees, does not count,
            and the first word after the decision is passed on at once.
    """

    def __init__(self, request: Request, tally: Tally, at: Address) -> None:
        self._tally, self._on_thought, self._known = tally, request.on_thought, capabilities_of(at)
        typed = request.schema is not None
        self._learns = not typed and not request.options
        holds = self._learns and not self._known.opens_thoughts
        self._briefly = holds and self._known.opens_thoughts is None and not self._known.expects_thoughts
        self._thinking = Thinking(typed=typed, holds=holds)
        self.until: float | None = None
        self._half, self.came = "", 0
        self.truncated = self.thought = False

    def take(self, arrival: Delta | Call) -> Part | None:
        """Count an arrival, and pass thoughts to the listener.

        Return the part of the reply that can be passed on now; None if there is none yet.
        """
        if isinstance(arrival, Call):
            self._tally.count("calls", 1)
            return Call(legible(arrival.tool), legible(arrival.arguments), legible(arrival.id))
        self.came += len(arrival.text.rpartition("]")[2])
        if arrival.of == "arguments":
            self._tally.count("arguments", len(arrival.text))
            return None
        thought, answer = (arrival.text, "") if arrival.of == "thought" else self._thinking.part(arrival.text)
        if thought:
            self.thought = True
            self._tally.count("thought", len(thought))
            if self._on_thought:
                self._on_thought(thought)
        if arrival.of == "thought" or (self._thinking.opened and not self._thinking.unopened):
            self._note_opening()
            answer = self._thinking.release() + answer
        if self._briefly and self.until is None and self._thinking.holding:
            self.until = asyncio.get_running_loop().time() + HOLD_S
        return self._piece(answer)

    def release(self) -> Piece | None:
        """Return the held-back text (None: there is none), and hold back no further text of this reply."""
        self.until, self._briefly = None, False
        return self._piece(self._thinking.release())

    def end(self) -> Piece | None:
        """End the reply, and return the text that was held back; None if there is none. Note whether the endpoint marks
        the beginning of thoughts."""
        piece = self._piece(self._thinking.rest(truncated=self.truncated and not self._briefly))
        if self._thinking.unopened:
            self._known.opens_thoughts = False
        elif self._learns and self._tally.said and not self.truncated:
            # No thoughts ended without an opening mark. Noted even if the held-back text was released before the end.
            self._note_opening()
        return piece

    def _note_opening(self) -> None:
        """Note that this endpoint marks the beginning of thoughts, unless it is already known whether it does."""
        if self._known.opens_thoughts is None:
            self._known.opens_thoughts = True

    def _piece(self, text: str) -> Piece | None:
        if self._half or not text.isascii():  # the first half of a surrogate pair waits for the second
            text = with_whole_characters(self._half + text)
            self._half = text[-1:] if HALF.search(text) else ""
            text = text.removesuffix(self._half)
        text = legible(self._tally.clip(text)) if text else ""
        return Piece(text) if text else None


class EngineModel:
    """A model that runs each call as a task of an engine; the reply arrives as a whole, not piece by piece.

    Args:
        patience_s: maximum time in seconds before the first word and between two words; None: a usual value.
        window: context window in tokens of a model in this process; None: the default.
    """

    def __init__(self, name: str, engine: Engine, patience_s: float | None = None, window: int | None = None) -> None:
        self.name = name
        self._engine, self._opened = engine, (name, patience_s, window)

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        parts, error = await self._engine.run(answer, self._opened, request.but(on_call=None, on_thought=None))
        for part in parts:
            yield part
        if error is not None:
            raise error


async def answer(
    opened: tuple[str, float | None, int | None], request: Request
) -> tuple[list[Part], ModelError | None]:
    """Return the parts of a model's reply that arrived, and the error that ended the reply, if any."""
    parts, thoughts, failure = list[Part](), list[str](), None
    try:
        async for part in _open(*opened).reply(request.but(on_thought=thoughts.append)):
            parts.append(part)
    except ModelError as error:
        failure = error
    # the caller does not get the thoughts, so count them here
    if thoughts and not any(isinstance(part, Usage) for part in parts):
        said = (part.text for part in parts if isinstance(part, Piece))
        parts.append(Usage(request.tokens, estimate_tokens("".join((*thoughts, *said)))))
    return parts, failure


@cache
def _open(name: str, patience_s: float | None, window: int | None) -> Model:
    return Rules() if name == Rules.name else provider(name, patience_s=patience_s, window=window)
