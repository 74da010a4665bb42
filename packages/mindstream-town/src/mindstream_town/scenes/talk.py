"""A talk in one reply: whether two residents speak, their lines, agreements and memories; others may overhear it."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import accumulate, chain, count, permutations, zip_longest
from typing import Any, Literal

from mindstream.memory.store.record import Record, RecordDraft, normalised
from mindstream.models.rules import Rules
from mindstream.text.words import sentences
from mindstream.together import together
from mindstream_town.events import Block, Briefed, Met, Perceived, SceneBegan, SpokenLine, Talked
from mindstream_town.prompts.conduct import Agreed, Learned, Taken
from mindstream_town.prompts.plans import AT_HOME
from mindstream_town.residents.converse import (
    IMPORTANCE,
    OF_PEOPLE,
    TELLABLE,
    Kept,
    can_be_told,
    find_name,
    keep,
    meeting_places,
    minutes_of,
    spoken_drafts,
)
from mindstream_town.residents.person import Appointment, appointment_of
from mindstream_town.residents.places import avoided_by, home_to_visit, is_home, words_of
from mindstream_town.residents.plan import FREE, take_up
from mindstream_town.residents.prompt_context import (
    are_copies,
    cut_at_word,
    housemates,
    repeats,
    runs,
    show,
    weather_on,
)
from mindstream_town.residents.turn import Resident, ResidentTurn
from mindstream_town.scenes.day import (
    CORRECTS,
    IMPORTANT,
    MAX_NEWS,
    OUTCOMES,
    SHORTLY_BEFORE,
    TELL_NOW,
    UNHEARD,
    acquaintances,
    briefing_of,
    by_words,
    change_day,
    clears,
    close_questions,
    described_anyway,
    disproved,
    doing,
    duties_of_tomorrow,
    find_out,
    find_place,
    has_to_tell,
    hides_act,
    identity_for_talk,
    important_today,
    is_clear,
    is_errand_to,
    is_everyday,
    is_secret,
    is_sought,
    is_unheard,
    keep_appointment,
    known_from_the_start,
    knows_of,
    last_met,
    line_of,
    mark_settled,
    outcome_draft,
    public_identity,
    recent_outcomes,
    rest_of_day,
    secrets_of,
    still_to_tell,
    to_tell,
    without_past,
    without_repeats,
    worth_telling,
    written_since,
)
from mindstream_town.scenes.prompts import LetOn, Scene, SceneMemory, SceneStance, Settle, Settled, Side, TalkScene
from mindstream_town.setting import Setting
from mindstream_town.world.tree import ARENA, SECTOR

LONGEST = 500
"""Maximum characters of a memory in the prompt, including its appointment."""
OF_OTHER, OF_TODAY, NEWEST, OF_PLACE, DATED, SHOWN = 5, 2, 5, 1, 2, 10
SHORT, MIN_SHORT = 12, 3
"""Maximum number of memories in a short request, of all people there; each of many may have MIN_SHORT."""
ON_THE_WAY = "outdoors, on the way"
BETWEEN = 'known to those who are here, not for "overheard"'
"""Remark on a memory that may reveal a secret of the resident, but is shown (`_may_show`)."""
TOGETHER = "together"
"""Key in `Record.data` of a meeting's result: the names of the others who have the same result in their memories."""
FILLERS = (FREE, AT_HOME)
"""Acts that fill the gaps of a plan."""
PASSING = 2.0
"""Importance (1 to 10) of a meeting that was not rated. Overhearing a meeting also counts this much toward the next
reflection."""
SHORTEST = 8
"""Minimum duration of a scene, in minutes.

Until these minutes have passed, others perceive only that the two talk with each other. Only then is the model's reply
needed, which contains what is said.
"""


