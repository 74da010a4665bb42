"""A talk in one reply: whether two residents speak, their lines, agreements and memories; others may overhear it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Literal

from mindstream.memory.store.record import Record, RecordDraft, normalised
from mindstream_town.events import Block, Met, Perceived, SpokenLine, Talked
from mindstream_town.prompts.conduct import Agreed, Learned, Taken
from mindstream_town.residents.converse import (
    IMPORTANCE,
    OF_PEOPLE,
    TELLABLE,
    Kept,
    can_be_told,
    find_name,
    keep,
    meeting_places,
    spoken_drafts,
    talk_end,
)
from mindstream_town.residents.person import Appointment, appointment_of
from mindstream_town.residents.places import avoided_by, is_home, words_of
from mindstream_town.residents.plan import take_up
from mindstream_town.residents.prompt_context import cut_at_word, housemates, show, weather_on
from mindstream_town.residents.sight import PEOPLE
from mindstream_town.residents.turn import ResidentTurn
from mindstream_town.scenes.day import (
    CORRECTS,
    DEED,
    MAX_NEWS,
    MOST_KNOWN,
    OUTCOMES,
    UNHEARD,
    by_words,
    change_day,
    close_questions,
    disproved,
    doing,
    find_place,
    identity,
    is_errand_to,
    is_secret,
    is_sought,
    is_unheard,
    keep_appointment,
    known_from_the_start,
    knows_of,
    last_met,
    line_of,
    outcome_draft,
    public_identity,
    recent_outcomes,
    relation_to,
    rest_of_day,
    secrets_of,
    stands_to,
    without_past,
    without_repeats,
)
from mindstream_town.scenes.prompts import Briefing, LetOn, Scene, SceneMemory, SceneStance, Side, TalkScene
from mindstream_town.world.tree import ARENA, SECTOR

LONGEST = 700
"""Maximum characters of a memory in the prompt, including its appointment."""
OF_OTHER, NEWEST, OF_PLACE, DATED, SHOWN = 5, 5, 1, 2, 11
ON_THE_WAY = "outdoors, on the way"
PASSING_DEED = 3.0
"""Memories of the resident's own acts with at most this importance are not shown in talks."""
PASSING = 2.0
"""Importance of a meeting or an overheard line that was not rated."""


async def converse_in_scene(first: ResidentTurn, second: ResidentTurn, near: Sequence[ResidentTurn]) -> None:
    """Run the scene of two residents who meet, and write its events in the turns of all who take part or overhear.

    Args:
        near: other residents in sight who are awake; they may overhear the talk.
    """
    if _begins(second, first.name) > _begins(first, second.name):
        first, second = second, first
    place, both = _place(first), (first, second)
    pairs = both, (second, first)
    minds = [await _come_to_mind(turn, other, place) for turn, other in pairs]
    briefs = [await _brief(*pair, place, near, mind) for pair, mind in zip(pairs, minds, strict=True)]
    minds = [_without_hints(mind, brief) for mind, brief in zip(minds, briefs, strict=True)]
    known = dict.fromkeys((*meeting_places(first, second.name), *meeting_places(second, first.name)))
    places = [each for each in known if first.setting.addresses[each].level == ARENA]
    plans = _number_plans(both, briefs, sum(map(len, minds)))
    sides = _sides(both, minds, briefs, plans)
    before = first.tokens
    together = keep_appointment(first.setting, first.step, first.state, second.state)
    scene = await first.ask(
        TalkScene(
            sides=sides,
            together=first.state.act.what if together and first.state.act else "",
            when=first.date_and_time,
            weather=weather_on(first.setting, first.step),
            place=_where(first, place),
            near=tuple(each.name for each in near),
            before=last_met(first, second.name),
            strangers=not (knows_of(first, second.name) or knows_of(second, first.name)),
            at_home=_are_at_home(first, second, place),
            places=tuple(map(words_of, places)),
        )
    )
    half = (first.tokens - before) // 2
    first.tokens, second.tokens = first.tokens - half, second.tokens + half
    talked = scene.talk and any(line.says.strip() for line in scene.lines)
    lines = _lines(scene, both, minds) if talked else ()
    until = talk_end(first, lines)
    for at, (one, other) in enumerate((both, (second, first))):
        await _keep(one, other, scene, lines, until, minds, at, places, plans[at], plans[1 - at])
    for each in near:
        await _overhear(each, first, second, scene, talked)


def _begins(turn: ResidentTurn, other: str) -> tuple[bool, ...]:
    """Return for each reason to approach another resident whether it applies, the strongest reason first."""
    act = turn.state.act
    moves = act is not None and not act.has_arrived(turn.step)
    errand = is_errand_to(turn.setting, turn.state, other, turn.step)
    return errand, is_sought(turn, other), turn.wish == other, moves


