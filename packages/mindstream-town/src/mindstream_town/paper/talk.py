"""A talk with a recall for each line; either speaker may decline, walk on or leave (Park 2023, 4.3.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mindstream.memory.store.record import Record, RecordDraft, normalised
from mindstream.together import together
from mindstream_town.events import Overheard, SpokenLine, Talked
from mindstream_town.paper.plan import rewrite_day
from mindstream_town.paper.prompts import Line, SayNext, SumUpRelation
from mindstream_town.residents.converse import (
    APPOINTMENTS,
    OF_OTHER,
    OF_PEOPLE,
    PROMISE,
    PROMISES,
    TELLABLE,
    TO_TELL,
    can_be_told,
    keep_said,
    passed_on,
    talk_end,
)
from mindstream_town.residents.person import KEY
from mindstream_town.residents.prompt_context import show
from mindstream_town.residents.turn import ResidentTurn
from mindstream_town.world.world import clock

AT_HEART, BY_LINE, AHEAD = 8, 3, 5
"""Maximum numbers: of memories that matter to the speaker; of memories recalled for each line that is heard; of blocks
of the day's plan in the prompt."""
ENOUGH = 2
"""Minimum number of memories about another person for a summary of the relation."""
OFF = ("declines", "walks on", "leaves")


@dataclass
class Speaker:
    """One of the two speakers.

    Attributes:
        situation: the time, and the activities of both speakers.
        minds: the recalled memories, in the order of their numbers in prompts.
        standing: a summary of the relation to the other speaker; "": none.
    """

    turn: ResidentTurn
    other: str
    situation: str
    minds: list[Record] = field(default_factory=list)
    standing: str = ""

    def remember(self, records: Sequence[Record]) -> None:
        """Add the memories that the speaker may mention and that are not in `minds` yet. Earlier memories keep their
        numbers. A memory that has a triple is added only if the subject of the triple is the other speaker."""
        known = {normalised(record.text) for record in self.minds}
        for each in records:
            words = normalised(each.text)
            is_of_other = each.about is None or each.about.subject == self.other
            if words not in known and can_be_told(each) and is_of_other:
                self.minds.append(each)
                known.add(words)


@dataclass
class Talk:
    """A finished talk.

    Attributes:
        lines: the spoken lines. told: memories that were passed on. about: the topic; "": none.
    """

    speakers: tuple[str, str]
    lines: tuple[SpokenLine, ...]
    told: tuple[Record, ...]
    about: str = ""


async def converse(first: ResidentTurn, second: ResidentTurn) -> Talk:
    """Run a talk between two residents and write its events in both turns."""
    situation = f"It is {first.date_and_time}. {first.name} is {first.doing}. {second.name} is {second.doing}."
    one, two = Speaker(first, second.name, situation), Speaker(second, first.name, situation)
    await together(_come_to_mind(one), _come_to_mind(two))
    lines, manner = await _speak(one, two)
    said = tuple(lines)
    passed = {id_ for line in said for id_ in line.told}
    talk = Talk((first.name, second.name), said, tuple(r for each in (one, two) for r in each.minds if r.id in passed))
    until = talk_end(first, said)
    put_off = len({line.by for line in said if line.text}) < 2 or (manner in OFF and len(said) <= 2)
    if put_off:
        await together(*(_keep_refusal(each, said, until, manner) for each in (one, two)))
    else:
        first_about, second_about = await together(_keep(one, two, said, until), _keep(two, one, said, until))
        talk.about = second_about or first_about
    return talk


async def _speak(one: Speaker, two: Speaker) -> tuple[list[SpokenLine], str]:
    """Let both speak in turns until one of them ends the talk, or the maximum of lines is reached.

    `ends` in the first line is ignored, because the other may answer that line. Return the lines, and how the talk
    ended: a `Manner`; "talks" after the maximum of lines.
    """
    lines: list[SpokenLine] = []
    most, manner = one.turn.profile.talk_lines, "talks"
    while len(lines) < most and manner == "talks":
        speaker, hearer = (one, two) if len(lines) % 2 == 0 else (two, one)
        line = await _say(speaker, lines, most - len(lines))
        told = tuple(speaker.minds[n - 1].id for n in dict.fromkeys(line.passes_on) if 0 < n <= len(speaker.minds))
        lines.append(SpokenLine(by=speaker.turn.name, text=line.says.strip(), told=told))
        # a talk does not end with its first line: the other may answer it
        manner = "talks" if line.does == "ends" and len(lines) == 1 else line.does
        if manner == "talks":
            hearer.remember([each.record for each in await hearer.turn.recall(line.says, BY_LINE, kinds=OF_PEOPLE)])
    return [line for line in lines if line.text], manner


