"""Memory sharing (Gao 2024): pools of exemplars that several minds write and recall from."""

from collections.abc import Iterable

from mindstream.rooms import Role, Room


def _events() -> Iterable[type]:
    from mindstream.sharing.events import EVENTS

    return EVENTS


ROOM = Room(
    "sharing",
    roles=(
        Role("scorer", "grades what is offered to a pool", ("reasoner",)),
        Role("labeller", "says which exemplars make a right answer likely", ("scorer", "reasoner")),
    ),
    events=_events,
)
