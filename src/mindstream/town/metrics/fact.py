"""A fact in free words, and whether a text says it: by its content words, as beliefs are held to what was said.

The names of places and residents alone say nothing: whoever sees somebody work at a cafe does not know of its party.
"""

from __future__ import annotations

from dataclasses import dataclass

from mindstream.errors import InputError
from mindstream.text.support import SHARE
from mindstream.text.words import terms
from mindstream.town.setting import Setting

OF_CORE = 0.75
"""So much of a fact's words that name neither a place nor a resident must be said; of three or fewer all."""


@dataclass(frozen=True)
class Wording:
    """One way to say a fact.

    Attributes:
        words: its content words, stemmed.
        people: those of them that are residents' names.
        core: those that name neither residents nor places; all where there are no others.
    """

    words: frozenset[str]
    people: frozenset[str]
    core: frozenset[str]

    def is_said(self, said: frozenset[str]) -> bool:
        """Tell whether a text of these words says it: most of its core, half of all, whom it is about, its numbers."""
        return (
            len(self.core & said) >= OF_CORE * len(self.core)
            and len(self.words & said) >= SHARE * len(self.words)
            and (not self.people or bool(self.people & said))
            and all(word in said for word in self.words if word.isdigit())
        )


@dataclass(frozen=True)
class Fact:
    """A fact; any of its wordings says it."""

    text: str
    wordings: tuple[Wording, ...]

    def is_in(self, text: str, by: str = "") -> bool:
        """Tell whether a text says it; `by`: whose words they are, since "I" is somebody."""
        said = frozenset(terms(f"{by} {text}"))
        return any(wording.is_said(said) for wording in self.wordings)

    @property
    def core(self) -> frozenset[str]:
        """What it is about beside places and residents, in stems."""
        return frozenset[str]().union(*(wording.core for wording in self.wordings))


def read_fact(text: str, setting: Setting) -> Fact:
    """Read a fact in free words; other wordings of it may follow, each after a "|".

    Raises:
        InputError: a wording says nothing.
    """
    places = frozenset(term for place in setting.world.places for name in place.names[1:] for term in terms(name))
    wordings = []
    for said in text.split("|"):
        words = frozenset(terms(said))
        if not words:
            raise InputError(f"{said.strip()!r:.60} is no fact: say it in words, as in 'there is a market on Saturday'")
        wordings.append(Wording(words, words & setting.name_words, (words - setting.name_words - places) or words))
    return Fact(text.split("|")[0].strip(), tuple(wordings))
