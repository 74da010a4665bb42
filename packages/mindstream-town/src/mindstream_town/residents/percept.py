"""What a resident perceives."""

from __future__ import annotations

from dataclasses import dataclass

from mindstream_town.world.tree import Spot


@dataclass(frozen=True, slots=True)
class Percept:
    """Something that a resident has in sight, as subject, predicate and object.

    Attributes:
        who: the resident that the percept is about; "" for an object.
        place: address of the object, or of the resident's activity.
        since: step at which the condition began. danger: whether the condition is a danger.
        passing: whether the state lasts only while the object is in use, so that no decision is needed.
    """

    subject: str
    predicate: str
    object: str
    spot: Spot
    who: str = ""
    place: str = ""
    since: int = 0
    danger: bool = False
    passing: bool = False

    @property
    def triple(self) -> tuple[str, str, str]:
        return self.subject, self.predicate, self.object

    @property
    def text(self) -> str:
        return f"{self.subject} {self.predicate} {self.object}"