def _are_at_home(first: ResidentTurn, second: ResidentTurn, place: str) -> bool:
    """Return whether two residents of one home have both arrived at an act in it."""
    acts = (first.state.act, second.state.act)
    arrived = all(act is not None and act.has_arrived(first.step) for act in acts)
    return arrived and second.name in housemates(first.setting, first.person) and is_home(first.person, place)


def _place(turn: ResidentTurn) -> str:
    """Return the address of the room or house that a resident is in; on a road, the address of the town."""
    here = turn.setting.world.address_at(turn.state.spot(turn.step))
    return str(here.upto(min(here.level, ARENA)))


def _where(turn: ResidentTurn, place: str) -> str:
    """Return in words where a scene takes place."""
    return words_of(place) if turn.setting.addresses[place].level >= SECTOR else ON_THE_WAY


async def _come_to_mind(turn: ResidentTurn, other: ResidentTurn, place: str) -> list[Record]:
    """Return untold news, memories about the other resident, the place, and recent important events, without secrets.

    Left out are appointments that are over, and those that the other knows and the plan in the prompt contains. Each
    remaining appointment is shown once.
    """
    shared = turn.state.shared.get(other.name, frozenset())
    secret, false = {each.id for each in await secrets_of(turn)}, await disproved(turn)

    def may_be_shown(record: Record) -> bool:
        hints = is_secret(turn, record) or secret.intersection(record.evidence)
        at = appointment_of(record.data)
        planned = at and _is_in_plan(turn, at) and (other.name in at.who or record.id in shared)
        return can_be_told(record) and not hints and not planned and record.id not in false

    news = [each for each in await known_from_the_start(turn) if each.id not in shared and may_be_shown(each)]
    found = [
        *sorted(news, key=lambda each: not is_unheard(turn, each))[:MAX_NEWS],
        *[record for record, _ in await turn.recall_appointments() if may_be_shown(record)][:DATED],
        *[each for each in await recent_outcomes(turn) if may_be_shown(each)][:OUTCOMES],
        *(each.record for each in await turn.recall(other.name, OF_OTHER, kinds=OF_PEOPLE)),
        *(await turn.recall_about([other.name], 3, kinds=OF_PEOPLE)),
        *(each.record for each in await turn.recall(turn.at_heart, NEWEST, kinds=TELLABLE)),
        *(each.record for each in await turn.recall(words_of(place), OF_PLACE, kinds=OF_PEOPLE)),
    ]
    known = identity(turn) + "\n".join(turn.person.acquaintances())
    worth = (each for each in found if may_be_shown(each) and not _is_everyday(each) and each.text not in known)
    return without_repeats(without_past(turn, {normalised(each.text): each for each in worth}.values()))[:SHOWN]


def _is_in_plan(turn: ResidentTurn, at: Appointment) -> bool:
    """Return whether today's plan, which the prompt shows too, contains an appointment."""
    when, setting = at.start, turn.setting
    block = turn.state.block_at(when.hour * 60 + when.minute) if when.date() == setting.when(turn.step).date() else None
    return block is not None and bool(block.agreed) and {*block.agreed} == {*at.who, at.host} - {""}


def _is_everyday(record: Record) -> bool:
    """Return whether a memory is about an everyday act."""
    return record.kind == "observation" and (record.importance or 0.0) <= (
        PASSING_DEED if DEED in record.data else PEOPLE
    )


async def _brief(
    turn: ResidentTurn, other: ResidentTurn, place: str, near: Sequence[ResidentTurn], mind: Sequence[Record]
) -> Briefing | None:
    """Ask a resident with secrets which of them to reveal, in a call of its own; None: the resident has no secrets.

    Args:
        mind: the memories that the talk's prompt would show.
    """
    secrets = tuple(each.text for each in await secrets_of(turn))[:MOST_KNOWN]
    if not secrets:
        return None
    return await turn.ask(
        LetOn(
            who=turn.name,
            identity=public_identity(turn),
            secrets=secrets,
            memories=tuple(each.line for each in show(mind)),
            other=other.name,
            relation=relation_to(turn, other.name),
            when=turn.date_and_time,
            place=_where(turn, place),
            near=tuple(each.name for each in near),
            plan=tuple(map(line_of, rest_of_day(turn))),
        )
    )


def _without_hints(mind: Sequence[Record], brief: Briefing | None) -> list[Record]:
    """Return the memories that a resident's briefing does not hide."""
    return [each for number, each in enumerate(mind, 1) if brief is None or number not in brief.hides_memories]


