"""A talk with somebody as whom a person lives: line by line, a step each, since nobody knows what the person will say.

Each line is written when it is said. When the talk is over, all of it is kept by both as any talk is.
"""

from __future__ import annotations

from mindstream.memory.store.record import Record, RecordDraft, normalised
from mindstream_town.events import Declined, Overheard, Spoke, SpokenLine
from mindstream_town.paper.prompts import ShouldAnswer
from mindstream_town.residents.converse import OF_OTHER, OF_PEOPLE, come_to_mind, keep_said, say_line
from mindstream_town.residents.turn import ResidentTurn

PATIENCE = 3
"""So many minutes somebody waits for what the other will say."""
LONGEST = 60
"""So many lines a talk has at most."""
IMPORTANCE = 3.0


async def speak(turn: ResidentTurn, other: ResidentTurn, text: str) -> None:
    """Let a person say something to somebody, who answers, or does not."""
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
    """Let a person say something to somebody who is not there any more, or sleeps."""
    if turn.state.talk:
        _say(turn, other, SpokenLine(by=turn.name, text=text))
        return
    await _decline(turn, other, (SpokenLine(by=turn.name, text=text),), by=other.name, heard=False)


async def hear(turn: ResidentTurn, speaker: str, to: str, text: str) -> None:
    """Let somebody who is near remember what a person said to all; another one answers."""
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
    """Let somebody begin to speak with one as whom a person lives."""
    said, _ = await say_line(turn, other, await come_to_mind(turn, other), (), turn.profile.talk_lines)
    _write(turn, other, said)


async def end_talk(turn: ResidentTurn, other: ResidentTurn) -> None:
    """Let a talk be over: both keep what was said, or that one of them said nothing."""
    lines = turn.state.talk or other.state.talk
    silent = [each.name for each in (turn, other) if all(line.by != each.name for line in lines)]
    if silent:
        await _decline(turn, other, lines, by=silent[0])
        return
    for one, its in ((turn, other), (other, turn)):
        passed = [id_ for line in lines for id_ in line.told if line.by == its.name]
        told = await _records(its, passed)
        texts = {normalised(each.text) for each in told}
        mine = await one.recall(its.name, OF_OTHER, kinds=OF_PEOPLE, touch=False)
        known = tuple(each.record.id for each in mine if normalised(each.record.text) in texts)
        await keep_said(one, its, lines, one.step, told, known)


def _write(turn: ResidentTurn, other: ResidentTurn, line: SpokenLine) -> None:
    _say(turn, other, line)
    _say(other, turn, line)


def _say(turn: ResidentTurn, other: ResidentTurn, line: SpokenLine) -> None:
    until = turn.step + PATIENCE * turn.profile.a_minute + 1
    turn.write(Spoke(step=turn.step, partner=other.name, line=line, until=until))


async def _answers(turn: ResidentTurn, other: ResidentTurn, text: str) -> bool:
    """Decide whether somebody answers who is spoken to; a person says so itself."""
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
    """Write that somebody was spoken to and did not answer, and what was said; both remember it, if both heard it."""
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


async def _records(turn: ResidentTurn, ids: list[str]) -> list[Record]:
    await turn.resident.written()
    memory = turn.resident.memory
    return await memory.store.records(memory.key, list(dict.fromkeys(ids)))
