"""Who a resident is: what is told of it before it lives."""

from __future__ import annotations

from typing import NamedTuple

from pydantic import BaseModel, ConfigDict

from mindstream.town.world.world import Spot


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
        """Return what its stream holds before it lives: who it is, whom it knows, what it remembers."""
        told = [self.learned, self.currently, self.lifestyle, self.routine]
        known = [f"{each.name} is {self.name}'s {each.what}." for each in self.relations]
        return tuple(dict.fromkeys(text.strip() for text in (*told, *known, *self.memories) if text.strip()))
