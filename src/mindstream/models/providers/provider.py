"""Real models by name: `local`, `gguf:…`, `openai:…`, `anthropic:…`, `google:…`, `ollama:…`, any OpenAI-compatible URL.

An adapter is imported in a thread when the first request is made: client libraries take a moment. One attempt per
request; trying again is the wrapper `Retry`'s business alone.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable
from dataclasses import replace
from typing import TypeVar
from weakref import WeakKeyDictionary

from mindstream.errors import ModelRefused, ModelSilent, PromptBlocked, ReplyInvalid
from mindstream.models.legible import HALF, legible, with_whole_characters
from mindstream.models.model import Call, Distribution, Logprobs, Part, Piece, Request, TextLogprobs, Usage
from mindstream.models.providers.adapter import Adapter, Delta, Truncated, Withheld
from mindstream.models.providers.address import DECISIONS, Address, address
from mindstream.models.providers.capabilities import capabilities_of
from mindstream.models.providers.limits import Tally, Waits, waits
from mindstream.models.providers.thoughts import Thinking

T = TypeVar("T")
HOLD_S = 0.25
"""Seconds for which the first text of an endpoint is held back that has not answered before: it may be thought."""
GAP_S = 0.04
"""Seconds that arrivals are gathered for: 25 times a second is smooth to the eye."""
AT_ONCE = 8
"""Characters that are passed on as they come, before that: a first word is waited for."""
UNWEIGHED = ("anthropic", "google", *DECISIONS)
"""Vendors none of whose models tell how likely a given text is."""


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
        patience_s: how long it may be silent, before its first word and between two [by its address, see limits].
        window: how many tokens a model in this process gets room for [4,096]; endpoints have their own.

    Raises:
        SettingsError: no such form, no key, or a package that is not installed.
    """
    at = address(name, base_url=base_url, api_key=api_key)
    return Provider(replace(at, window=window) if at.window and window else at, patience_s)


class Provider:
    """A model behind an endpoint. A reply that goes beyond its limits ends there (see limits)."""

    def __init__(self, address: Address, patience_s: float | None = None) -> None:
        self.name = address.name
        self._address = address
        self.window = address.window or None
        self.is_here = address.vendor == "gguf"
        self.waits = waits(patience_s, local=address.is_local)
        self._connecting = threading.Lock()
        self._adapters: WeakKeyDictionary[asyncio.AbstractEventLoop, Adapter] = WeakKeyDictionary()

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        if request.continuation and self._address.vendor in UNWEIGHED:
            raise ModelRefused(f"{self.name} does not tell how likely a given text is")
        loop = asyncio.get_running_loop()
        adapter = self._adapters.get(loop)
        if adapter is None:
            adapter = await asyncio.to_thread(self._connected, loop)
        tally = Tally(request)
        watch = _Watch(self.name, self.waits)
        reading = _Reading(request, tally, self._address)
        used = withheld = None
        try:
            async with adapter.stream(request) as arrivals:
                while not tally.full:
                    try:
                        gap_s = GAP_S if reading.came > AT_ONCE else 0.0
                        came = await watch.wait(arrivals.next(gap_s), tally, reading.until)
                    except _HeldLongEnough:
                        if piece := reading.release():
                            yield piece
                        continue
                    if not came:
                        break
                    for arrival in came:
                        if isinstance(arrival, Usage):
                            used = arrival
                        elif isinstance(arrival, Withheld):
                            withheld = arrival
                        elif isinstance(arrival, Truncated):
                            reading.truncated = True
                        elif isinstance(arrival, Logprobs | TextLogprobs | Distribution):
                            watch.go_on()
                            yield arrival
                        else:
                            watch.go_on()
                            for part in reading.take(arrival):
                                yield part
                        if tally.full:
                            break
        finally:
            watch.close()
        if piece := reading.end():
            yield piece
        self._check(request, withheld, tally, reading)
        if used:
            yield used

    async def aclose(self) -> None:
        """Let go of the connections that wait for the next request."""
        if adapter := self._adapters.pop(asyncio.get_running_loop(), None):
            await adapter.aclose()

    def _check(self, request: Request, withheld: Withheld | None, tally: Tally, reading: _Reading) -> None:
        """Let a reply pass that is whole, or free text that was cut where it became too much."""
        label = request.prompt.label()
        if tally.full and not tally.called and not (tally.said and request.schema is None):
            error = ModelSilent if tally.late else ReplyInvalid  # to ask again would take as long
            raise error(f"{self.name} {tally.full}: its reply to {label!r} was not taken")
        if tally.said or tally.called:
            return
        if withheld:
            why = self._address.quote(withheld.why)
            raise (PromptBlocked if withheld.filtered else ModelRefused)(f"{self.name} refuses to answer: {why}")
        if reading.truncated and reading.thought:
            raise ReplyInvalid(f"{self.name} was still thinking about {label!r} when its limit of tokens was reached")

    def _connected(self, loop: asyncio.AbstractEventLoop) -> Adapter:
        """Connections belong to one event loop."""
        with self._connecting:
            adapter = self._adapters.get(loop) or _adapter(self._address)
            self._adapters[loop] = adapter
            return adapter


