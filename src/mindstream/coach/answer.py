"""An answer while it is being said."""

from __future__ import annotations

from dataclasses import dataclass

from mindstream.coach.alarms import NOTHING, Verdict


@dataclass
class Answer:
    """What is being said to an utterance.

    Attributes:
        model: who found the words.
        words: all that was shown.
        kept: what of it is remembered.
        verdict: what an alarm adds to it.
    """

    heard: int
    model: str
    waited: bool = False
    late: bool = False
    words: str = ""
    kept: str = ""
    verdict: Verdict = NOTHING


class Aside(str):
    """Words that are shown and not remembered: that a model could not be reached says nothing of the user."""
