"""Guards of the loop: the same call again and again is named to the model and then refused; fan-out is limited."""

from __future__ import annotations

from dataclasses import dataclass

from mindstream.models.model import Call

AT_ONCE = 8
"""So many calls of one reply are made."""
NAMED, REFUSED = 3, 4
"""The same call so often running is named to the model; once more, and it is refused."""


@dataclass
class Repeats:
    """How often the newest call was made running."""

    last: tuple[str, str] = ("", "")
    times: int = 0

    def take(self, call: Call) -> int:
        """Count a call; return how often it was made running, this time included."""
        key = (call.tool, call.arguments)
        self.times = self.times + 1 if key == self.last else 1
        self.last = key
        return self.times


def refusal(number: int, times: int) -> str:
    """Return why a call is not made, "" where it is.

    Args:
        number: its place in the reply, from 1.
        times: how often it was made running.
    """
    if number > AT_ONCE:
        return f"Not made: at most {AT_ONCE} calls a reply."
    if times >= REFUSED:
        return f"Not made: this same call was made {times - 1} times running, and gave the same. Do something else."
    return ""


def named(text: str, times: int) -> str:
    """Return what a call gave, with a word on it where it was made again and again."""
    if times < NAMED:
        return text
    return f"{text}\n(You have made this same call {times} times running. Do something else, or finish.)"
