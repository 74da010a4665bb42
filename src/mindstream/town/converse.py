"""Two residents talk: line by line from what each remembers, and each keeps what it was about (Park 2023, 4.3.2)."""

from __future__ import annotations

import math

from mindstream.memory.rate_importance import RateImportance
from mindstream.memory.record import New, Record
from mindstream.town.events import Line, Talked
from mindstream.town.prompts.take_from_talk import TakeFromTalk
from mindstream.town.prompts.utter import Utter
from mindstream.town.turn import Turn

OF_OTHER, TO_TELL = 10, 15
LETTERS_A_MINUTE = 240
MEMO_IMPORTANCE = 5.0


async def converse(first: Turn, second: Turn) -> None:
    """Let two talk; what is said and kept is written in both turns."""
    if first.name == second.name:
        raise ValueError(f"{first.name} cannot talk to itself")
    lines: list[Line] = []
    most = first.profile.talk_lines
    while len(lines) < most:
        speaker, other = (first, second) if len(lines) % 2 == 0 else (second, first)
        line, ends = await _say(speaker, other, lines, most - len(lines))
        lines.append(line)
        if ends:
            break
    letters = sum(len(line.text) for line in lines)
    until = first.step + math.ceil(letters / LETTERS_A_MINUTE) * first.profile.a_minute
    for one, other in ((first, second), (second, first)):
        await _keep(one, other, tuple(lines), until)


async def _say(speaker: Turn, other: Turn, lines: list[Line], left: int) -> tuple[Line, bool]:
    memories = await _come_to_mind(speaker, other, lines)
    act = speaker.state.act
    relation = next((each.what for each in speaker.person.relations if each.name == other.name), "")
    when = speaker.setting.when(speaker.step)
    reply = await speaker.ask(
        Utter(
            who=speaker.name, identity=speaker.person.identity(speaker.state.currently), other=other.name,
            relation=relation, situation=f"It is {when:%A, %B} {when.day}, {when:%H:%M}. {speaker.name} is "
            f"{act.what if act else 'there'}.",
            memories=tuple(record.text for record in memories), told=_told(memories, other.name),
            lines=tuple(f"{line.by}: {line.text}" for line in lines), left=left,
        )
    )  # fmt: skip
    told = tuple(memories[n - 1].id for n in reply.passes_on if 0 < n <= len(memories))
    return Line(by=speaker.name, text=reply.text.strip(), told=told), reply.ends


async def _come_to_mind(speaker: Turn, other: Turn, lines: list[Line]) -> list[Record]:
    """Return what a speaker remembers of the other, and what the last words and its own days bring up."""
    asked = f"{other.name} {lines[-1].text}" if lines else f"What matters to {speaker.name} these days"
    found = [*await speaker.recall(other.name, OF_OTHER), *await speaker.recall(asked, TO_TELL)]
    return list({each.record.id: each.record for each in found}.values())


def _told(memories: list[Record], other: str) -> tuple[int, ...]:
    """Return the numbers of what the other was told, or told itself."""
    return tuple(n for n, record in enumerate(memories, 1) if other in (record.data.get("told_to"), record.by))


async def _keep(one: Turn, other: Turn, lines: tuple[Line, ...], until: int) -> None:
    """Write what was said into one's stream, what it was about, and what it means for one's plans."""
    said = tuple(f"{line.by}: {line.text}" for line in lines)
    when = one.setting.when(one.step)
    taken = await one.ask(
        TakeFromTalk(who=one.name, other=other.name, date=f"{when:%A %B} {when.day}, {when.year}", lines=said)
    )
    rated = await one.ask(RateImportance(who=one.name, memories=("\n".join(said)[:1_000],)))
    episode = f"talk {one.step} {min(one.name, other.name)}"
    spoken = await one.build(
        *(
            New(
                text=line.text, kind="chat", by=line.by, episode=episode, importance=float(rated.ratings[0]),
                keywords=(other.name.lower(),),
                data={"told_to": other.name if line.by == one.name else one.name, "told": list(line.told)},
            )
            for line in lines
        )
    )  # fmt: skip
    evidence = tuple(record.id for record in spoken)
    kept = await one.build(
        New(text=f"{one.name} talked with {other.name} about {taken.about}.", kind="observation", by=one.name,
            importance=float(rated.ratings[0]), evidence=evidence, keywords=(other.name.lower(),)),
        *(
            New(text=text, kind="thought", by=one.name, importance=MEMO_IMPORTANCE, evidence=evidence,
                keywords=(other.name.lower(),))
            for text in (taken.memo, taken.plan) if text.strip()
        ),
    )  # fmt: skip
    records = (*spoken, *kept)
    event = Talked(
        step=one.step, partner=other.name, lines=lines, until=until, records=tuple(record.id for record in records),
        gathered=float(rated.ratings[0]),
    )  # fmt: skip
    one.write(event, records)
