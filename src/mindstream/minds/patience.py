"""How long things may take in a mind."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Patience:
    """How long things may take, in seconds.

    Attributes:
        deadline_s: how long the Talker waits for the Reasoner before it says that it takes longer.
        word_s: how long there may be silence before a word is said: that it still thinks.
        speaking_s: how long the Talker's model may be silent, before its first word and between two.
        thinking_s: how long a run of a Reasoner may think.
        lease_s: how long work stays with a process that has died.
        retry_s: how long a Reasoner's work rests after the first run that failed; after the next, four times as long.
    """

    deadline_s: float = 30.0
    word_s: float = 4.0
    speaking_s: float = 30.0
    thinking_s: float = 180.0
    lease_s: float = 10.0
    retry_s: float = 0.5