def _sides(
    both: tuple[ResidentTurn, ResidentTurn],
    minds: Sequence[Sequence[Record]],
    briefs: Sequence[Briefing | None],
    plans: Sequence[Mapping[int, Block]],
) -> tuple[Side, Side]:
    """Return both residents as the prompt may show them; the memories of both are numbered consecutively."""
    sides, number = [], 1
    for turn, other, mind, brief, plan in zip(both, both[::-1], minds, briefs, plans, strict=True):
        shared, shown = turn.state.shared.get(other.name, frozenset()), []
        for record, memory in zip(mind, show(mind), strict=True):
            heard = "told before" if record.id in shared else UNHEARD if is_unheard(turn, record) else ""
            shown.append(f"{number}. {cut_at_word(memory.line, LONGEST)}{f' ({heard})' if heard else ''}")
            number += 1
        told = [f"(may tell) {each}" for each in brief.lets_on] if brief else []
        text = "\n".join(line for line in identity(turn).split("\n") if not line.startswith(stands_to(other.name)))
        if brief:
            text = "\n".join(line for n, line in enumerate(public_identity(turn), 1) if n not in brief.hides)
        lines = tuple(f"{at}. {line_of(block, outwardly=block.secret)}" for at, block in plan.items())
        sides.append(
            Side(
                who=turn.name,
                text=text,
                doing=doing(turn),
                memories=(*shown, *told),
                plan=lines,
                stance=_stance(turn, other.name),
                bearing=brief.bearing.strip() if brief else "",
            )
        )
    return sides[0], sides[1]


def _stance(turn: ResidentTurn, other: str) -> str:
    """Return a resident's attitude toward another in words."""
    keeps_away = "keeps out of the other's way" if other in avoided_by(turn) else ""
    return "; ".join(each for each in (turn.state.stances.get(other, ""), keeps_away) if each)


def _number_plans(
    both: Sequence[ResidentTurn], briefs: Sequence[Briefing | None], number: int
) -> tuple[dict[int, Block], dict[int, Block]]:
    """Return the rest of each resident's day as the prompt may show it, with numbers after those of the memories."""
    plans = []
    for turn, brief in zip(both, briefs, strict=True):
        shown = [each for n, each in enumerate(rest_of_day(turn), 1) if brief is None or n in brief.plan]
        shown = [each for each in shown if each.seen or not each.secret]
        plans.append(dict(enumerate(shown, number + 1)))
        number += len(shown)
    return plans[0], plans[1]


def _lines(
    scene: Scene, both: tuple[ResidentTurn, ResidentTurn], minds: Sequence[Sequence[Record]]
) -> tuple[SpokenLine, ...]:
    """Return the spoken lines, each with the speaker's own records that it passes on."""
    numbered = [(both[side].name, record.id) for side, mind in enumerate(minds) for record in mind]
    lines = []
    for line in scene.lines:
        by = _who(both, line.who)
        if by and line.says.strip():
            told = [numbered[n - 1] for n in dict.fromkeys(line.tells) if 0 < n <= len(numbered)]
            passed = tuple(id_ for whose, id_ in told if whose == by)
            lines.append(SpokenLine(by=by, text=line.says.strip(), told=passed))
    return tuple(lines)


def _who(both: Sequence[ResidentTurn], said: str) -> str:
    name = find_name(both[0].setting, said)
    return name if name in {each.name for each in both} else ""


