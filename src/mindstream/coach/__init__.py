"""Talker-Reasoner: a coach as the responder of a mind (Christakopoulou 2024)."""

from collections.abc import Iterable

from mindstream.plugins import Plugin, Role


def _events() -> Iterable[type]:
    from mindstream.coach.events import EVENTS

    return EVENTS


PLUGIN = Plugin(
    "coach",
    roles=(
        Role("talker", "answers at once"),
        Role("reasoner", "infers what the user believes and wants, and plans"),
        Role("safety", "listens for danger", ("facts", "reasoner")),
    ),
    events=_events,
)
