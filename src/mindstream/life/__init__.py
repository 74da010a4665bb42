"""Lives: a long-running goal pursued by three roles: M2 orchestrates, M1 does tasks, M0 thinks (docs/life.md)."""

from collections.abc import Iterable

from mindstream.plugins import Plugin, Role


def _events() -> Iterable[type]:
    from mindstream.life.events import EVENTS

    return EVENTS


PLUGIN = Plugin(
    "life",
    roles=(
        Role("M2", "pursues the goal, turn by turn", ("reasoner",)),
        Role("M1", "does a task", ("reasoner",)),
        Role("M0", "thinks deeply", ("reasoner",)),
    ),
    events=_events,
)
