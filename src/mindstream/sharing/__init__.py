"""Memory sharing (Gao 2024): pools of exemplars that several minds write and recall from."""

from collections.abc import Iterable

from mindstream.plugins import Plugin, Role


def _events() -> Iterable[type]:
    from mindstream.sharing.events import EVENTS

    return EVENTS


PLUGIN = Plugin(
    "sharing",
    roles=(
        Role("scorer", "grades the question-answer pairs that agents offer to a pool", ("reasoner",)),
        Role("labeller", "estimates which exemplars of a pool make a right answer more likely", ("scorer", "reasoner")),
    ),
    events=_events,
)