async def _keep(
    one: ResidentTurn,
    other: ResidentTurn,
    scene: Scene,
    lines: tuple[SpokenLine, ...],
    until: int,
    minds: Sequence[Sequence[Record]],
    at: int,
    places: Sequence[str],
    plan: Mapping[int, Block],
    their_plan: Mapping[int, Block],
) -> None:
    """Write a scene into a resident's stream, and change its day's plan accordingly.

    Args:
        minds: the memories of both in the prompt, numbered consecutively. at: the index of the resident's own memories
            in `minds`.
    """
    own, theirs, first = minds[at], minds[1 - at], 1 + at * len(minds[0])
    kept = [each for each in scene.remember if _who((one, other), each.who) == one.name and each.text.strip()]
    weight = float(max((each.weight for each in kept), default=PASSING))
    spoken = await one.build(*spoken_drafts(one.name, other.name, one.step, lines, weight))
    evidence = tuple(each.id for each in spoken)
    passed = {id_ for line in lines for id_ in line.told if line.by == other.name}
    told = [record for record in theirs if record.id in passed]
    taken = taken_of(one, other, scene, kept, places, talked=bool(lines))
    known = [at for _, at in await one.recall_appointments()]
    every = [
        each
        for each in keep(one, other.name, taken, told, places, known)
        if each.appointment is None or not any(_is_agreed_already(one, each.appointment, at) for at in known)
    ]
    weights = [float(each.weight) for each in kept]
    thoughts = {
        normalised(each.text): replace(each.as_thought(one, other.name, evidence), importance=importance)
        for each, importance in zip_longest(every, weights[: len(taken.memo)], fillvalue=IMPORTANCE)
        if isinstance(each, Kept)
    }
    for memory in kept:
        draft, corrected = thoughts.get(normalised(memory.text.strip())), {*memory.corrects}
        if draft and (false := [record.id for n, record in enumerate(own, first) if n in corrected]):
            thoughts[normalised(draft.text)] = replace(draft, data={**draft.data, CORRECTS: [*false]})
    for result in scene.results:
        if result.number in plan or result.number in their_plan:
            draft = outcome_draft(one.name, result.text, IMPORTANCE, evidence, (other.name,))
            thoughts[normalised(result.text)] = draft
    if lines and not thoughts:
        where = _where(one, _place(one))
        text = f"{one.name} and {other.name} met {where if where == ON_THE_WAY else f'at {where}'}"
        thoughts[text] = RecordDraft(
            text=text, kind="observation", by=one.name, importance=weight, keywords=(other.name.lower(),)
        )
    records = (*spoken, *await one.build(*thoughts.values()))
    ids, outcome = tuple(each.id for each in records), outcome_of(scene, talked=bool(lines))
    if lines:
        one.write(Talked(step=one.step, partner=other.name, lines=lines, until=until, records=ids), records)
    by = _who((one, other), scene.declined_by)
    stance = next((each for each in scene.stance if _who((one, other), each.who) == one.name), SceneStance(who=""))
    one.write(
        Met(
            step=one.step,
            other=other.name,
            outcome=outcome,
            by=by,
            records=() if lines else ids,
            gathered=sum(each.importance or 0.0 for each in records if each.kind != "chat"),
            stance=stance.text.strip(),
            avoids=stance.avoids,
        ),
        () if lines else records,
    )
    _learn_places(one, scene, places)
    why = kept[0].text.strip() if kept else f"{one.name} met {other.name}"
    change_day(one, {each.number: each for each in scene.changes}, plan, why)
    close_questions(one, [plan[each.number] for each in scene.results if each.number in plan])
    for each in every:
        if each.appointment and each.comes:
            take_up(one, each.appointment, each.text)


def _is_agreed_already(turn: ResidentTurn, new: Appointment, known: Appointment) -> bool:
    """Return whether the resident has agreed to this appointment before."""
    return new.is_same(known) and turn.name in (*known.who, known.host)


def outcome_of(scene: Scene, *, talked: bool) -> Literal["talked", "passed", "declined"]:
    """Return the outcome of a scene."""
    return "declined" if scene.declined_by.strip() else "talked" if talked else "passed"


def taken_of(
    one: ResidentTurn,
    other: ResidentTurn,
    scene: Scene,
    kept: Sequence[SceneMemory],
    places: Sequence[str],
    *,
    talked: bool,
) -> Taken:
    """Convert what a resident remembers of a scene into `Taken`, the reply after talks outside of scenes."""
    named, agreed = by_words(places), list[Agreed]()
    for each in scene.agreed if talked else ():
        who = [find_name(one.setting, name) for name in each.who] or [one.name, other.name]
        address = find_place(each.place, named)
        what = _of_own(each.what, who[0]) if len(who) == 1 else each.what
        agreed.append(
            Agreed(
                text=f"{', '.join(who)}: {what}",
                what=_of_own(what, one.name),
                who=who,
                whom=tuple(each.whom),
                comes=one.name in who,
                place=places.index(address) + 1 if address else 0,
                day=each.day,
                start=each.start,
                end=each.end,
            )
        )
    memo = [Learned(text=each.text.strip()) for each in kept]
    return Taken(about=other.name, memo=memo[:6], agreed=agreed)


def _of_own(what: str, name: str) -> str:
    """Return an act in the form that follows a name: "Ann keeping a table" becomes "keeping a table" for Ann."""
    return what.removeprefix(f"{name} ") or what


def _learn_places(turn: ResidentTurn, scene: Scene, places: Sequence[str]) -> None:
    """Add places that were mentioned in the scene to the resident's known places."""
    named = by_words(places)
    told = {find_place(each, named) for each in (*scene.places, *(each.place for each in scene.agreed))} - {""}
    addresses = {str(turn.setting.addresses[each].upto(level)) for each in told for level in (2, 3)}
    if new := tuple(sorted(addresses - turn.state.knows)):
        turn.write(Perceived(step=turn.step, seen=(), places=new))


async def _overhear(turn: ResidentTurn, first: ResidentTurn, second: ResidentTurn, scene: Scene, talked: bool) -> None:
    """Let a resident nearby remember the line that can be overheard, if the scene has one."""
    text = scene.overheard.strip()
    if not (talked and text):
        return
    keywords = (first.name.lower(), second.name.lower())
    (record,) = await turn.build(
        RecordDraft(text=text, kind="observation", by=turn.name, importance=PASSING, keywords=keywords)
    )
    turn.write(Perceived(step=turn.step, seen=(), records=(record.id,), gathered=PASSING), (record,))
