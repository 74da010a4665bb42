"""A life without an end (`--forever`): where nothing can be done, M2 looks for work at its beats, or rests.

One call a look. What is found goes into the ledger; where nothing is, the next beat costs nothing.
"""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo

from mindstream.clock import format_spoken
from mindstream.errors import InputError, ReplyInvalid
from mindstream.life.events import Proposed
from mindstream.life.ledger import Task
from mindstream.life.prompts.propose_work import MOST, ProposeWork, WorkFound
from mindstream.life.steps import Steps
from mindstream.life.tools.memory_tools import MARK
from mindstream.memory.store.record import is_tainted
from mindstream.models.fence import cut
from mindstream.models.model import Model, Request
from mindstream.text.times import read_moment

REMEMBERED, RESULT, LINE = 10, 300, 600
"""So many memories are looked at; so much of a result, and of a memory, in characters."""


async def look_for_work(steps: Steps, model: Model, zone: tzinfo) -> None:
    """Have M2 propose work, and put it into the ledger.

    Raises:
        BudgetSpent: nothing is left for it today.
        Halted: a person paused or stopped this life.
    """
    state, now = steps.state, steps.memory.clock.now()
    ask = await _question(steps, zone)
    id_ = f"look-{state.turn}-{state.looked:.0f}"
    replied = await steps.reply(id_, "M2", model, Request(ask, "M2"))
    try:
        if replied.error:
            raise ReplyInvalid(replied.error)
        work = ask.parse(replied.text)
    except ReplyInvalid as error:
        work = WorkFound(because=str(error))
    for known in (state.asked, state.replies):
        known.pop(id_, None)
    found = [text for text in work.tasks[:MOST] if not _is_known(steps, text)]
    until = read_moment(work.until, now, zone) if work.until and not found else None
    steps.note(Proposed(tasks=tuple(found), because=cut(work.because, LINE), until=until))
    for text in found:
        steps.note(state.ledger.add(text))
    await steps.flush()


def _is_known(steps: Steps, text: str) -> bool:
    """Tell whether a task says nothing, or what stands in the ledger already, done or not."""
    try:
        added = steps.state.ledger.add(text)
    except InputError:
        return True
    return any(task.text == added.text for task in steps.state.ledger.tasks.values())


async def _question(steps: Steps, zone: tzinfo) -> ProposeWork:
    """Gather what M2 looks at; words of strangers give it no tasks."""
    state, now = steps.state, steps.memory.clock.now()
    recalled = await steps.memory.recall(
        state.goal, REMEMBERED, kinds=("note", "dream"), where=MARK, touch=False, rerank=False
    )
    tasks = state.ledger.ordered()
    return ProposeWork(
        goal=state.goal,
        orders=state.orders,
        language=state.language,
        now=format_spoken(now, zone),
        earlier=tuple(fold.text for fold in state.folds[-1:] if not fold.tainted),
        memories=tuple(
            _day(each.record.created) + cut(each.record.text, LINE) for each in recalled if not is_tainted(each.record)
        ),
        over=tuple(map(_over, (task for task in tasks if task.standing in ("done", "stopped")))),
        waiting=tuple(state.ledger.lines(now, zone)),
        room=steps.budget.room_today(state.spent, now),
    )


def _over(task: Task) -> str:
    ended = "done" if task.standing == "done" else "given up"
    return f"{task.text} ({ended})" + (f": {cut(' '.join(task.result.split()), RESULT)}" if task.result else "")


def _day(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d: ")
