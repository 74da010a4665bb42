"""How long things may take in a mind."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mindstream.models.roles import Models

TRIES, PAUSES_S = 2, 30.0
"""So often an endpoint may take as long as it may, with such pauses between, until the Talker gives it up …"""
CALLS = 3
"""… and so often within a run of a Reasoner."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long things may take, in seconds.

    Attributes:
        deadline_s: how long the Talker waits for the Reasoner before it says that it takes longer.
        filler_s: how long there may be silence before a word is said: that it still thinks.
        silence_s: how long the Talker may be silent, whatever its model does; 0: by the waits of its model (see
            models/providers/limits), which mostly ends a silence itself.
        thinking_s: how long a run of a Reasoner may think; 0: by the waits of its model.
        lease_s: how long work stays with a process that has died.
        retry_s: how long a Reasoner's work rests after the first run that failed; after the next, four times as long.
    """

    deadline_s: float = 30.0
    filler_s: float = 4.0
    silence_s: float = 0.0
    thinking_s: float = 0.0
    lease_s: float = 10.0
    retry_s: float = 0.5

    def fill(self, models: Models) -> Timeouts:
        """Return them with what the models of a mind make of those that are 0."""
        talker, reasoner = models.waits("talker"), models.waits("reasoner")
        silence_s, thinking_s = TRIES * talker.first_s + PAUSES_S, CALLS * reasoner.first_s
        return replace(self, silence_s=self.silence_s or silence_s, thinking_s=self.thinking_s or thinking_s)
