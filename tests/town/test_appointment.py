"""An appointment travels in the data of a record."""

from __future__ import annotations

from datetime import datetime

from mindstream.town.appointment import Appointment, appointment_of


def test_an_appointment_comes_back_from_a_records_data() -> None:
    lunch = Appointment(what="having lunch", place="v:Inn:hall", start=datetime(2024, 5, 1, 12), end=datetime(2024, 5, 1, 13), who=("Ada",))  # fmt: skip  # noqa: E501
    assert appointment_of(lunch.as_data()) == lunch
    assert appointment_of({}) is None
    assert appointment_of({"appointment": {"what": "lunch", "start": "noon"}}) is None
