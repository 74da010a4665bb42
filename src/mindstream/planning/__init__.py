"""Plans as data: written down before any tool runs, checked, drawn, edited, saved, run again (Xu 2023).

`plan.Plan` and `plan.PlannedStep` are the plan; `arguments.Reference` and `arguments.bind` insert other steps' evidence
into a call; `check.check` finds faults; `formats/` reads planners' texts.
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
        Role("solver", "answers from the evidence"),
        Role("replanner", "revises the plan", ("planner",)),
        Role("judge", "judges answers in an evaluation"),
    ),
    events=_events,
)
