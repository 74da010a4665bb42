"""Whom a question means without a name: the one who asks ("I", "my"), the one who is asked ("you"), or both ("we")."""

from __future__ import annotations

import re
from typing import NamedTuple

WISH = re.compile(r"\b(?:can|could|would|will|do)\s+you\b", re.IGNORECASE)
"""Such a "you" wants something done or thought now; it does not ask what was said."""
WORD = re.compile(r"[a-z]+|[我你您]们?", re.IGNORECASE)
ASKER = frozenset({"i", "me", "my", "mine", "myself", "我"})
ASKED = frozenset({"you", "your", "yours", "yourself", "你", "您"})
BOTH = frozenset({"we", "us", "our", "ours", "ourselves", "我们"})


class Persons(NamedTuple):
    """Whether a question means the one who asks, and the one who is asked."""

    asker: bool
    asked: bool


def find_persons(text: str) -> Persons:
    """Return whom the pronouns of a question in English or Chinese mean."""
    words = set(WORD.findall(WISH.sub(" ", text).lower()))
    both = bool(words & BOTH)
    return Persons(both or bool(words & ASKER), both or bool(words & ASKED))
