"""A percept."""

from __future__ import annotations

from dataclasses import dataclass

from mindstream_town.world.tree import Spot


@dataclass(frozen=True, slots=True)
class Percept:
    """Something in sight of a resident.

    Attributes:
        who: the resident that it is about; "" for an object.
        place: the address of the object, or of a resident's activity.
        since: the step at which the object came into its condition. danger: the condition is a danger.
        passing: the state lasts only while the object is in use; it needs no decision.
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
