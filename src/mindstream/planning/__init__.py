"""Plans as data: written down before any tool runs, checked, drawn, edited, saved, run again (Xu 2023).

`plan.Plan` and `plan.PlannedStep` are the plan; `arguments.Reference` and `arguments.bind` say how a step is called
with what another one found; `check.check` finds what would go wrong; `formats/` reads what planners write.
"""

from collections.abc import Iterable

from mindstream.plugins import Plugin, Role


def _events() -> Iterable[type]:
    from mindstream.planning.events import EVENTS

    return EVENTS


PLUGIN = Plugin(
    "planning",
    roles=(
        Role("planner", "writes the plan"),
        Role("worker", "answers where a step asks a model"),
        Role("solver", "answers from what the steps found"),
        Role("replanner", "mends the plan", ("planner",)),
        Role("judge", "says whether an answer is right, in an evaluation"),
    ),
    events=_events,
)
