"""The encounters of a step: users speak, residents talk or meet in scenes, others overhear them.

A talk with a user has one exchange per step, because the user's words are not known in advance. Each line is written at
once. When the talk is over, both partners remember the whole talk, as after any other talk.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from mindstream.memory.store.record import RecordDraft
from mindstream.together import together
from mindstream_town.embody.living import Deed, End, Leave, Say, leave
from mindstream_town.events import Declined, Overheard, Spoke, SpokenLine
from mindstream_town.paper.prompts import ShouldAnswer
from mindstream_town.paper.talk import converse as converse_by_lines
from mindstream_town.paper.talk import overhear
from mindstream_town.residents.converse import (
    OF_OTHER,
    OF_PEOPLE,
    come_to_mind,
    converse,
    keep_said,
    passed_on,
    say_line,
)
from mindstream_town.residents.plan import take_up
from mindstream_town.residents.sight import is_in_sight, people_seen
from mindstream_town.residents.turn import Resident, ResidentTurn
from mindstream_town.scenes.day import (
    can_be_spoken_to,
    is_appointment_due,
    may_meet,
    partners_of_errand,
    settles_in_short,
    tells_in_passing,
    waits_for_partners,
)
from mindstream_town.scenes.talk import begin_scene, finish_scene, overhear_scene, settle_in_short, tell_in_passing
from mindstream_town.setting import Setting
from mindstream_town.state import ResidentState
from mindstream_town.world.whereabouts import Whereabouts

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
    """Let the resident `turn`, whom a user controls, say something that `other` does not hear.

    The two residents no longer see each other.
    """
    if turn.state.talk:
        _say(turn, other, SpokenLine(by=turn.name, text=text))
        return
    await _decline(turn, other, (SpokenLine(by=turn.name, text=text),), by=other.name, heard=False)


async def hear(turn: ResidentTurn, speaker: str, to: str, text: str) -> None:
    """Let a resident remember what a user said aloud to another resident.

    Called for each free resident in sight of the user, if the user spoke to all (`Say.to_all`).
    """
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
    """End a talk: both residents remember the lines, or that one of the two did not answer."""
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
    """Return whether a resident wants to answer.

    - Never, while it sleeps, talks or has no act, or in a town without talks.
    - Otherwise always, if a user controls the resident.
    - Otherwise as the model decides.
    """
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
    """Record that a resident did not answer, as a memory of the speaker.

    Args:
        by: name of the resident who did not answer.
        heard: whether the resident who did not answer heard the words, and so remembers them, too.
    """
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


@dataclass
class Encounters:
    """The encounters of one step.

    Attributes:
        turns: turns by name. A resident without a turn gets one when a user or another resident involves it.
        deeds: actions of users, by the name of the controlled resident.
    """

    setting: Setting
    residents: Mapping[str, Resident]
    whereabouts: Whereabouts
    step: int
    turns: dict[str, ResidentTurn]
    deeds: Mapping[str, Deed]

    async def take_place(self) -> None:
        """Run the encounters of the step in this order:

        1. what users say
        2. ends of talks with users
        3. ends of scenes
        4. talks between residents
        5. departures of users

        A finished talk with a user is therefore closed (2) before one of the speakers begins a talk with a resident
        (4).
        """
        busy = await self._say()
        await self._end_talks()
        await self._end_scenes()
        await self._talk(busy)
        for name in sorted(name for name, deed in self.deeds.items() if isinstance(deed, Leave)):
            if self.turns[name].state.embodied:
                await leave(self.turns[name])

    async def _say(self) -> set[str]:
        """Let residents say what their users typed; return the names of those who have spoken or were spoken to."""
        busy: set[str] = set()
        for name, deed in sorted(self.deeds.items()):
            if isinstance(deed, Say) and deed.to not in busy:
                busy |= {name, deed.to}
                heard = self._is_heard(name, deed.to)
                await (speak if heard else speak_unheard)(self.turns[name], self._turn_of(deed.to), deed.text)
                for each in self._hearers(name, busy) if deed.to_all else ():
                    await hear(self._turn_of(each), name, deed.to, deed.text)
        return busy

    async def _talk(self, busy: set[str]) -> None:
        """Run the talks that residents want to begin, in the order of names; each resident has at most one.

        In the mode `paper`, the talks between residents run at the same time, after all other talks.
        """
        by_lines: list[tuple[ResidentTurn, ResidentTurn]] = []
        for name in sorted(self.turns):
            wish = self.turns[name].wish
            if not wish or {name, wish} & busy or isinstance(self.deeds.get(wish), Leave):
                continue
            other = self._turn_of(wish)
            if other.state.embodied:
                busy |= {name, wish}
                await approach(self.turns[name], other)
                continue
            if self.turns[name].lives_in_scenes:
                busy |= await self._meet(name, wish, busy)
                continue
            busy |= {name, wish}
            if self.turns[name].is_paper("talker"):
                by_lines.append((self.turns[name], other))
            else:
                await converse(self.turns[name], other)
        for talk in await together(*(converse_by_lines(*both) for both in by_lines)):
            for name in self._hearers(talk.speakers[0], busy):
                await overhear(self._turn_of(name), talk)

    async def _end_scenes(self) -> None:
        """End scenes for both residents if one of the two has ended the scene early or is now controlled by a user.

        Then let residents in sight who do not talk overhear the scenes that end in this step.
        """
        for name, turn in sorted(self.turns.items()):
            scene = self.residents[name].state.scene
            for each in (name, scene.partner) if scene and (turn.state.scene is None or turn.state.embodied) else ():
                one = self._turn_of(each)
                if one.state.scene:
                    await finish_scene(one, one.state.scene, self.residents[one.state.scene.partner])
        for _, turn in sorted(self.turns.items()):
            await self._let_overhear(turn)

    async def _let_overhear(self, turn: ResidentTurn) -> None:
        """Let residents in sight who do not talk overhear the scene that this resident has ended, if any."""
        if turn.overheard:
            others, text, weight, is_clear = turn.overheard
            for each in self._hearers(turn.name, {turn.name, *others}) if text else ():
                await overhear_scene(self._turn_of(each), (turn.name, *others), text, weight, is_clear=is_clear)
            turn.overheard = None

    async def _meet(self, name: str, other: str, busy: set[str]) -> set[str]:
        """Let two residents meet if both are free; return the names of all who meet.

        A scene begins, with two exceptions. One short request settles the matter if others have come for the same
        appointment or errand, or if `settles_in_short`. A resident tells its news without a model if
        `tells_in_passing`.
        """
        first, second = self._turn_of(name), self._turn_of(other)
        if not may_meet(self.setting, self.step, first.state, second.state):
            return set()
        near = [
            each
            for each in sorted({*people_seen(first.percepts, self.residents)} - {name, other})
            if not self._state_of(each).asleep
        ]
        where = self.setting, self.step
        for one in (first, second):
            if partners := partners_of_errand(self.setting, one.state, self.step):
                seen = {first.name, second.name, *near} & partners
                free = {name for name in seen if can_be_spoken_to(self._state_of(name), self.setting, self.step)} - busy
                if free < partners and waits_for_partners(self.setting, one.state, self.step):
                    return set()
                if len(free) > 1:
                    await settle_in_short([one, *(self._turn_of(each) for each in sorted(free))])
                    await self._let_overhear(one)
                    return {one.name, *free}
        is_due = is_appointment_due(*where, first.state, second.state)
        rest = [self._turn_of(each) for each in near if each not in busy] if is_due else []
        rest = [each for each in rest if is_appointment_due(*where, first.state, each.state)]
        if rest or settles_in_short(*where, first.state, second.state):
            await settle_in_short([first, second, *rest])
            await self._let_overhear(first)
            return {name, other, *(each.name for each in rest)}
        both = (first, second)
        if any(tells_in_passing(*where, one.state, two.state) for one, two in (both, both[::-1])):
            await tell_in_passing(both)
            return {name, other}
        await begin_scene(first, second, near)
        return {name, other}

    def _state_of(self, name: str) -> ResidentState:
        return self.turns[name].state if name in self.turns else self.residents[name].state

    def _turn_of(self, name: str) -> ResidentTurn:
        """Return a resident's turn in this step; create the turn if there is none."""
        if name not in self.turns:
            resident, step = self.residents[name], self.step
            resident.begin(self.setting.moment(step))
            self.turns[name] = ResidentTurn(resident, step, self.setting, resident.state)
        return self.turns[name]

    def _hearers(self, speaker: str, busy: Collection[str]) -> list[str]:
        """Return the residents in sight of the speaker who are awake, not talking, and not in `busy`."""
        where = self.whereabouts
        near = (name for name in where.residents_around(speaker) if name not in busy)
        return sorted(
            name
            for name in near
            if is_in_sight(self.setting, where.spots[speaker], where.spots[name])
            and not (state := self.turns[name].state if name in self.turns else self.residents[name].state).asleep
            and not state.is_talking(self.step)
            and state.act is not None
        )

    def _is_heard(self, name: str, other: str) -> bool:
        spots = self.whereabouts.spots
        return other in spots and name in spots and is_in_sight(self.setting, spots[name], spots[other])

    async def _end_talks(self) -> None:
        """End talks of residents that users control, if one of the two speakers has ended or left the talk.

        A talk that has timed out is ended too.
        """
        for name, resident in self.residents.items():
            if not resident.state.embodied:
                continue
            deed, turn = self.deeds.get(name), self.turns.get(name)
            state = turn.state if turn else resident.state
            if state.talk:
                partner = state.talks_with
                other = self.turns[partner].state if partner in self.turns else self.residents[partner].state
                goes_on = state.partner == partner and other.partner == name
                if not goes_on or isinstance(deed, End | Leave):
                    await end_talk(self._turn_of(name), self._turn_of(partner))
