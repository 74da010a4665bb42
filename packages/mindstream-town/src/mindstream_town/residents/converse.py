"""Two residents talk: line by line from what each remembers, and each keeps what it was about (Park 2023, 4.3.2)."""

from __future__ import annotations

from collections.abc import Sequence

from mindstream.memory.lifecycle.importance import RateImportance
from mindstream.memory.store.record import Kind, Record, RecordDraft, normalised
from mindstream.reasoners.reflect.reflect import OWN
from mindstream_town.compat import talk_end
from mindstream_town.events import SpokenLine, Talked
from mindstream_town.prompts.conduct import TakeFromTalk, Utter
from mindstream_town.residents.keep_talk import PROMISE, keep, meeting_places
from mindstream_town.residents.person import appointment_of
from mindstream_town.residents.places import words_of
from mindstream_town.residents.plan import take_up
from mindstream_town.residents.shown import show
from mindstream_town.residents.turn import ResidentTurn

OF_OTHER, TO_TELL, PROMISES, APPOINTMENTS = 6, 24, 4, 6
TELLABLE: tuple[Kind, ...] = ("note", "thought")
"""What is told: not what everybody can see, nor the lines of earlier talks, of which what matters was kept."""
OF_PEOPLE: tuple[Kind, ...] = (*TELLABLE, "observation")


async def converse(first: ResidentTurn, second: ResidentTurn) -> None:
    """Let two talk; what is said and kept is written in both turns."""
    lines: list[SpokenLine] = []
    most = first.profile.talk_lines
    minds = {turn.name: await come_to_mind(turn, other) for turn, other in ((first, second), (second, first))}
    while len(lines) < most:
        speaker, other = (first, second) if len(lines) % 2 == 0 else (second, first)
        line, ends = await say_line(speaker, other, minds[speaker.name], lines, most - len(lines))
        lines.append(line)
        if ends and len(lines) > 1:
            break
    until = talk_end(first.setting, first.step, [(line.by, line.text) for line in lines])
    for one, other in ((first, second), (second, first)):
        passed = {id_ for line in lines for id_ in line.told if line.by == other.name}
        told = [record for record in minds[other.name] if record.id in passed]
        texts = {normalised(record.text) for record in told}
        known = tuple(record.id for record in minds[one.name] if normalised(record.text) in texts)
        await keep_said(one, other, tuple(lines), until, told, known)


async def come_to_mind(speaker: ResidentTurn, other: ResidentTurn) -> list[Record]:
    """Return what a speaker remembers of the other, what its own days bring up, what it has promised, and what takes
    place."""
    found = [
        *await speaker.recall(other.name, OF_OTHER, kinds=OF_PEOPLE),
        *await speaker.recall(speaker.at_heart, TO_TELL, kinds=TELLABLE),
    ]
    dated = [record for record, _ in await speaker.recall_appointments()][:APPOINTMENTS]
    records = [*(each.record for each in found), *await speaker.recall_about([PROMISE], PROMISES), *dated]
    return list({record.id: record for record in records if can_be_told(record)}.values())


def can_be_told(record: Record) -> bool:
    """Tell whether a memory is for others: no secret, not who one is, what one thinks of oneself, or a plan."""
    return not {"background", "secret", OWN} & record.data.keys() and "plan" not in record.keywords


async def say_line(
    speaker: ResidentTurn, other: ResidentTurn, memories: Sequence[Record], lines: Sequence[SpokenLine], left: int
) -> tuple[SpokenLine, bool]:
    shared = speaker.state.shared.get(other.name, frozenset())
    said = {id_ for line in lines for id_ in line.told}
    reply = await speaker.ask(
        Utter(
            who=speaker.name,
            identity=speaker.identity,
            other=other.name,
            relation=speaker.relation(other.name),
            situation=f"It is {speaker.date_and_time}. {speaker.name} is {speaker.doing}.",
            memories=show(memories),
            told=tuple(n for n, record in enumerate(memories, 1) if record.id in shared or record.id in said),
            lines=tuple(f"{line.by}: {line.text}" for line in lines),
            left=left,
            last_talk=speaker.last_talk(other.name),
            day=speaker.state.broad,
        )
    )
    told = tuple(memories[n - 1].id for n in dict.fromkeys(reply.passes_on) if 0 < n <= len(memories))
    return SpokenLine(by=speaker.name, text=reply.text.strip(), told=told), reply.ends


def is_busy(turn: ResidentTurn, record: Record) -> bool:
    """Tell whether somebody has a duty at the hours of what a record tells of."""
    at = appointment_of(record.data)
    return at is not None and turn.person.is_on_duty(at)


async def keep_said(
    one: ResidentTurn,
    other: ResidentTurn,
    lines: tuple[SpokenLine, ...],
    until: int,
    told: Sequence[Record],
    known: tuple[str, ...],
) -> None:
    """Write what was said into one's stream, what was learned by it, and what it means for one's plans.

    Args:
        told: the other's memories that it has passed on.
        known: ids of what one remembers and has just been told: the other knows it, too.
    """
    said = tuple(f"{line.by}: {line.text}" for line in lines)
    places = meeting_places(one, other.name)
    taken = await one.ask(
        TakeFromTalk(
            who=one.name,
            other=other.name,
            date=one.date,
            lines=said,
            identity=one.identity,
            told=show(told),
            places=tuple(map(words_of, places)),
            day=one.state.broad,
            busy=tuple(number for number, record in enumerate(told, 1) if is_busy(one, record)),
        )
    )
    about = f"{one.name} talked with {other.name} about {taken.about}"
    rated = await one.ask(RateImportance(who=one.name, memories=(about,)))
    importance, keywords = float(rated.ratings[0]), (other.name.lower(),)
    episode = f"talk {one.step} {min(one.name, other.name)}"
    spoken = await one.build(
        *(
            RecordDraft(
                text=line.text,
                kind="chat",
                by=line.by,
                episode=episode,
                importance=importance,
                keywords=keywords,
                data={"to": other.name if line.by == one.name else one.name, "told": list(line.told)},
            )
            for line in lines
        )
    )
    evidence = tuple(each.id for each in spoken)
    kept = keep(one, other.name, taken, told, places, [at for _, at in await one.recall_appointments()])
    await one.resident.written()
    same = await one.resident.memory.find_same("thought", [each.text for each in kept])
    learned = {normalised(each.text): each.as_thought(one, other.name, evidence) for each in reversed(kept)}
    met = RecordDraft(
        text=about, kind="observation", by=one.name, importance=importance, evidence=evidence, keywords=keywords
    )
    thoughts = (learned[words] for words in reversed(learned) if words not in same)
    records = (*spoken, *await one.build(met, *thoughts))
    event = Talked(
        step=one.step,
        partner=other.name,
        lines=lines,
        until=until,
        records=tuple(record.id for record in records),
        known=tuple(dict.fromkeys((*known, *(record.id for record in same.values())))),
        gathered=importance,
    )
    one.write(event, records)
    for each in kept:
        if each.appointment and each.comes:
            take_up(one, each.appointment, each.text)
