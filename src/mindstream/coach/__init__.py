"""A coach as the responder of a mind: a fast talker and a slow reasoner (Christakopoulou 2024)."""

from collections.abc import Iterable

from mindstream.plugins import Plugin, Role


def _events() -> Iterable[type]:
    from mindstream.coach.events import EVENTS

    return EVENTS


PLUGIN = Plugin(
    "coach",
    roles=(
        Role("talker", "answers the user at once"),
        Role("reasoner", "infers what the user believes and wants, and plans"),
        Role("safety", "detects danger to life in the user's messages", ("facts", "reasoner")),
    ),
    events=_events,
)
