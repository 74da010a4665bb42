"""What takes place and who comes: the `data` of the record that tells of it, never read from its words."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

KEY = "appointment"
"""Under this key an appointment stands in the `data` of the record that tells of it; it goes where the news goes."""


TownTime = Annotated[datetime, AfterValidator(lambda when: when if when.tzinfo else when.replace(tzinfo=UTC))]
"""A moment of the town's own time, which is taken for UTC as everywhere in a town."""


class Appointment(BaseModel):
    """Something that takes place. A record that has one has KEY among its keywords too, so that it is found.

    Attributes:
        what: what is done there, in a few words, as a plan says it ("having lunch").
        place: the address of where it is, as in the town's file; "" where nobody said.
        start, end: the town's own time.
        host: who gives it; "" nobody.
        who: who has agreed to come; others may know of it and stay away.
    """

    model_config = ConfigDict(frozen=True)

    what: str
    place: str = ""
    start: TownTime
    end: TownTime
    host: str = ""
    who: tuple[str, ...] = ()

    def is_same(self, other: Appointment) -> bool:
        """Tell whether another tells of the same, in whatever words and whoever comes."""
        return (self.start, self.place, self.host) == (other.start, other.place, other.host)

    def as_data(self) -> dict[str, Any]:
        """Return what a record keeps of it: `{KEY: …}`."""
        return {KEY: self.model_dump(mode="json", exclude_defaults=True)}


def appointment_of(data: Mapping[str, Any]) -> Appointment | None:
    """Return the appointment that a record's data hold; None: there is none, or it cannot be read."""
    try:
        return Appointment.model_validate(data[KEY]) if KEY in data else None
    except ValidationError:
        return None
