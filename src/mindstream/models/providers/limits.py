"""How much an endpoint may send in one reply, and how long it may take."""

from __future__ import annotations

from dataclasses import dataclass

from mindstream.models.model import Request

WORDS_TOKENS, DATA_TOKENS = 1_000, 4_000
"""How long free text, and a structured reply, may get where the prompt does not say."""
THOUGHT_TOKENS = {True: 3_000, False: 4_000}
"""What a model may think before free text (True) or a structured reply: endpoints count it as a part of the reply."""
BYTES_A_TOKEN = 6
"""More than nearly any token has, so that only an endpoint that ignores the limit is ever cut off by bytes."""
CALLS = 16
"""Calls of tools in one reply; what comes after them is not taken."""
CALL_BYTES = 64_000
"""The arguments of all calls of one reply."""


@dataclass(frozen=True, slots=True)
class Waits:
    """How long one reply is waited for, in seconds: for its first part, between two parts, for the whole."""

    first_s: float = 60.0
    between_s: float = 30.0
    whole_s: float = 180.0


LOCAL = Waits(300.0, 120.0, 1_200.0)
"""A model on this machine, or on one beside it, may read for minutes before its first word, its own prompt and those
that came before it; it is not gone."""


def waits(patience_s: float | None = None, *, local: bool = False) -> Waits:
    """Return how long a model is waited for; `patience_s`: how long a person lets it be silent, where they say so."""
    usual = LOCAL if local else Waits()
    if patience_s is None:
        return usual
    return Waits(patience_s, patience_s, max(usual.whole_s, 3 * patience_s))


def reply_tokens(request: Request) -> int:
    """Return how many tokens the reply itself may have."""
    return request.prompt.reply_tokens or (WORDS_TOKENS if request.schema is None else DATA_TOKENS)


def all_tokens(request: Request) -> int:
    """Return how many tokens the model may write, its thoughts included: what an endpoint is told."""
    if request.options:
        return 1
    most = reply_tokens(request) + THOUGHT_TOKENS[request.schema is None]
    return min(most, request.longest_reply or most)


class Tally:
    """Counts what one reply brings.

    Attributes:
        full: which limit was reached, in words; "" while none is.
        late: it was the limit of time.
        said: there were words in it.
        called: there was a call in it.
    """

    def __init__(self, request: Request) -> None:
        self._text = reply_tokens(request) * BYTES_A_TOKEN
        self._thought = THOUGHT_TOKENS[request.schema is None] * BYTES_A_TOKEN
        self._arguments = CALL_BYTES
        self._calls = CALLS
        self.full = ""
        self.said = self.called = self.late = False

    def clip(self, text: str) -> str:
        """Count a piece of the reply's text; return as much of it as may be taken."""
        self.said = self.said or not text.isspace()
        data = text.encode("utf-8", "replace")  # half a character pair cannot be kept
        if len(data) > self._text:
            self.full = "went on and on"
            data = data[: self._text]
        self._text -= len(data)
        return data.decode("utf-8", "ignore")

    def think(self, text: str) -> None:
        """Count a piece of the model's thoughts."""
        self._thought -= len(text)
        if self._thought < 0:
            self.full = "thought on and on"

    def argue(self, text: str) -> None:
        """Count a piece of a call's arguments."""
        self._arguments -= len(text)
        if self._arguments < 0:
            self.full = "wrote arguments without an end"

    def call(self) -> None:
        """Count a call that is whole."""
        self.called = True
        self._calls -= 1
        if self._calls <= 0:
            self.full = f"called {CALLS} tools at once, and more"
