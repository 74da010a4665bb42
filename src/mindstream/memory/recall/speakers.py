"""Who talks in a stream: how much each one says, and who of them is the user and who the agent.

What recall takes from it: a long message is measured by what its speaker usually says, and a speaker who always says
much by the tersest of those who talk.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

TAKES_PART = 0.1
"""Who says so large a part of the messages takes part in the talk; others do not set its measure."""
DOUBTED = 5
"""So many messages say little about how much somebody usually says."""


class Speakers:
    """The speakers of a stream's talk, by their numbers in the column `by`."""

    def __init__(self) -> None:
        self._messages: list[int] = []
        self._words: list[int] = []
        self._users: set[int] = set()
        self._agents: set[int] = set()
        self._usual: NDArray[np.float64] | None = None

    def add(self, by: int, words: int, by_user: object) -> None:
        """Count a message of so many words; `by_user`: what its data say of that, if they do."""
        missing = by + 1 - len(self._messages)
        self._messages += [0] * missing
        self._words += [0] * missing
        self._messages[by] += 1
        self._words[by] += words
        if isinstance(by_user, bool):
            (self._users if by_user else self._agents).add(by)
        self._usual = None

    def without(self, said: Iterable[tuple[int, int, int]]) -> Speakers:
        """Return a copy with other counts: by whom, how many messages more, and how many words more."""
        fresh = Speakers()
        fresh.begin_with([list(each) for each in self.state()])
        for by, messages, words in said:
            fresh._messages[by] += messages
            fresh._words[by] += words
        return fresh

    def state(self) -> list[list[int]]:
        """Return all that is known, to begin with."""
        return [self._messages, self._words, sorted(self._users), sorted(self._agents)]

    def begin_with(self, state: list[list[int]]) -> None:
        """Begin with what was known."""
        self._messages, self._words, users, agents = state
        self._users, self._agents, self._usual = set(users), set(agents), None

    @property
    def user(self) -> int:
        """Return the number of the one who is marked as the user; -1: nobody, or several."""
        return _only(self._users)

    @property
    def agent(self) -> int:
        """Return the number of the one who speaks to the user; -1: nobody, or several."""
        return _only(self._agents)

    def usual_lengths(self) -> NDArray[np.float64]:
        """Return how many words each one's message has, on geometric average with a few of the whole talk's average.

        Who has said nothing yet is expected to say as much as everybody.
        """
        if self._usual is None:
            messages, words = np.array(self._messages, np.float64), np.array(self._words, np.float64)
            everybody = np.log(max(1.0, words.sum() / max(1.0, messages.sum())))
            own = np.log(np.maximum(1, words / np.maximum(1, messages)))
            self._usual = np.exp((messages * own + DOUBTED * everybody) / (messages + DOUBTED))
        return self._usual

    def taking_part(self) -> list[int]:
        """Return the numbers of those who take part in the talk."""
        least = TAKES_PART * sum(self._messages)
        return [by for by, messages in enumerate(self._messages) if messages > least]

    def tersest(self) -> float:
        """Return the least of the usual lengths of those who take part in the talk; 0: there is none."""
        usual = self.usual_lengths()
        return min((float(usual[by]) for by in self.taking_part()), default=0.0)


def _only(numbers: set[int]) -> int:
    return next(iter(numbers)) if len(numbers) == 1 else -1
