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

SILENCE_S = 60.0
"""How long an endpoint may say nothing before a reply begins …"""
TALKER_S = 15.0
"""… where somebody waits for each word; rules answer sooner than that."""
BETWEEN_S = 30.0
"""How long it may say nothing between two pieces that carry something."""
HERE_S = 180.0
"""How long a model in this process may say nothing: it reads as fast as the machine can, and all at once."""
WHOLE_S = {"talker": 60.0}
OTHERS_S = 180.0
"""How long a whole reply may take: the talker's, anybody else's."""


@dataclass(frozen=True, slots=True)
class Waits:
    """How long one reply is waited for, in seconds: for its first part, between two parts, for the whole."""

    first_s: float
    between_s: float
    whole_s: float


def waits(role: str, silence_s: float = SILENCE_S, *, here: bool = False) -> Waits:
    """Return how long a role waits where an endpoint may say nothing for `silence_s`.

    A model in this process (`here`) reads long prompts, its own and those beside it, for minutes; it is not gone.
    """
    if here:
        return Waits(max(HERE_S, silence_s), HERE_S, 3 * OTHERS_S)
    first_s = min(TALKER_S, silence_s) if role == "talker" else silence_s
    return Waits(first_s, min(BETWEEN_S, silence_s), WHOLE_S.get(role, OTHERS_S))


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