async def begin_scene(first: ResidentTurn, second: ResidentTurn, near: Sequence[str]) -> None:
    """Begin the scene of two residents who meet, and ask a model for it.

    The reply is needed only later (`finish_scene`). Until then, others see only that the two talk with each other.

    Args:
        near: other residents in sight who are awake.
    """
    if _begins(second, first.name) > _begins(first, second.name):
        first, second = second, first
    place, both = _place(first), (first, second)
    pairs = both, (second, first)
    for turn in both:
        await find_out(turn)
    minds = [await _come_to_mind(turn, other, place) for turn, other in pairs]
    await together(*(_brief(turn, mind) for turn, mind in zip(both, minds, strict=True)))
    minds = [
        [each for each in mind if _may_show(turn, each, (other.name, *near))]
        for (turn, other), mind in zip(pairs, minds, strict=True)
    ]
    known = dict.fromkeys((*meeting_places(first, second.name), *meeting_places(second, first.name)))
    rooms = {home_to_visit(first.setting, each.name) for each in both}
    places = [
        each
        for each in known
        if first.setting.addresses[each].level == ARENA
        and (each in rooms or not any(is_home(turn.person, each) for turn in both))
    ]
    plans = _number_plans(both, sum(map(len, minds)))
    keeps = keep_appointment(first.setting, first.step, first.state, second.state)
    present = [*(each.name for each in both), *near]
    prompt = {
        "together": first.state.act.what if keeps and first.state.act else "",
        "when": first.date_and_time,
        "weather": weather_on(first.setting, first.step),
        "place": _where(first, place),
        "near": tuple(near),
        "before": last_met(first, second.name),
        "strangers": not (knows_of(first, second.name) or knows_of(second, first.name)),
        "at_home": _are_at_home(first, second, place),
        "places": tuple(map(words_of, places)),
    }
    begun = [
        SceneBegan(
            step=turn.step,
            partner=other.name,
            until=turn.step + SHORTEST * turn.profile.a_minute,
            by=first.name,
            prompt=json.dumps(prompt, ensure_ascii=False),
            side=_side(turn, other, plan, present).model_dump_json(exclude_defaults=True),
            mind=tuple(each.id for each in mind),
            heard=tuple(
                BETWEEN if _reveals(turn, each) else _heard(turn, other, each, minds[turn is first]) for each in mind
            ),
            plan=tuple(plan.values()),
            places=tuple(places),
            lets_on=bool(_lets_on(turn, other)) or any(_reveals(turn, each) for each in mind),
        )
        for (turn, other), mind, plan in zip(pairs, minds, plans, strict=True)
    ]
    first.ask_later(_request(first.setting, begun, minds))
    for turn, row in zip(both, begun, strict=True):
        turn.write(row)
        block = turn.state.block_at(turn.minute)
        if keeps and block and len(block.agreed) > 2:
            mark_settled(turn, block)  # otherwise, the same two would keep it again


async def finish_scene(turn: ResidentTurn, begun: SceneBegan, other: Resident) -> None:
    """Write the results of a scene for one of the two residents.

    The results for the other resident are written in the other resident's turn of the same step.

    Args:
        other: the other resident, in its state before the step.
    """
    assert other.state.scene is not None  # both end a scene in the same step
    one = turn.resident
    pair = [(one, begun), (other, other.state.scene)]
    pair = pair if turn.name == begun.by else pair[::-1]
    both, minds = [row for _, row in pair], list[list[Record]]()
    for resident, row in pair:
        await resident.written()
        known = {each.id: each for each in await resident.memory.records(list(row.mind))}
        minds.append([known[id_] for id_ in row.mind if id_ in known])
    if begun.short:
        ask = _short_request(both, minds)
        came = await turn.reply_to(ask, pair[0][0]) or Rules().answer(ask)
        turn.count_later(ask, came, both=True)
        at = int(turn.name != begun.by)
        await _keep_result(turn, [other.name], came, minds, minds[at], begun, _first_of_plans(both, minds)[at])
        if turn.name == begun.by:
            turn.overheard = (begun.partner,), came.overheard.strip(), came.weight, not begun.lets_on
        return
    prompt = _request(turn.setting, both, minds)
    scene = await turn.reply_to(prompt, pair[0][0]) or Rules().answer(prompt)
    began = turn.name == begun.by
    turn.count_later(prompt, scene, both=True)
    talked = scene.talk and any(line.says.strip() for line in scene.lines)
    await _keep(turn, other.name, scene, both, minds, _lines(turn, scene, both) if talked else ())
    if began and talked:
        is_clear = not any(each.lets_on for each in both)
        weight = max((float(each.weight) for each in scene.remember), default=PASSING)
        turn.overheard = (begun.partner,), scene.overheard.strip(), weight, is_clear


def _request(setting: Setting, begun: Sequence[SceneBegan], minds: Sequence[Sequence[Record]]) -> TalkScene:
    """Return the request about a scene. Memories that were forgotten after the scene began are left out.

    Args:
        begun: the rows of the two residents; the first row is that of the resident who began the scene.
        minds: the memories of the two residents, in the same order.
    """
    sides, number = [], 1
    for row, mind in zip(begun, minds, strict=True):
        side = Side.model_validate_json(row.side)
        days = [_day_of(setting.when(row.step), each) for each in mind]
        lines = {each.id: memory.line for each, memory in zip(mind, show(mind, days), strict=True)}
        shown = [
            f"{n}. {cut_at_word(lines[id_], LONGEST)}{f' ({heard})' if heard else ''}"
            for n, (id_, heard) in enumerate(zip(row.mind, row.heard, strict=True), number)
            if id_ in lines
        ]
        sides.append(side.model_copy(update={"memories": (*shown, *side.memories)}))
        number += len(row.mind)
    return TalkScene.model_validate(json.loads(begun[0].prompt) | {"sides": (sides[0], sides[1])})