async def _come_to_mind(speaker: Speaker) -> None:
    """Recall memories about the other speaker, memories that matter to the speaker and that it may mention,
    promises, and appointments.

    If at least ENOUGH memories name the other speaker (background memories do not count), summarise the relation.
    """
    turn, other = speaker.turn, speaker.other
    of_other = [each.record for each in await turn.recall(other, OF_OTHER, kinds=OF_PEOPLE)]
    found = await turn.recall(turn.at_heart, TO_TELL, kinds=TELLABLE, touch=False)
    at_heart = [each.record for each in found if can_be_told(each.record)][:AT_HEART]
    promised = await turn.recall_about([PROMISE, other], PROMISES)
    dated = [record for record, _ in await turn.recall_appointments()][:APPOINTMENTS]
    speaker.remember([*of_other, *at_heart, *promised, *dated])
    named = [each for each in (*of_other, *promised) if other in each.text]
    memories = tuple(dict.fromkeys(each.text for each in named))
    if sum("background" not in each.data for each in named) >= ENOUGH:
        asked = SumUpRelation(who=turn.name, other=other, relation=turn.relation(other), memories=memories)
        speaker.standing = (await turn.ask(asked)).relation.strip()


async def _say(speaker: Speaker, lines: Sequence[SpokenLine], left: int) -> Line:
    turn = speaker.turn
    shared = turn.state.shared.get(speaker.other, frozenset())
    said = {id_ for line in lines for id_ in line.told}
    minute = turn.minute
    ahead = [each for each in turn.state.blocks if each.end > minute and not (each.asleep or each.fine)]
    return await turn.ask(
        SayNext(
            who=turn.name,
            identity=turn.identity,
            other=speaker.other,
            relation=turn.relation(speaker.other),
            standing=speaker.standing,
            situation=speaker.situation,
            memories=show(speaker.minds),
            told=tuple(n for n, each in enumerate(speaker.minds, 1) if each.id in shared or each.id in said),
            lines=tuple(map(str, lines)),
            left=left,
            last_talk=turn.last_talk(speaker.other),
            plan=tuple(f"{clock(each.start)} {each.what}" for each in ahead[:AHEAD]),
        )
    )


async def _keep_refusal(speaker: Speaker, lines: tuple[SpokenLine, ...], until: int, manner: str) -> None:
    """Remember a talk that did not take place, and how (`manner`); no model is called. `until`: the step at which the
    exchange ends."""
    turn = speaker.turn
    said = "; ".join(map(str, lines))
    text = f"{turn.name} and {speaker.other} did not talk ({manner})" + (f": {said}" if said else "")
    records = await turn.build(
        RecordDraft(text=text[:600], kind="observation", by=turn.name, keywords=(speaker.other.lower(),))
    )
    ids = tuple(record.id for record in records)
    turn.write(
        Talked(step=turn.step, partner=speaker.other, lines=lines, until=until, records=ids, unrated=ids), records
    )


async def _keep(speaker: Speaker, other: Speaker, lines: tuple[SpokenLine, ...], until: int) -> str:
    """Write a talk, which ends at the step `until`, into a speaker's stream; return the topic.

    If something was agreed on, plan the rest of the day again.
    """
    told, known = passed_on(lines, speaker.other, other.minds, speaker.minds)
    about, agreed = await keep_said(speaker.turn, speaker.other, lines, until, told, known, rates=False)
    await rewrite_day(speaker.turn, agreed)
    return about


async def overhear(turn: ResidentTurn, talk: Talk) -> None:
    """Remember a talk of others nearby, without a model call: its topic, and each memory that was passed on.

    A memory that the resident already has is not written again.
    """
    first, second = talk.speakers
    said = talk.about or "; ".join(line.text for line in talk.lines)
    keywords = (first.lower(), second.lower())
    heard = RecordDraft(
        text=f"{turn.name} heard {first} and {second} talk about {said}"[:600],
        kind="observation",
        by=turn.name,
        keywords=keywords,
    )
    news = [
        RecordDraft(
            text=record.text,
            kind="thought",
            by=line.by,
            keywords=(*keywords, KEY) if KEY in record.keywords else keywords,
            importance=record.importance,
            data={**record.data, "told": [record.id]},
        )
        for line in talk.lines
        for record in talk.told
        if record.id in line.told
    ]
    await turn.resident.written()
    same = await turn.resident.memory.find_same("thought", [each.text for each in news])
    fresh = {normalised(each.text): each for each in news if normalised(each.text) not in same}
    (gist,) = await turn.build(heard)
    told = await turn.build(*fresh.values())
    records = (gist, *told)
    turn.write(Overheard(step=turn.step, speakers=talk.speakers, records=tuple(each.id for each in records)), records)
