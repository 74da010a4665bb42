"""The rooms beside the ground: each says in its package what the ground has to know of it; the program puts them here.

    register(Room("garden", roles=(Role("gardener", "says what to plant"),), events=load_events))

Nothing of a room is loaded by that: `events` is called when a log is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Role:
    """Who may be given a model of its own.

    Attributes:
        does: what its model is asked for, in a few words.
        otherwise: whose model answers where it has none of its own, the first of them that has; else the default's.
    """

    name: str
    does: str
    otherwise: tuple[str, ...] = ()


def _no_events() -> Iterable[type]:
    return ()


@dataclass(frozen=True, slots=True)
class Room:
    """What the ground knows of a room.

    Attributes:
        roles: who thinks in it; several rooms may name the same.
        events: imports and returns the classes of its events (see log/events).
    """

    name: str
    roles: tuple[Role, ...] = ()
    events: Callable[[], Iterable[type]] = _no_events


GROUND = Room(
    "",
    (
        Role("talker", "answers at once"),
        Role("reasoner", "thinks behind"),
        Role("facts", "notes what was said", ("reasoner",)),
        Role("worker", "answers where a tool asks a model"),
        Role("importance", "rates how much a memory matters"),
        Role("reader", "answers questions from memory, in an evaluation"),
        Role("judge", "says which answer is right, or more believable, in an evaluation"),
        Role("reranker", "puts into order what recall found", ("reasoner",)),
    ),
)
_rooms = {GROUND.name: GROUND}
_roles = {role.name: role for role in GROUND.roles}


def register(*rooms: Room) -> None:
    """Let rooms be known.

    Raises:
        ValueError: another room is called so already.
    """
    for room in rooms:
        if _rooms.setdefault(room.name, room) is not room:
            raise ValueError(f"there are two rooms called {room.name!r}")
        for role in room.roles:
            _roles.setdefault(role.name, role)


def registered() -> tuple[Room, ...]:
    """Return the rooms, the ground first."""
    return tuple(_rooms.values())


def roles() -> dict[str, Role]:
    """Return the roles of all rooms; of one that several name, what was said first."""
    return dict(_roles)


def stand_by(role: str) -> tuple[str, ...]:
    """Return a role, then the roles whose models answer for it when it has none of its own."""
    known = _roles.get(role)
    return (role, *known.otherwise) if known is not None else (role,)
