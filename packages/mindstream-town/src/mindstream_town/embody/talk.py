"""A talk with a user, one exchange per step, because the user's words are not known in advance.

Each line is written at once. When the talk is over, both partners remember the whole talk, as after any other talk.
"""

from __future__ import annotations

from mindstream.memory.store.record import RecordDraft
from mindstream_town.events import Declined, Overheard, Spoke, SpokenLine
from mindstream_town.paper.prompts import ShouldAnswer
from mindstream_town.residents.converse import OF_OTHER, OF_PEOPLE, come_to_mind, keep_said, passed_on, say_line
from mindstream_town.residents.plan import take_up
from mindstream_town.residents.turn import ResidentTurn

PATIENCE = 3
"""Minutes that a resident waits for the user's answer."""
LONGEST = 60
"""Maximum lines of a talk with a user."""
IMPORTANCE = 3.0


async def speak(turn: ResidentTurn, other: ResidentTurn, text: str) -> None:
    """Let a user say something to a resident; the resident may answer in the same step, or decline."""
    line = SpokenLine(by=turn.name, text=text)
    goes_on = turn.state.partner == other.name and other.state.partner == turn.name and bool(turn.state.talk)
    if not goes_on and not await _answers(other, turn, text):
        await _decline(turn, other, (line,), by=other.name)
        return
    _write(turn, other, line)
    if other.state.embodied:
        return
    lines = turn.state.talk
    said, ends = await say_line(other, turn, await come_to_mind(other, turn), lines, max(1, LONGEST - len(lines)))
    _write(turn, other, said)
    if ends or len(turn.state.talk) >= LONGEST:
        await end_talk(turn, other)


async def speak_unheard(turn: ResidentTurn, other: ResidentTurn, text: str) -> None:
    """Let a user say something to a resident who does not hear it, because it is not in sight any more."""
    if turn.state.talk:
        _say(turn, other, SpokenLine(by=turn.name, text=text))
        return
    await _decline(turn, other, (SpokenLine(by=turn.name, text=text),), by=other.name, heard=False)


async def hear(turn: ResidentTurn, speaker: str, to: str, text: str) -> None:
    """Let a resident remember what a user said to another resident and to all in sight."""
    (record,) = await turn.build(
        RecordDraft(
            text=f"{turn.name} heard {speaker} say: {text}",
            kind="thought",
            by=turn.name,
            importance=IMPORTANCE,
            keywords=(speaker.lower(),),
        )
    )
    heard = Overheard(step=turn.step, speakers=(speaker, to), records=(record.id,), said=text, gathered=IMPORTANCE)
    turn.write(heard, (record,))


async def approach(turn: ResidentTurn, other: ResidentTurn) -> None:
    """Let a resident start a talk with a user by saying the first line."""
    said, _ = await say_line(turn, other, await come_to_mind(turn, other), (), turn.profile.talk_lines)
    _write(turn, other, said)


async def end_talk(turn: ResidentTurn, other: ResidentTurn) -> None:
    """End a talk: both remember its lines, or that one of them did not answer."""
    lines = turn.state.talk or other.state.talk
    silent = [each.name for each in (turn, other) if all(line.by != each.name for line in lines)]
    if silent:
        await _decline(turn, other, lines, by=silent[0])
        return
    for one, its in ((turn, other), (other, turn)):
        await its.resident.written()
        memory = its.resident.memory
        theirs = await memory.records(
            list(dict.fromkeys(id_ for line in lines for id_ in line.told if line.by == its.name))
        )
        mine = await one.recall(its.name, OF_OTHER, kinds=OF_PEOPLE, touch=False)
        told, known = passed_on(lines, its.name, theirs, [each.record for each in mine])
        _, agreed = await keep_said(one, its.name, lines, one.step, told, known)
        for each in agreed:
            take_up(one, each.appointment, each.text)


def _write(turn: ResidentTurn, other: ResidentTurn, line: SpokenLine) -> None:
    _say(turn, other, line)
    _say(other, turn, line)


def _say(turn: ResidentTurn, other: ResidentTurn, line: SpokenLine) -> None:
    until = turn.step + PATIENCE * turn.profile.a_minute + 1
    turn.write(Spoke(step=turn.step, partner=other.name, line=line, until=until))


async def _answers(turn: ResidentTurn, other: ResidentTurn, text: str) -> bool:
    """Return whether a resident wants to answer: never while it sleeps, talks or has no act, nor in a town without
    talks; else always if a user controls it, and as the model decides otherwise."""
    act = turn.state.act
    if turn.state.asleep or act is None or turn.state.is_talking(turn.step) or not turn.profile.talks:
        return False
    if turn.state.embodied:
        return True
    recalled = await turn.recall(other.name, OF_OTHER, kinds=OF_PEOPLE, touch=False)
    question = ShouldAnswer(
        who=turn.name,
        identity=turn.identity,
        doing=turn.doing,
        busy=act.why == "react",
        other=other.name,
        said=text,
        when=turn.date_and_time,
        relation=turn.relation(other.name),
        memories=turn.beyond_identity(each.record for each in recalled),
        last_talk=turn.last_talk(other.name),
    )
    return await turn.decide(f"to answer {other.name}", question, recalled)


async def _decline(
    turn: ResidentTurn, other: ResidentTurn, lines: tuple[SpokenLine, ...], *, by: str, heard: bool = True
) -> None:
    """Record that a resident did not answer. The silent resident remembers it only if it heard the words."""
    for one, its in ((turn, other), (other, turn))[: 1 + heard]:
        silent, speaker = (one, its) if one.name == by else (its, one)
        drafts = [
            RecordDraft(
                text=line.text,
                kind="chat",
                by=line.by,
                episode=f"talk {one.step} {min(one.name, its.name)}",
                importance=IMPORTANCE,
                keywords=(its.name.lower(),),
                data={"to": silent.name},
            )
            for line in lines
        ]
        spoken = await one.build(*drafts)
        text = f"{speaker.name} spoke to {silent.name}, and {silent.name} did not answer"
        met = RecordDraft(
            text=text,
            kind="observation",
            by=one.name,
            importance=IMPORTANCE,
            evidence=tuple(each.id for each in spoken),
            keywords=(its.name.lower(),),
        )
        records = (*spoken, *await one.build(met))
        ids = tuple(each.id for each in records)
        one.write(
            Declined(step=one.step, partner=its.name, by=by, lines=lines, records=ids, gathered=IMPORTANCE), records
        )
