"""M0, M1, M2: a goal pursued for long, by a mind that sleeps (docs/life.md)."""

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
