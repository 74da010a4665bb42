"""Tasks of some minutes without a model."""

from __future__ import annotations

from mindstream.models.prompt import rule
from mindstream.town.prompts.break_down import BreakDown, Task, Tasks
from mindstream.town.rules.things import thing_for


@rule(BreakDown)
def break_down_evenly(ask: BreakDown) -> Tasks:
    """Do it in stretches of a quarter of an hour, at the thing that fits."""
    things = list(ask.around)
    fits = thing_for(ask.what, things)
    place = things.index(fits) + 1 if fits else 0
    if ask.because:
        return Tasks(tasks=[Task(minutes=min(15, ask.minutes), what=f"seeing to it that {ask.because[:100]}")])
    count = max(1, ask.minutes // 15)
    return Tasks(tasks=[Task(minutes=max(1, ask.minutes // count), what=ask.what, place=place) for _ in range(count)])
