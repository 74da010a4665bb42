"""Something that can be seen."""

from __future__ import annotations

from dataclasses import dataclass

from mindstream_town.world.world import Spot


@dataclass(frozen=True, slots=True)
class Percept:
    """Something that can be seen.

    Attributes:
        who: the resident that it is about; "" where it is about an object.
        place: the address of an object, or of what somebody does.
        since: the step since which an object is so. danger: that is a danger.
        passing: it is so only while somebody does something with it: nothing is to be decided about it.
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