class _Watch:
    """Waits for what comes next, not longer than it may take; keep-alives and empty pieces are nothing.

    One timer runs for the whole reply, as the deadline moves on with each piece.
    """

    def __init__(self, name: str, waits: Waits) -> None:
        self._name, self._waits = name, waits
        self._loop = asyncio.get_running_loop()
        self._end = self._loop.time() + waits.whole_s
        self._patience_s = waits.first_s
        self._until = self._loop.time() + waits.first_s
        self._timer: asyncio.TimerHandle | None = None
        self._waiting: asyncio.Timeout | None = None

    def go_on(self) -> None:
        """Note that something came."""
        self._patience_s = self._waits.between_s
        self._until = self._loop.time() + self._patience_s

    async def wait(self, coming: Awaitable[T], tally: Tally, held_until: float | None = None) -> T | None:
        """Return what comes, or None where the time for the whole reply is up.

        Raises:
            _HeldLongEnough: it is `held_until`, on the loop's clock, and nothing came.
        """
        until = min(self._until, self._end)
        if self._timer is None:
            self._timer = self._loop.call_at(until, self._ring)
        try:
            async with asyncio.timeout_at(None if held_until is None else min(until, held_until)) as self._waiting:
                return await coming
        except TimeoutError:
            if held_until is not None and held_until < until:
                raise _HeldLongEnough from None
            if self._until > self._end:
                tally.late, tally.full = True, f"took longer than {self._waits.whole_s:g} s"
                return None
        finally:
            self._waiting = None
        raise ModelSilent(
            f"{self._name} said nothing for {self._patience_s:g} s. Is it busy, or still loading?"
            " --patience S waits longer"
        )

    def close(self) -> None:
        """End the timer."""
        if self._timer is not None:
            self._timer.cancel()

    def _ring(self) -> None:
        """End the wait if its time is up; else look again when it is."""
        self._timer = None
        until = min(self._until, self._end)
        if self._waiting is not None:
            if until > self._loop.time():
                self._timer = self._loop.call_at(until, self._ring)
            else:
                self._waiting.reschedule(until)


def _adapter(at: Address) -> Adapter:
    if at.vendor in ("anthropic", "google"):
        from mindstream.models.providers.vendors import Vendor

        return Vendor(at)
    if at.vendor == "gguf":
        from mindstream.models.providers.gguf import Gguf

        return Gguf(at)
    if at.vendor in DECISIONS:
        from mindstream.models.providers.decisions import Decisions

        return Decisions(at)
    from mindstream.models.providers.openai_chat import OpenAIChat

    return OpenAIChat(at)


class _HeldLongEnough(Exception):  # noqa: N818
    """Text that was held back, as it might be thought, is passed on."""


class _Reading:
    """Takes arrivals of one reply: counts them, keeps thoughts out, and learns how this endpoint marks them.

    Free text of an endpoint that opens its thoughts without a mark, or of a model whose name says that it thinks, is
    held back until the closing mark. Of an endpoint that has not answered yet, text is held back for HOLD_S only.

    Attributes:
        until: the time on the loop's clock at which text that is held back is passed on; None: it waits for a mark.
        truncated: the endpoint's limit of tokens was reached.
        thought: there were thoughts.
        came: characters that came, of any kind.
    """

    def __init__(self, request: Request, tally: Tally, at: Address) -> None:
        self._tally, self._on_thought = tally, request.on_thought
        self._known = capabilities_of(at)
        typed = request.schema is not None
        self._learns = not typed and not request.options
        holds = self._learns and not self._known.opens_thoughts
        self._briefly = holds and self._known.opens_thoughts is None and not self._known.expects_thoughts
        self._thinking = Thinking(typed=typed, holds=holds)
        self.until: float | None = None
        self._half = ""
        self.truncated = self.thought = False
        self.came = 0

    def take(self, arrival: Delta | Call) -> list[Part]:
        """Count what came; return the parts of the reply in it."""
        if isinstance(arrival, Call):
            self._tally.call()
            return [Call(legible(arrival.tool), legible(arrival.arguments), legible(arrival.id))]
        self.came += len(arrival.text)
        if arrival.of == "arguments":
            self._tally.argue(arrival.text)
            return []
        thought, answer = (arrival.text, "") if arrival.of == "thought" else self._thinking.part(arrival.text)
        if thought:
            self.thought = True
            self._tally.think(thought)
            if self._on_thought:
                self._on_thought(thought)
        if arrival.of == "thought" or (self._thinking.opened and not self._thinking.unopened):
            self._mark_opening()
            answer = self._thinking.release() + answer
        if self._briefly and self.until is None and self._thinking.holding:
            self.until = asyncio.get_running_loop().time() + HOLD_S
        piece = self._piece(answer)
        return [piece] if piece else []

    def release(self) -> Piece | None:
        """Return the text that was held back."""
        self.until, self._briefly = None, False
        return self._piece(self._thinking.release())

    def end(self) -> Piece | None:
        """Return the text that was held back, as nothing follows."""
        text = self._thinking.rest(truncated=self.truncated and not self._briefly)
        if self._thinking.unopened:
            self._known.opens_thoughts = False
        elif self._learns and text.strip() and not self.truncated:
            self._mark_opening()
        return self._piece(text)

    def _mark_opening(self) -> None:
        if self._known.opens_thoughts is None:
            self._known.opens_thoughts = True

    def _piece(self, text: str) -> Piece | None:
        if self._half or not text.isascii():  # the first half of a character waits for the other one
            text = with_whole_characters(self._half + text)
            self._half = text[-1:] if HALF.search(text) else ""
            text = text.removesuffix(self._half)
        text = legible(self._tally.clip(text)) if text else ""
        return Piece(text) if text else None
