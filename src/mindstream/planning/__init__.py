"""Plans as data: they are written before any tool runs, and can be checked, drawn, edited, saved and run again.

`plan.Plan` and `plan.PlannedStep` are the plan. `plan.Reference` stands for another step's evidence, and `plan.bind`
inserts the evidence into a call. `plan.check` finds faults. `formats/` reads planners' texts.
"""

from collections.abc import Iterable

from mindstream.plugins import Plugin, Role


def _events() -> Iterable[type]:
    from mindstream.planning.journal import EVENTS

    return EVENTS


PLUGIN = Plugin(
    "planning",
    roles=(
        Role("planner", "writes the plan"),
        Role("worker", "answers the steps of a plan that call a model, and tasks that are solved without a plan"),
        Role("solver", "answers the task from the evidence (the results of the plan's steps)"),
        Role("replanner", "revises the plan", ("planner",)),
        Role("judge", "judges answers in an evaluation"),
    ),
    events=_events,
)
