"""Who a resident is: what is told of it before it lives."""

from __future__ import annotations

import re
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict

from mindstream.town.sentences import sentences
from mindstream.town.world.world import Spot

ALONE = r"(?=[.,;:!?]|$| (?:for|and|but|or|in|on|at|to|with|from|since|when|because|that|as|is|was|has|more|very)\b)"
"""After this a pronoun is no possessive: `her hat`."""


class Relation(NamedTuple):
    """Whom somebody knows, and as what: `Relation("Mei Lin", "wife")`."""

    name: str
    what: str


class Person(BaseModel):
    """A resident as it is described.

    Attributes:
        innate: traits, in words. learned: what it is and does. currently: what it is about these days.
        lifestyle: when it sleeps and wakes. routine: what its days are bound to.
        home: the address of where it lives.
        start: where it stands when the town begins; None: at its bed.
        knows: addresses that it knows from the beginning, besides its home.
        about: its life so far, in a few sentences: known to it, and no news.
        memories: what it remembers from before, a sentence each.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    age: int = 0
    innate: str = ""
    learned: str = ""
    currently: str = ""
    lifestyle: str = ""
    routine: str = ""
    home: str
    start: Spot | None = None
    knows: tuple[str, ...] = ()
    relations: tuple[Relation, ...] = ()
    about: str = ""
    memories: tuple[str, ...] = ()

    def identity(self, currently: str = "") -> str:
        """Return who it is, in a few lines; after the identity stable set of Park 2023."""
        lines = [
            f"{self.name}, {self.age} years old" if self.age else self.name,
            self.innate and f"Traits: {self.innate}",
            self.learned,
            currently or self.currently,
            self.lifestyle,
            self.routine,
            self.relations and "Knows: " + "; ".join(f"{name} ({what})" for name, what in self.relations),
        ]
        return "\n".join(line for line in lines if line)

    def first_memories(self) -> tuple[str, ...]:
        """Return what its stream holds before it lives, a sentence each that stands on its own."""
        told = self._standing_alone(self.learned, self.currently, *self.memories)
        return tuple(dict.fromkeys((*told, *self.background())))

    def _standing_alone(self, *texts: str) -> list[str]:
        """Return the sentences of texts, names in the place of the pronouns that need what was said before."""
        found = []
        for text in texts:
            last = ""
            for sentence in sentences(text):
                others = sorted((each.name for each in self.relations if each.name in sentence), key=sentence.index)
                found.append(_named(sentence if others or not last else _with_other(sentence, last), self.name))
                last = others[-1] if others else ""
        return found

    def acquaintances(self) -> tuple[str, ...]:
        """Return whom it knows, a sentence each."""
        return tuple(f"{each.name} is {self.name}'s {each.what}." for each in self.relations)

    def background(self) -> tuple[str, ...]:
        """Return what it knows of its life, the people around it and its days, a sentence each: nothing to tell."""
        return tuple(dict.fromkeys((*self._standing_alone(self.about), *self.acquaintances(), *self.habits())))

    def habits(self) -> tuple[str, ...]:
        """Return what it does every day, a sentence each."""
        return tuple(dict.fromkeys(each for text in (self.lifestyle, self.routine) for each in sentences(text)))


def _with_other(sentence: str, other: str) -> str:
    """Put a name in the place of a pronoun for another: `He is fond of her` cannot mean himself."""
    of = {"He": "her", "She": "him"}.get(sentence.partition(" ")[0])
    return re.sub(rf"\b{of}\b{ALONE}", other, sentence, count=1) if of else sentence


def _named(sentence: str, name: str) -> str:
    """Put a name in the place of the pronoun that a sentence begins with."""
    first, _, rest = sentence.partition(" ")
    if first in ("He", "She", "They") and rest:
        return f"{name} {rest}"
    return f"{name}'s {rest}" if first in ("His", "Her", "Their") and rest else sentence