async def settle_in_short(people: Sequence[ResidentTurn]) -> None:
    """Ask a model for the result of an appointment or an errand, without lines.

    Two people talk for SHORTEST minutes before they know the result (`finish_scene`). Three or more people know the
    result at once, and share the tokens of the call.

    Args:
        people: the residents who are there.
    """
    if len(people) == 2 and _begins(people[1], people[0].name) > _begins(people[0], people[1].name):
        people = people[::-1]
    first, names, place = people[0], [each.name for each in people], _place(people[0])
    act = first.state.act
    assert act is not None  # a resident at an appointment or on an errand has an act
    for turn in people:
        await find_out(turn)
    for turn, other in permutations(people, 2):
        await _tell(turn, other)
    minds = [await _come_to_mind(turn, people[turn is first], place) for turn in people]
    await together(*(_brief(turn, mind) for turn, mind in zip(people, minds, strict=True)))
    most = max(MIN_SHORT, SHORT // len(people))
    minds = [
        [each for each in mind if _may_show(turn, each, [name for name in names if name != turn.name])][:most]
        for turn, mind in zip(people, minds, strict=True)
    ]
    lets_on = [_lets_on(turn, people[turn is first]) if len(people) == 2 else () for turn in people]
    is_hidden = hides_act(first, act)
    prompt = {
        "did": act.outwardly if is_hidden else act.what,
        "question": "" if is_hidden else act.open,
        "when": first.date_and_time,
        "place": _where(first, place),
    }
    known = tuple(dict.fromkeys(place for turn in people for other in names for place in meeting_places(turn, other)))
    reveals = any(_reveals(turn, each) for turn, mind in zip(people, minds, strict=True) for each in mind)
    begun = []
    for turn, mind, told in zip(people, minds, lets_on, strict=True):
        side = Side(
            who=turn.name,
            text=identity_for_talk(turn, names),
            doing="",
            memories=tuple(f"(may tell) {each}" for each in told),
        )
        block = turn.state.block_at(turn.minute)
        row = SceneBegan(
            step=turn.step,
            partner=people[turn is first].name,
            until=turn.step + SHORTEST * turn.profile.a_minute,
            by=first.name,
            prompt=json.dumps(prompt, ensure_ascii=False),
            side=side.model_dump_json(exclude_defaults=True),
            mind=tuple(each.id for each in mind),
            heard=tuple(BETWEEN if _reveals(turn, each) else "" for each in mind),
            plan=(block,) if block else (),
            places=known,
            lets_on=any(lets_on) or reveals,
            short=True,
            later=tuple(each for each in rest_of_day(turn) if each != block and not hides_act(turn, each)),
        )
        begun.append(row)
    ask = _short_request(begun, minds)
    if len(people) == 2:
        first.ask_later(ask)
        for turn, row in zip(people, begun, strict=True):
            turn.write(row)
        return
    before = first.tokens
    came = await first.ask(ask)
    share = (first.tokens - before) // len(people)
    for turn, mind, row, number in zip(people, minds, begun, _first_of_plans(begun, minds), strict=True):
        if turn is not first:
            first.tokens, turn.tokens = first.tokens - share, turn.tokens + share
        await _keep_result(turn, [each for each in names if each != turn.name], came, minds, mind, row, number)
    first.overheard = tuple(names[1:]), came.overheard.strip(), came.weight, not reveals


def _short_request(begun: Sequence[SceneBegan], minds: Sequence[Sequence[Record]]) -> Settle:
    """Return the request for a talk in short; memories that have been forgotten since it began are left out.

    The memories of all people have the first numbers, then follow the later parts of their plans.

    Args:
        begun: a row for each of the people. minds: their memories, in the same order.
    """
    sides, numbers, of_plans = [], count(1), count(1 + sum(map(len, minds)))
    for row, mind in zip(begun, minds, strict=True):
        side = Side.model_validate_json(row.side)
        heard = dict(zip(row.mind, row.heard, strict=True))
        shown = (
            f"{next(numbers)}. {cut_at_word(line.line, LONGEST)}{f' ({said})' if (said := heard[each.id]) else ''}"
            for each, line in zip(mind, show(mind), strict=True)
        )
        plan = tuple(f"{next(of_plans)}. {line_of(each)}" for each in row.later)
        sides.append(side.model_copy(update={"memories": (*shown, *side.memories), "plan": plan}))
    return Settle.model_validate(json.loads(begun[0].prompt) | {"sides": tuple(sides)})


def _first_of_plans(begun: Sequence[SceneBegan], minds: Sequence[Sequence[Record]]) -> list[int]:
    """Return, for each of the people, the number with which the later parts of its plan begin in the prompt."""
    return list(accumulate((len(row.later) for row in begun[:-1]), initial=1 + sum(map(len, minds))))


async def _keep_result(
    turn: ResidentTurn,
    others: Sequence[str],
    came: Settled,
    minds: Sequence[Sequence[Record]],
    mind: Sequence[Record],
    begun: SceneBegan,
    first: int,
) -> None:
    """Write the result of a talk in short into a resident's stream, and change its day's plan accordingly.

    Args:
        others: the names of the other people.
        came: the result.
        minds: the memories of all people in the prompt, in the order of their numbers.
        mind: the memories of this resident in the prompt.
        begun: the row with which the talk began for this resident.
        first: the number with which the later parts of this resident's plan begin in the prompt.
    """
    every = [each.id for each in chain.from_iterable(minds)]
    false = {id_ for n, id_ in enumerate(every, 1) if n in came.corrects} & {each.id for each in mind}
    data = {"place": _place(turn), TOGETHER: [*others]} | ({CORRECTS: sorted(false)} if false else {})
    outcome = outcome_draft(turn.name, came.text, came.weight, (), others, data)
    taken = taken_of(turn, others[0], Scene(talk=True, agreed=came.agreed), (), begun.places, talked=True)
    agreed = await _new_agreements(turn, others[0], taken, (), begun.places)
    made = await turn.build(outcome, *(each.as_thought(turn, others[0], ()) for each in agreed))
    ids = tuple(each.id for each in made)
    clear = ids if clears(turn, *mind) and not begun.lets_on else ()
    for other in others:
        is_first = other == others[0]
        turn.write(
            Met(
                step=turn.step,
                other=other,
                outcome="settled",
                records=ids if is_first else (),
                gathered=sum(each.importance or 0.0 for each in made) if is_first else 0.0,
                clears=clear if is_first else (),
            ),
            made if is_first else (),
        )
    for block in begun.plan:
        if {turn.name, *others} <= {*block.agreed}:
            mark_settled(turn, block)
        elif turn.name == begun.by or (len(others) > 1 and {*block.whom} & {*others}):
            close_questions(turn, [block], others)
    for block in (each for n, each in enumerate(begun.later, first) if n in came.settles):
        # a plan to speak only with people who are not here has become needless
        close_questions(turn, [block], others if {*block.whom} & {*others} else block.whom)
    for each in agreed:
        if each.appointment and each.comes:
            take_up(turn, each.appointment, each.text)


async def tell_in_passing(both: Sequence[ResidentTurn]) -> None:
    """Let two residents tell each other their news, without a call of a model.

    If neither has news, the two only pass each other.
    """
    for turn, other in permutations(both):
        await _tell(turn, other)
    if both[0].state.scenes.get(both[1].name) != both[0].step:
        for turn, other in permutations(both):
            turn.write(Met(step=turn.step, other=other.name, outcome="passed"))


async def _tell(turn: ResidentTurn, other: ResidentTurn) -> None:
    """Let a resident tell another resident its news (`to_tell`).

    The other resident stores each piece of news that it does not know, in the same words. A resident with secrets tells
    only memories that are known to reveal no secret (`is_clear`).
    """
    false, keeps_secrets = await disproved(turn), bool(await secrets_of(turn))
    news = [
        each
        for each in await to_tell(turn, other.name)
        if can_be_told(each)
        and not is_secret(turn, each)
        and each.id not in false
        and (is_clear(turn, each) or not keeps_secrets)
    ]
    if not news:
        return
    nothing = Taken(about=turn.name, memo=[], agreed=[])
    dated = await _new_agreements(other, turn.name, nothing, news, ())
    heard = [
        RecordDraft(
            text=each.text,
            kind="thought",
            by=other.name,
            importance=each.importance,
            keywords=(turn.name.lower(),),
        )
        for each in await _heard_now(other, news, [])
    ]
    records = tuple(await other.build(*(each.as_thought(other, turn.name, ()) for each in dated), *heard))
    ids, gathered = tuple(each.id for each in records), sum(each.importance or 0.0 for each in records)
    clear = ids if clears(other) else ()
    other.write(
        Met(step=other.step, other=turn.name, outcome="told", records=ids, gathered=gathered, clears=clear), records
    )
    turn.write(Met(step=turn.step, other=other.name, outcome="told", told=tuple(each.id for each in news)))


def _begins(turn: ResidentTurn, other: str) -> tuple[bool, ...]:
    """Return for each reason to approach another resident whether it applies, the strongest reason first."""
    act = turn.state.act
    moves = act is not None and not act.has_arrived(turn.step)
    errand = is_errand_to(turn.setting, turn.state, other, turn.step)
    tells = has_to_tell(turn.setting, turn.step, turn.state, other)
    return errand, tells, is_sought(turn, other), turn.wish == other, moves


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
    """Return the memories that a resident may use in a talk, without secrets and disproved memories.

    They are, in this order:

    - what the other resident has to be told, and untold news,
    - appointments,
    - the most important memories of today, and recent results of acts,
    - memories about the other resident, about what matters to the resident, and about the place.

    An appointment is left out if it is over, or if the other resident knows it and the plan in the prompt contains it.
    Each other appointment is shown once.
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
        *[each for each in await to_tell(turn, other.name) if may_be_shown(each)],
        *sorted(news, key=lambda each: not is_unheard(turn, each))[:MAX_NEWS],
        *[record for record, _ in await turn.recall_appointments() if may_be_shown(record)][:DATED],
        *[each for each in await important_today(turn) if may_be_shown(each)][:OF_TODAY],
        *[each for each in await recent_outcomes(turn) if may_be_shown(each)][:OUTCOMES],
        *(each.record for each in await turn.recall(other.name, OF_OTHER, kinds=OF_PEOPLE)),
        *(await turn.recall_about([other.name], 3, kinds=OF_PEOPLE)),
        *(each.record for each in await turn.recall(turn.at_heart, NEWEST, kinds=TELLABLE)),
        *(each.record for each in await turn.recall(words_of(place), OF_PLACE, kinds=OF_PEOPLE)),
    ]
    known = described_anyway(turn)
    worth = (each for each in found if may_be_shown(each) and not is_everyday(each) and each.text not in known)
    return without_repeats(without_past(turn, {normalised(each.text): each for each in worth}.values()))[:SHOWN]


def _is_in_plan(turn: ResidentTurn, at: Appointment) -> bool:
    """Return whether today's plan contains an appointment. The prompt shows the plan, so the appointment need not be
    shown as a memory, too."""
    when, setting = at.start, turn.setting
    block = turn.state.block_at(when.hour * 60 + when.minute) if when.date() == setting.when(turn.step).date() else None
    return block is not None and bool(block.agreed) and {*block.agreed} == {*at.who, at.host} - {""}


MAX_JUDGED, JUDGED_AGAIN = 16, 480
"""A resident with secrets judges whether conversations may show its memories (see `_brief`). MAX_JUDGED: maximum number
of memories judged at a time, in addition to the memories that the next conversation would show. JUDGED_AGAIN: minimum
minutes after a judgement until the resident judges new memories of the same day."""


async def _brief(turn: ResidentTurn, mind: Sequence[Record]) -> None:
    """Let a resident with secrets decide what its conversations of the day may show.

    - The resident decides once a day, with the rest of the day's plan.
    - The resident decides again if it has a new secret, or a memory that a user added after the decision.
    - JUDGED_AGAIN minutes or more after a decision, the resident judges only the new memories of the next conversation,
      if one of these memories is important (IMPORTANT).

    A conversation does not show memories that have not been judged. Judgements hold until the resident has a new secret
    whose evidence contains none of the earlier secrets.

    Args:
        mind: the memories that the next conversation would show.
    """
    secrets, before, state = await secrets_of(turn), briefing_of(turn), turn.state
    if not secrets:
        return
    ids, old = tuple(each.id for each in secrets), {*(state.briefing.secrets if state.briefing else ())}
    is_new = any(each.id not in old and not old.intersection(each.evidence) for each in secrets)
    shows, hides = (frozenset[str](), frozenset[str]()) if is_new else (state.cleared, state.hinted)
    unjudged = [each for each in mind if each.id not in shows | hides and each.about is None]
    since = turn.setting.moment(before.step) if before else turn.now
    is_told = any(each.kind == "note" and not each.evidence and each.created > since for each in unjudged)
    again = before if not (is_new or is_told) else None
    if again and not _is_to_judge(turn, again, unjudged):
        return
    worth = () if again else await worth_telling(turn)
    others = [each for each in worth if each.about is None and each not in unjudged]
    unjudged += [each for each in others if each.id not in shows | hides][:MAX_JUDGED]
    ahead = [each for each in state.blocks if each.end > turn.minute and each.why == "plan" and not each.asleep]
    plan = [each.what for each in (state.act, *ahead) if each and not each.secret and each.what not in FILLERS]
    struck_anyway = [f"{each.what}, with {', '.join(each.whom)}" for each in ahead if each.secret and each.whom]
    known = acquaintances(turn).values()
    described = [
        each for line in public_identity(turn) for each in ((line,) if line in known else sentences(line)) if each
    ]
    groups = (
        () if again else described,
        () if again else written_since(turn),
        [each.line for each in show(unjudged)],
        () if again else [*dict.fromkeys(plan)],
    )
    numbers = count(1)
    lines, recent, memories, acts = ([(next(numbers), each) for each in group] for group in groups)
    reply = await turn.ask(
        LetOn(
            who=turn.name,
            identity=_numbered(lines),
            recent=_numbered(recent),
            secrets=tuple(each.text for each in secrets),
            memories=_numbered((n, cut_at_word(text, LONGEST)) for n, text in memories),
            plan=(*_numbered(acts), *(() if again else struck_anyway)),
            when=turn.date_and_time,
        )
    )
    struck, clear = {*reply.hides}, {*reply.clear} - {*reply.hides}
    hinting = {each.id for each, (n, _) in zip(unjudged, memories, strict=True) if n in struck}
    told = [(find_name(turn.setting, each.to), each.says.strip()) for each in reply.lets_on]
    told = [(name, says) for name, says in told if name in turn.setting.people and name != turn.name]
    judged: dict[str, Any] = {
        "step": turn.step,
        "secrets": ids,
        "shows": tuple(sorted(shows | {each.id for each in unjudged} - hinting)),
        "hides": tuple(sorted(hides | hinting)),
    }
    briefed = again and again.model_copy(update=judged)
    turn.write(
        briefed
        or Briefed(
            **judged,
            day=turn.day,
            lines=tuple([text for n, text in lines if n not in struck] + [text for n, text in recent if n in clear]),
            plan=tuple(what for n, what in acts if n in struck),
            lets_on={name: tuple(says for to, says in told if to == name) for name, _ in told},
        )
    )


def _is_to_judge(turn: ResidentTurn, before: Briefed, unjudged: Sequence[Record]) -> bool:
    """Return whether one of these memories is important, and the last judgement was at least JUDGED_AGAIN minutes
    ago."""
    waited = turn.step - before.step >= JUDGED_AGAIN * turn.profile.a_minute
    return waited and any((each.importance or 0.0) >= IMPORTANT for each in unjudged)


def _numbered(lines: Iterable[tuple[int, str]]) -> tuple[str, ...]:
    return tuple(f"{number}. {' '.join(text.split())}" for number, text in lines)


def _may_show(turn: ResidentTurn, record: Record, others: Collection[str]) -> bool:
    """Return whether a conversation that the residents `others` hear may show a memory: the memory reveals no secret
    (`_reveals`), or all of them have it from the same meeting."""
    together = record.data.get(TOGETHER)
    return not _reveals(turn, record) or (isinstance(together, list) and all(name in together for name in others))


def _reveals(turn: ResidentTurn, record: Record) -> bool:
    """Return whether a memory may reveal a secret of the resident, if it has any."""
    return briefing_of(turn) is not None and not is_clear(turn, record)


def _side(turn: ResidentTurn, other: ResidentTurn, plan: Mapping[int, Block], present: Collection[str]) -> Side:
    """Return what the prompt may show of a resident; `_request` adds the resident's memories."""
    return Side(
        who=turn.name,
        text=identity_for_talk(turn, present),
        doing=_doing(turn),
        memories=tuple(f"(may tell) {each}" for each in _lets_on(turn, other)),
        plan=(
            *(f"{at}. {line_of(block, outwardly=block.secret)}" for at, block in plan.items()),
            *duties_of_tomorrow(turn),
        ),
        stance=_stance(turn, other.name),
    )


def _heard(turn: ResidentTurn, other: ResidentTurn, record: Record, known: Iterable[Record]) -> str:
    """Return a remark about a memory that is shown for a talk with another resident; "": none, or the other resident
    knows the same.

    The remark says that the other resident has been told the memory before, that the resident has to tell the memory
    now, or that the resident has told it to no one yet.

    Args:
        known: the memories of the other resident that are shown for the talk.
    """
    words = runs(record.text)
    if any(are_copies(words, runs(each.text)) for each in known):
        return ""
    if record.id in turn.state.shared.get(other.name, frozenset()):
        return "told before"
    if other.name in still_to_tell(turn.state).get(record.id, ()):
        return TELL_NOW
    return UNHEARD if is_unheard(turn, record) else ""


def _day_of(when: datetime, record: Record) -> str:
    """Return the weekday on which a memory was created.

    Return "" if it was created today, or is a note (a plan, a user's whisper, or a memory from before the town began).
    """
    written = datetime.fromtimestamp(record.created, UTC)
    return "" if record.kind == "note" or written.date() == when.date() else f"{written:%A}"


def _lets_on(turn: ResidentTurn, other: ResidentTurn) -> tuple[str, ...]:
    """Return what a resident would reveal of its own secrets to another resident today.

    Return () if there is nothing to reveal, or if the resident has no briefing. Return () also if the two have met
    today, because the resident could have revealed it then; not if it has now come on purpose (`is_sought`).
    """
    briefing = briefing_of(turn)
    has_met = turn.state.scenes.get(other.name, -1) >= turn.setting.step_at(turn.day, 0)
    is_due = not has_met or is_sought(turn, other.name)
    return briefing.lets_on.get(other.name, ()) if briefing and is_due else ()


def _doing(turn: ResidentTurn) -> str:
    """Return a resident's act for the prompt.

    If the act reveals a secret and has no text for others (`Act.seen`), return only its place.
    """
    act = turn.state.act
    if act and act.why == "plan" and not act.seen and hides_act(turn, act):
        return f"({words_of(act.place)})"
    return doing(turn)


def _stance(turn: ResidentTurn, other: str) -> str:
    """Return a resident's attitude toward another in words."""
    keeps_away = "keeps out of the other's way" if other in avoided_by(turn) else ""
    return "; ".join(each for each in (turn.state.stances.get(other, ""), keeps_away) if each)


def _number_plans(both: Sequence[ResidentTurn], number: int) -> tuple[dict[int, Block], dict[int, Block]]:
    """Return the blocks of the rest of each resident's day that the prompt may show, by number.

    Args:
        number: the last number of a memory; the blocks have the numbers after it.
    """
    plans = []
    for turn in both:
        shown = [each for each in rest_of_day(turn) if not hides_act(turn, each) or (each.secret and each.seen)]
        plans.append(dict(enumerate(shown, number + 1)))
        number += len(shown)
    return plans[0], plans[1]


def _lines(turn: ResidentTurn, scene: Scene, begun: Sequence[SceneBegan]) -> tuple[SpokenLine, ...]:
    """Return the spoken lines, each with the speaker's own records that it passes on."""
    names = begun[0].by, begun[0].partner
    numbered = [(whose, id_) for whose, row in zip(names, begun, strict=True) for id_ in row.mind]
    lines = []
    for line in scene.lines:
        by = _who(turn, names[turn.name == names[0]], line.who)
        if by and line.says.strip():
            told = [numbered[n - 1] for n in dict.fromkeys(line.tells) if 0 < n <= len(numbered)]
            passed = tuple(id_ for whose, id_ in told if whose == by)
            lines.append(SpokenLine(by=by, text=line.says.strip(), told=passed))
    return tuple(lines)


def _who(one: ResidentTurn, other: str, said: str) -> str:
    """Return the name of the one of two residents that a reply means; "": neither."""
    name = find_name(one.setting, said)
    return name if name in (one.name, other) else ""


async def _keep(
    one: ResidentTurn,
    other: str,
    scene: Scene,
    both: Sequence[SceneBegan],
    minds: Sequence[Sequence[Record]],
    lines: tuple[SpokenLine, ...],
) -> None:
    """Write a scene into a resident's stream, and change its day's plan accordingly.

    Args:
        both: the rows with which the scene began, one for each of the two residents.
        minds: the memories of each of them in the prompt, in the same order.
    """
    at = int(one.name != both[0].by)
    begun, first, places = both[at], 1 + at * len(both[0].mind), both[at].places
    own = {each.id: each for each in minds[at]}
    start = 1 + sum(len(each.mind) for each in both)
    numbers = range(start, start + sum(len(each.plan) for each in both))
    plan = dict(enumerate(begun.plan, start + at * len(both[0].plan)))
    kept = [each for each in scene.remember if _who(one, other, each.who) == one.name and each.text.strip()]
    weight = float(max((each.weight for each in kept), default=PASSING))
    spoken = await one.build(*spoken_drafts(one.name, other, begun.step, lines, weight))
    evidence = tuple(each.id for each in spoken)
    passed = {id_ for line in lines for id_ in line.told if line.by == other}
    told = [record for record in minds[1 - at] if record.id in passed]
    taken = taken_of(one, other, scene, kept, places, talked=bool(lines))
    heard = await _heard_now(one, told, [*(each.text for each in taken.memo), *(each.text for each in scene.results)])
    # the limits of a reply's texts do not apply to memories, which a town's file or a user may have written
    in_full = [Learned.model_construct(text=each.text) for each in heard]
    taken = taken.model_copy(update={"memo": [*taken.memo, *in_full]})
    every = await _new_agreements(one, other, taken, told, places)
    weights = [*(float(each.weight) for each in kept), *(each.importance or IMPORTANCE for each in heard)]
    thoughts = {
        normalised(each.text): replace(each.as_thought(one, other, evidence), importance=importance)
        for each, importance in zip_longest(every, weights[: len(taken.memo)], fillvalue=IMPORTANCE)
        if isinstance(each, Kept)
    }
    for memory in kept:
        draft, corrected = thoughts.get(normalised(memory.text.strip())), {*memory.corrects}
        if draft and (false := [id_ for n, id_ in enumerate(begun.mind, first) if id_ in own and n in corrected]):
            thoughts[normalised(draft.text)] = replace(draft, data={**draft.data, CORRECTS: [*false]})
    for result in scene.results:
        if result.number in numbers:
            draft = outcome_draft(one.name, result.text, IMPORTANCE, evidence, (other,), {TOGETHER: [other]})
            thoughts[normalised(result.text)] = draft
    if lines and not thoughts:
        where = _where(one, _place(one))
        text = f"{one.name} and {other} met {where if where == ON_THE_WAY else f'at {where}'}"
        thoughts[text] = RecordDraft(
            text=text, kind="observation", by=one.name, importance=weight, keywords=(other.lower(),)
        )
    records = (*spoken, *await one.build(*thoughts.values()))
    clear = clears(one, *minds[at]) and not any(each.lets_on for each in both)
    ids, outcome = tuple(each.id for each in records), outcome_of(scene, talked=bool(lines))
    if lines:
        until = max(begun.step + minutes_of(lines) * one.profile.a_minute, one.step)
        talked = Talked(step=one.step, partner=other, lines=lines, until=until, since=begun.step, records=ids)
        one.write(talked, records)
    by = _who(one, other, scene.declined_by)
    stance = next((each for each in scene.stance if _who(one, other, each.who) == one.name), SceneStance(who=""))
    one.write(
        Met(
            step=one.step,
            other=other,
            outcome=outcome,
            by=by,
            records=() if lines else ids,
            gathered=sum(each.importance or 0.0 for each in records if each.kind != "chat"),
            stance=stance.text.strip(),
            avoids=stance.avoids,
            clears=tuple(each.id for each in records if each.kind != "chat") if clear else (),
        ),
        () if lines else records,
    )
    _learn_places(one, scene, places)
    why = kept[0].text.strip() if kept else f"{one.name} met {other}"
    change_day(one, {each.number: each for each in scene.changes}, plan, why)
    settled = [plan[each.number] for each in scene.results if each.number in plan]
    others_plan = dict(enumerate(both[1 - at].plan, start + (1 - at) * len(both[0].plan)))
    shared = [others_plan[each.number] for each in scene.results if each.number in others_plan]
    settled += [  # an appointment with the other is in both plans
        own for own in plan.values() if any({one.name, other} <= {*own.agreed} & {*block.agreed} for block in shared)
    ]
    if lines:  # a later act for speaking to the other within minutes is done with this talk
        soon = range(one.minute + 1, one.minute + SHORTLY_BEFORE + 1)
        settled += [each for each in one.state.blocks if each.whom == (other,) and each.start in soon]
    close_questions(one, settled, (other,))
    for each in every:
        if each.appointment and each.comes:
            take_up(one, each.appointment, each.text)


async def _new_agreements(
    one: ResidentTurn, other: str, taken: Taken, told: Sequence[Record], places: Sequence[str]
) -> list[Kept]:
    """Return what a resident keeps of a meeting (`keep`), without appointments that the resident agreed on earlier."""
    known = [at for _, at in await one.recall_appointments()]
    return [
        each
        for each in keep(one, other, taken, told, places, known)
        if each.appointment is None or not any(_is_agreed_already(one, each.appointment, at) for at in known)
    ]


async def _heard_now(turn: ResidentTurn, told: Sequence[Record], remembered: Sequence[str]) -> list[Record]:
    """Return the memories in `told` that the resident keeps word for word.

    Left out are memories that the resident already knew or remembers in other words, and memories with an appointment,
    which `keep` adds.

    Args:
        told: memories that the other resident told in the talk.
        remembered: the texts that the resident remembers of the talk in its own words.
    """
    new = [each for each in told if appointment_of(each.data) is None and not repeats(each.text, remembered)]
    texts = [each.text for each in new]
    memory = turn.resident.memory
    same = [await memory.find_same(kind, texts) for kind in TELLABLE] if texts else []
    known = {text for found in same for text, record in found.items() if record.kind in TELLABLE}
    return [each for each in new if normalised(each.text) not in known]


def _is_agreed_already(turn: ResidentTurn, new: Appointment, known: Appointment) -> bool:
    """Return whether `known` is the new appointment, and includes the resident and all people of the new one."""
    return new.is_same(known) and {turn.name, *new.who} <= {*known.who, known.host}


def outcome_of(scene: Scene, *, talked: bool) -> Literal["talked", "passed", "declined"]:
    """Return the outcome of a scene: one of the two declined to talk, they talked, or they passed each other."""
    return "declined" if scene.declined_by.strip() else "talked" if talked else "passed"


def taken_of(
    one: ResidentTurn,
    other: str,
    scene: Scene,
    kept: Sequence[SceneMemory],
    places: Sequence[str],
    *,
    talked: bool,
) -> Taken:
    """Convert what a resident remembers of a scene into `Taken`, the reply after talks outside of scenes."""
    named, agreed = by_words(places), list[Agreed]()
    for each in scene.agreed if talked else ():
        who = [find_name(one.setting, name) for name in each.who] or [one.name, other]
        address = find_place(each.place, named)
        parts = {find_name(one.setting, part.who): part.what.strip() for part in each.parts}
        what = {name: _of_own(parts.get(name, each.what), name) for name in dict.fromkeys(who)}
        told = [f"{name}: {what[name]}" for name in what] if len({*parts.values()}) > 1 else [each.what]
        told = [*what.values()] if len(who) == 1 else told
        agreed.append(
            Agreed.model_construct(
                text=f"Agreed by {', '.join(who)}: {'; '.join(told)}",
                what=what.get(one.name, each.what),
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
    return Taken(about=other, memo=memo[:6], agreed=agreed)


def _of_own(what: str, name: str) -> str:
    """Return an act in the form that follows a name: "Ann keeping a table" becomes "keeping a table" for Ann."""
    return what.removeprefix(f"{name} ") or what


def _learn_places(turn: ResidentTurn, scene: Scene, places: Sequence[str]) -> None:
    """Add the places of agreements, and the sectors that contain them, to the places the resident knows."""
    named = by_words(places)
    told = {find_place(each.place, named) for each in scene.agreed} - {""}
    addresses = {str(turn.setting.addresses[each].upto(level)) for each in told for level in (2, 3)}
    if new := tuple(sorted(addresses - turn.state.knows)):
        turn.write(Perceived(step=turn.step, seen=(), places=new))


async def overhear_scene(
    turn: ResidentTurn, speakers: Sequence[str], text: str, weight: float, *, is_clear: bool
) -> None:
    """Let a resident nearby remember the overheard line of a scene.

    Args:
        weight: importance of the memory (1 to 10).
        is_clear: whether none of the speakers could reveal a secret in the scene.
    """
    keywords = tuple(name.lower() for name in speakers)
    draft = RecordDraft(text=text, kind="observation", by=turn.name, importance=weight, keywords=keywords)
    records = await turn.build(draft)
    ids = tuple(each.id for each in records)
    kept = ids if is_clear and clears(turn) else ()
    turn.write(Perceived(step=turn.step, seen=(), records=ids, gathered=PASSING, clears=kept), records)
