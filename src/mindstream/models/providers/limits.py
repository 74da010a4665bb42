"""Limits of one reply: tokens, bytes, calls, and time."""

from __future__ import annotations

from dataclasses import dataclass

from mindstream.models.model import Request

TEXT_TOKENS, DATA_TOKENS = 1_000, 4_000
"""Maximum length of free text, and of a structured reply, in tokens, unless the prompt sets one."""
THOUGHT_TOKENS = {True: 3_000, False: 4_000}
"""Maximum thoughts before free text (True) or a structured reply: endpoints count them as a part of the reply."""
BYTES_PER_TOKEN = 6
"""More than nearly any token has, so that only an endpoint that ignores the token limit is cut off by bytes."""
MAX_CALLS = 16
"""Maximum number of tool calls in one reply; further ones are dropped."""
MAX_CALL_BYTES = 64_000
"""Maximum length of the arguments of all calls of one reply."""


@dataclass(frozen=True, slots=True)
class Waits:
    """Timeouts of one reply, in seconds: for its first part, between two parts, for all of it."""

    first_s: float = 60.0
    between_s: float = 30.0
    whole_s: float = 180.0


LOCAL = Waits(300.0, 120.0, 1_200.0)
"""A model on this machine or in this network may process its prompt, and those before it, for minutes before its first
word."""


def waits(patience_s: float | None = None, *, local: bool = False) -> Waits:
    """Return the timeouts of a model; `patience_s`: the user's own limit of silence, in seconds."""
    usual = LOCAL if local else Waits()
    return usual if patience_s is None else Waits(patience_s, patience_s, max(usual.whole_s, 3 * patience_s))


def reply_tokens(request: Request) -> int:
    """Return the maximum number of tokens of the reply itself."""
    return request.prompt.reply_tokens or (TEXT_TOKENS if request.schema is None else DATA_TOKENS)


def all_tokens(request: Request) -> int:
    """Return the maximum number of tokens of the reply with its thoughts: the limit that an endpoint gets."""
    if request.options:
        return 1
    most = reply_tokens(request) + THOUGHT_TOKENS[request.schema is None]
    return min(most, request.longest_reply or most)


class Tally:
    """Counts the content of one reply.

    Attributes:
        full: a description of the limit that was reached; "" if none was.
        late: the limit is the timeout.
        said: the reply has text.
        called: the reply has a call.
    """

    def __init__(self, request: Request) -> None:
        self._text = reply_tokens(request) * BYTES_PER_TOKEN
        self._thought = THOUGHT_TOKENS[request.schema is None] * BYTES_PER_TOKEN
        self._arguments, self._calls = MAX_CALL_BYTES, MAX_CALLS
        self.full = ""
        self.said = self.called = self.late = False

    def clip(self, text: str) -> str:
        """Count a piece of the reply's text; return as much of it as the limit allows."""
        self.said = self.said or not text.isspace()
        data = text.encode("utf-8", "replace")  # half a character pair cannot be stored
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
        """Count a complete call."""
        self.called = True
        self._calls -= 1
        if self._calls <= 0:
            self.full = f"called {MAX_CALLS} tools at once, and more"
