"""What a run is given to think about: the utterances that its work stands for, and the talk around them."""

from __future__ import annotations

from collections.abc import Sequence

from mindstream.log.events import Heard, Waiting
from mindstream.log.work import Work
from mindstream.memory.record import Record
from mindstream.memory.stream import Stream
from mindstream.reasoners.reasoner import Newer, Occasion, Utterance
from mindstream.tools.tool import Tool

REMEMBERED = 40
"""How many records of the talk a reasoner is shown."""


def occasion_of(
    stream: Stream, slot: str, utterances: Sequence[Utterance], newer: Newer, tools: Sequence[Tool] = ()
) -> Occasion:
    """Gather the talk before these utterances, the Talker's reply to the newest, and whether it waits instead."""
    if not utterances:
        return Occasion(slot, stream, utterances, stream.latest("chat", REMEMBERED), newer=newer, tools=tools)
    newest, own = utterances[-1], {utterance.record for utterance in utterances}
    talk = stream.latest("chat", REMEMBERED, episode=newest.session)
    before: list[Record] = [record for record in talk if record.id not in own and record.seq < newest.seq]
    reply = "\n".join(r.text for r in talk if r.seq > newest.seq and not r.data.get("by_user"))
    waiting = stream.store.events(stream.name, after=newest.seq, kinds=["waiting"], limit=20)
    waits = any(isinstance(row.event, Waiting) and row.event.answers == newest.seq for row in waiting)
    return Occasion(slot, stream, utterances, before, reply, waits and not reply, newer, tools)


def utterances_of(stream: Stream, work: Sequence[Work]) -> list[Utterance]:
    """Read what was heard from the log; what was erased meanwhile is left out."""
    utterances = []
    for each in work:
        for logged in stream.store.events(stream.name, after=each.cause - 1, kinds=["heard"], limit=1):
            if logged.seq == each.cause and isinstance(logged.event, Heard):
                heard = logged.event
                utterances.append(Utterance(logged.seq, heard.text, heard.record, heard.session, logged.at))
    return utterances
