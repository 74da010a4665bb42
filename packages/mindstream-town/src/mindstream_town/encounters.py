"""The encounters of a step: users speak, residents talk or meet in scenes, others overhear them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from mindstream.together import together
from mindstream_town.embody.living import Deed, End, Leave, Say, leave
from mindstream_town.embody.talk import approach, end_talk, hear, speak, speak_unheard
from mindstream_town.paper.talk import converse as converse_by_lines
from mindstream_town.paper.talk import overhear
from mindstream_town.residents.converse import converse
from mindstream_town.residents.sight import is_in_sight, people_seen
from mindstream_town.residents.turn import Resident, ResidentTurn
from mindstream_town.scenes.day import may_meet
from mindstream_town.scenes.talk import converse_in_scene
from mindstream_town.setting import Setting
from mindstream_town.world.whereabouts import Whereabouts


@dataclass
class Encounters:
    """The encounters of one step.

    Attributes:
        turns: turns by name; a resident without a turn gets one if a user or another resident involves it.
        deeds: actions of users, by the resident that the user controls.
    """

    setting: Setting
    residents: Mapping[str, Resident]
    whereabouts: Whereabouts
    step: int
    turns: dict[str, ResidentTurn]
    deeds: Mapping[str, Deed]

    async def take_place(self) -> None:
        """Run in this order: words of users, ends of talks with users, talks between residents, departures of users.

        So a talk that is over ends before one of its two partners begins another talk.
        """
        busy = await self._say()
        await self._end_talks()
        await self._talk(busy)
        for name in sorted(name for name, deed in self.deeds.items() if isinstance(deed, Leave)):
            if self.turns[name].state.embodied:
                await leave(self.turns[name])

    async def _say(self) -> set[str]:
        """Run the words of users; return the names of those who have spoken or were spoken to."""
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
        """Run the talks that residents want to begin, in the order of names; each resident has at most one."""
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
                busy |= await self._meet(name, wish)
                continue
            busy |= {name, wish}
            if self.turns[name].is_paper("talker"):
                by_lines.append((self.turns[name], other))
            else:
                await converse(self.turns[name], other)
        for talk in await together(*(converse_by_lines(*both) for both in by_lines)):
            for name in self._hearers(talk.speakers[0], busy):
                await overhear(self._turn_of(name), talk)

    async def _meet(self, name: str, other: str) -> set[str]:
        """Run a scene of two residents, if both are still free; return their names. Others in sight may overhear it."""
        first, second = self._turn_of(name), self._turn_of(other)
        if not may_meet(self.setting, self.step, first.state, second.state):
            return set()
        near = [
            each
            for each in sorted({*people_seen(first.percepts, self.residents)} - {name, other})
            if not (self.turns[each].state if each in self.turns else self.residents[each].state).asleep
        ]
        await converse_in_scene(first, second, [self._turn_of(each) for each in near])
        return {name, other}

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
        """End each talk with a user that one of the two partners has ended, left, or let time out."""
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
