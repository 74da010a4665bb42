"""Keyed random numbers: the same seed and key give the same number, in any order of execution."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def fraction(seed: int | str, *key: object) -> float:
    """Return a number in [0, 1) for this seed and key."""
    digest = hashlib.blake2b(repr((seed, *key)).encode(), digest_size=8).digest()
    return (int.from_bytes(digest) >> 11) / (1 << 53)


def pick(options: Sequence[T], seed: int | str, *key: object) -> T:
    """Choose one of `options` (not empty) for this seed and key."""
    return options[int(fraction(seed, *key) * len(options))]


def sample(options: Sequence[T], n: int, seed: int | str, *key: object) -> list[T]:
    """Draw up to n of `options` without replacement, for this seed and key."""
    moved: dict[int, int] = {}
    drawn = []
    for i in range(min(n, len(options))):
        at = i + int(fraction(seed, *key, i) * (len(options) - i))
        drawn.append(options[moved.get(at, at)])
        moved[at] = moved.get(i, i)
    return drawn


LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"
"""The alphabet of generated names."""
OF_BYTES = (LETTERS * 8).encode()
"""Table that translates each byte value to a letter."""


def token(length: int = 12) -> str:
    """Return a random name of lower-case letters and digits, from the operating system's random numbers."""
    return _named(os.urandom(length))


def keyed_token(length: int, seed: int | str, *key: object) -> str:
    """Return a name that is determined by this seed and key: `length` (at most 64) lower-case letters and digits."""
    return _named(hashlib.blake2b(repr((seed, *key)).encode(), digest_size=length).digest())


def _named(data: bytes) -> str:
    return data.translate(OF_BYTES).decode()
