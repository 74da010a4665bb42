"""Texts that would make patterns slow, and a guard that stops endless work."""

from __future__ import annotations

import gc
import re
import signal
import time
from collections.abc import Callable, Iterator
from itertools import pairwise

SIZE = 32_000
"""Maximum length of an utterance."""
ATOMS = [*"aA1 \n.,?-'<[{\"@:你？", "\x1b[", "a ", "1 ", "? ", "\n ", "<a "]


class SlowError(Exception):
    """The call took longer than allowed."""


def pumped(word: str, size: int = SIZE) -> str:
    return (word * (size // len(word) + 1))[:size]


def words(source: str) -> list[str]:
    """Return words out of a pattern, on which it repeatedly starts to match."""
    plain = re.sub(r"\\[a-zA-Z]", " ", source)
    return list(dict.fromkeys(re.findall(r"[A-Za-z']{1,12}|[\u3400-\u9fff]{1,4}", plain)))[:10]


def attacks(source: str, size: int) -> Iterator[str]:
    """Yield texts made of a pattern's own words and common characters, with ends that do not match."""
    own = words(source)[:5]
    pairs = [f"{one} {two} " for one, two in pairwise(own)]
    for word in [*ATOMS, *own, *pairs]:
        yield pumped(word, size) + ("\0" if word[-1].isalnum() else "x")


def seconds(function: Callable[[], object], most: float) -> float:
    """Return the CPU seconds of a call; stop it after `most` seconds."""

    def stop(*_: object) -> None:
        raise SlowError

    gc.disable()  # garbage of earlier tests is not this pattern's work, and raising during a collection is not possible
    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, most)
    began = time.process_time()
    try:
        function()
    except SlowError:
        return most
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
        gc.enable()
    return time.process_time() - began
