"""The rest of a day is written anew for what was agreed on for it (Park 2023, 4.3.1)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from mindstream.town.events import Block, TasksPlanned
from mindstream.town.paper.places import known_tree, path_of
from mindstream.town.paper.plan import place_of
from mindstream.town.prompts.memory import Memory
from mindstream.town.prompts.paper.rewrite_day import RestOfDay, RewriteDay
from mindstream.town.residents.appointment import Appointment
from mindstream.town.residents.keep_talk import Kept
from mindstream.town.residents.places import is_let_in, words_of
from mindstream.town.residents.plan import is_ahead_today, minutes_between, take_up
from mindstream.town.residents.turn import ResidentTurn
from mindstream.town.world.hours import DAY_MINUTES, clock, minute_of


async def rewrite_day(turn: ResidentTurn, kept: Sequence[Kept]) -> None:
    """Write the rest of the day anew, in one call, where something was agreed on for it; what was agreed on stands."""
    agreed = [each for each in kept if each.appointment and is_ahead_today(turn, each.appointment)]
    appointments = [each.appointment for each in agreed if each.appointment]
    if not agreed:
        return
    minute = turn.setting.minute(turn.step)
    rest = [each for each in turn.state.blocks if each.end > minute and not each.asleep]
    bed = next((each.start for each in turn.state.blocks if each.asleep and each.start > minute), DAY_MINUTES)
    _, lines = known_tree(turn)
    reply = await turn.ask(
        RewriteDay(
            who=turn.name,
            identity=turn.identity,
            when=clock(minute),
            bed=clock(bed),
            agreed=tuple(
                Memory(text=each.text, appointment=each.appointment, where=words_of(each.appointment.place))
                for each in agreed
                if each.appointment
            ),
            plan=tuple(f"{clock(b.start)}-{clock(b.end)} {b.what} ({path_of(b.place)})" for b in rest),
            places=lines,
        )
    )
    blocks = _with_early_starts(turn, _parts(turn, reply, appointments, minute, bed))
    if blocks:
        because = "; ".join(each.text for each in agreed)[:300]
        turn.write(TasksPlanned(step=turn.step, blocks=tuple(blocks), because=because))
    is_kept = {stroke.keeps for stroke in reply.strokes}
    for number, (at, each) in enumerate(zip(appointments, agreed, strict=True), 1):
        if number not in is_kept or not minute < at.start.hour * 60 + at.start.minute < bed:
            take_up(turn, at, each.text)


def _parts(turn: ResidentTurn, reply: RestOfDay, agreed: Sequence[Appointment], minute: int, bed: int) -> list[Block]:
    """Return what lies ahead, one after the other: an appointment at its time and place; what stays as it was keeps
    how far it was planned."""
    as_it_was = {(each.start, each.what): each for each in turn.state.blocks}
    parts = dict[int, Block]()
    for stroke in reply.strokes:
        start, place = minute_of(stroke.start), place_of(turn, stroke)
        if 0 < stroke.keeps <= len(agreed):
            at = agreed[stroke.keeps - 1]
            start = at.start.hour * 60 + at.start.minute
            place = at.place if at.place and is_let_in(turn.setting, turn.person, at) else place
        if minute < start < bed:  # what goes on now has been planned before
            new = Block(start=start, minutes=1, what=stroke.what, place=place)
            parts[start] = new if stroke.keeps else as_it_was.get((start, stroke.what), new)
    every = [parts[start] for start in sorted(parts)]
    ends = [*(each.start for each in every[1:]), bed] if every else []
    return [_lasting(each, end - each.start) for each, end in zip(every, ends, strict=True)]


def _lasting(block: Block, minutes: int) -> Block:
    """Return a block that lasts so long; a task that has become longer is planned anew."""
    return block.model_copy(update={"minutes": minutes, "fine": block.fine and minutes <= block.minutes})


def _with_early_starts(turn: ResidentTurn, blocks: Sequence[Block]) -> list[Block]:
    """Let one set out for each part but the first so that one is there when it begins."""
    for before, part in pairwise(blocks):
        ahead = minutes_between(turn, before.place, part.place)
        if part.start - ahead <= before.start:
            return list(blocks)
    moved = [
        part.model_copy(update={"start": part.start - ahead, "minutes": part.minutes + ahead})
        for before, part in pairwise(blocks)
        for ahead in (minutes_between(turn, before.place, part.place),)
    ]
    every = [*blocks[:1], *moved]
    ends = [*(each.start for each in every[1:]), *(each.end for each in every[-1:])]
    return [each.model_copy(update={"minutes": end - each.start}) for each, end in zip(every, ends, strict=True)]
