"""Which step a saved simulation is at and how long a step is, where its own files do not agree on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from mindstream.town.formats.saves import Save
from mindstream.town.formats.typed import DATE, parse_clock


def settle_clock(save: Save, tell: Callable[[str], None]) -> Save:
    """Return a save whose step and length of a step fit the times in it; what the meta file had else is told.

    Residents keep the time of their last step: where that is another length before the save's own time, and the steps
    of the meta file do not fill the time since its first day began, the residents are believed.
    """
    meta = save.meta
    now = parse_clock(meta.curr_time)
    lived = (now - datetime.strptime(meta.start_date, DATE)).total_seconds()
    last = {persona.scratch.curr_time for persona in save.personas.values()} - {None}
    if len(last) != 1 or meta.step * meta.sec_per_step == lived:
        return save
    step_s = int((now - parse_clock(str(last.pop()))) / timedelta(seconds=1))
    if step_s == meta.sec_per_step or step_s < 1 or lived <= 0 or lived % step_s:
        return save
    step = int(lived) // step_s
    tell(
        f"meta.json: step {meta.step} and {meta.sec_per_step} seconds a step do not fit its times: "
        f"taken for step {step} and {step_s} seconds"
    )
    return replace(save, meta=replace(meta, step=step, sec_per_step=step_s))
