"""Real models by name: `local`, `gguf:…`, `openai:…`, `anthropic:…`, `google:…`, `ollama:…`, any OpenAI-compatible URL.

The client library is imported in a thread when the first request is made: that takes half a second. One attempt per
request; trying again is the wrapper `Retry`'s business alone.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable
from dataclasses import replace
from typing import TypeVar
from weakref import WeakKeyDictionary

from mindstream.errors import ModelRefused, ModelSilent, ReplyInvalid
from mindstream.models.model import Call, Distribution, Logprobs, Part, Piece, Request, TextLogprobs, Usage
from mindstream.models.providers.adapter import Adapter, Delta, Withheld
from mindstream.models.providers.address import DECISIONS, Address, address
from mindstream.models.providers.gathered import gathered
from mindstream.models.providers.limits import Tally, Waits, waits
from mindstream.models.providers.thoughts import Thinking

T = TypeVar("T")
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
        thinking, used, withheld = Thinking(), None, None
        async with gathered(adapter.stream(request)) as arrivals:
            while not tally.full and (came := await watch.wait(arrivals.next(), tally)):
                for arrival in came:
                    if isinstance(arrival, Usage):
                        used = arrival
                    elif isinstance(arrival, Withheld):
                        withheld = arrival
                    elif isinstance(arrival, Logprobs | TextLogprobs | Distribution):
                        watch.go_on()
                        yield arrival
                    else:
                        watch.go_on()
                        if part := _taken(arrival, thinking, tally):
                            yield part
                    if tally.full:
                        break
        if rest := thinking.rest():
            yield Piece(tally.clip(rest))
        self._check(request, withheld, tally)
        if used:
            yield used

    async def aclose(self) -> None:
        """Let go of the connections that wait for the next request."""
        if adapter := self._adapters.pop(asyncio.get_running_loop(), None):
            await adapter.aclose()

    def _check(self, request: Request, withheld: Withheld | None, tally: Tally) -> None:
        """Let a reply pass that is whole, or free text that was cut where it became too much."""
        if tally.full and not tally.called and not (tally.said and request.schema is None):
            error = ModelSilent if tally.late else ReplyInvalid  # to ask again would take as long
            raise error(f"{self.name} {tally.full}: its reply to {request.prompt.label()!r} was not taken")
        if withheld and not (tally.said or tally.called):
            raise ModelRefused(f"{self.name} refuses to answer: {self._address.quote(withheld.why)}")

    def _connected(self, loop: asyncio.AbstractEventLoop) -> Adapter:
        """Connections belong to one event loop."""
        with self._connecting:
            adapter = self._adapters.get(loop) or _adapter(self._address)
            self._adapters[loop] = adapter
            return adapter


class _Watch:
    """Waits for what comes next, not longer than it may take; keep-alives and empty pieces are nothing."""

    def __init__(self, name: str, waits: Waits) -> None:
        self._name, self._waits = name, waits
        self._now = asyncio.get_running_loop().time
        self._end = self._now() + waits.whole_s
        self._patience_s = waits.first_s
        self._until = self._now() + waits.first_s

    def go_on(self) -> None:
        """Note that something came."""
        self._patience_s = self._waits.between_s
        self._until = self._now() + self._patience_s

    async def wait(self, coming: Awaitable[T], tally: Tally) -> T | None:
        """Return what comes, or None where the time for the whole reply is up."""
        try:
            async with asyncio.timeout_at(min(self._until, self._end)):
                return await coming
        except TimeoutError:
            if self._until > self._end:
                tally.late, tally.full = True, f"took longer than {self._waits.whole_s:g} s"
                return None
        raise ModelSilent(
            f"{self._name} said nothing for {self._patience_s:g} s. Is it busy, or still loading?"
            " --patience S waits longer"
        )


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


def _taken(arrival: Delta | Call, thinking: Thinking, tally: Tally) -> Part | None:
    """Count what came; return it where it is a part of the reply: a model's thoughts stay its own."""
    if isinstance(arrival, Call):
        tally.call()
        return Call(_sound(arrival.tool), _sound(arrival.arguments), _sound(arrival.id))
    thought, answer = thinking.part(arrival.text) if arrival.of == "reply" else ("", "")
    if arrival.of == "arguments":
        tally.argue(arrival.text)
    if thought := thought or (arrival.text if arrival.of == "thought" else ""):
        tally.think(thought)
    text = tally.clip(answer) if answer else ""
    return Piece(text) if text else None


def _sound(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")
