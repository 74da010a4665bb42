"""Talks as chat pages keep them: a companion that remembers, branches of a talk, side tasks of pages."""

from collections.abc import Iterable

from mindstream.rooms import Role, Room


def _events() -> Iterable[type]:
    from mindstream.service.chat.events import EVENTS

    return EVENTS


ROOM = Room(
    "pages",
    roles=(Role("pages", "does what chat pages want beside the talk: titles, tags", ("facts",)),),
    events=_events,
)
