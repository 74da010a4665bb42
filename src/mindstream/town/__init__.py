"""The town: residents who perceive, remember, plan, react, talk and reflect (Park 2023), and the world they live in."""

from collections.abc import Iterable

from mindstream.rooms import Role, Room


def _events() -> Iterable[type]:
    from mindstream.town.events import EVENTS

    return EVENTS


ROOM = Room(
    "town",
    roles=(
        Role("planner", "plans a resident's day"),
        Role("decider", "decides whether to act on what was seen"),
        Role("talker", "says what residents say"),
        Role("reasoner", "reflects"),
        Role("importance", "rates how much a memory matters"),
        Role("judge", "says whose answer is more believable, in an evaluation"),
    ),
    events=_events,
)
