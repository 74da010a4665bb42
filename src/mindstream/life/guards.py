"""Guards of the tool loop: repeated calls are pointed out to the model, then refused; calls per reply are limited."""

from __future__ import annotations

from dataclasses import dataclass

from mindstream.models.model import Call

AT_ONCE = 8
"""Maximum number of calls of one reply."""
NAMED, REFUSED = 3, 4
"""Number of equal calls in a row that is pointed out to the model, and the number that is refused."""


@dataclass
class Repeats:
    """Counts equal calls in a row."""

    last: tuple[str, str] = ("", "")
    times: int = 0

    def take(self, call: Call) -> int:
        """Count a call; return how often it was made in a row, including this time."""
        key = (call.tool, call.arguments)
        self.times = self.times + 1 if key == self.last else 1
        self.last = key
        return self.times


def refusal(number: int, times: int) -> str:
    """Return why a call is refused, "" if it is not.

    Args:
        number: its place in the reply, from 1.
        times: how often it was made in a row.
    """
    if number > AT_ONCE:
        return f"Not made: at most {AT_ONCE} calls a reply."
    if times >= REFUSED:
        return f"Not made: this same call was made {times - 1} times running, and gave the same. Do something else."
    return ""


def named(text: str, times: int) -> str:
    """Return a call's result, with a remark if the call was repeated."""
    if times < NAMED:
        return text
    return f"{text}\n(You have made this same call {times} times running. Do something else, or finish.)"
