"""What a run is given to think about: what happened that woke it, and, where that is talk, the talk around it."""

from __future__ import annotations

from collections.abc import Sequence

from mindstream.log.events import Heard, Logged, Waiting
from mindstream.log.work import Work
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import Record
from mindstream.reasoners.reasoner import Newer, RunContext, Utterance
from mindstream.tools.tool import Tool

REMEMBERED = 40
"""How many records of the talk a reasoner is shown."""


async def build_context(
    stream: Memory, slot: str, rows: Sequence[Logged], newer: Newer, tools: Sequence[Tool] = ()
) -> RunContext:
    """Gather what a run may look at.

    Of utterances: the talk before them, the Talker's reply to the newest, and whether it waits instead.
    """
    utterances = utterances_in(rows)

    async def taking() -> Sequence[Utterance]:
        """Take what comes while the run goes on into what it is about."""
        fresh = await newer()
        utterances.extend(fresh)
        return fresh

    if not utterances:
        talk = await stream.latest("chat", REMEMBERED)
        return RunContext(slot, stream, utterances, talk, newer=taking, tools=tools, events=rows)
    newest, own = utterances[-1], {utterance.record for utterance in utterances}
    talk = await stream.latest("chat", REMEMBERED, episode=newest.session)
    before: list[Record] = [record for record in talk if record.id not in own and record.seq < newest.seq]
    reply = "\n".join(r.text for r in talk if r.seq > newest.seq and not r.data.get("by_user"))
    waiting = await stream.store.events(stream.key, after=newest.seq, kinds=["waiting"], limit=20)
    waits = any(isinstance(row.event, Waiting) and row.event.answers == newest.seq for row in waiting)
    return RunContext(slot, stream, utterances, before, reply, waits and not reply, taking, tools, rows)


async def rows_of(stream: Memory, work: Sequence[Work]) -> list[Logged]:
    """Read from the log what work was caused by; what was erased meanwhile is left out."""
    causes = [each.cause for each in work if each.cause > 0]
    found = [await stream.store.events(stream.key, after=cause - 1, limit=1) for cause in causes]
    return [row for rows, cause in zip(found, causes, strict=True) for row in rows if row.seq == cause]


def utterances_in(rows: Sequence[Logged]) -> list[Utterance]:
    """Return what was said, of all that happened."""
    return [
        Utterance(row.seq, row.event.text, row.event.record, row.event.session, row.at)
        for row in rows
        if isinstance(row.event, Heard)
    ]
