"""Check whether residents follow their plans and the rules of places, and count impossible acts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mindstream_town.events import Acted, Talked
from mindstream_town.inspect.history import History
from mindstream_town.world.routes import read_walk
from mindstream_town.world.tree import ARENA, SECTOR, Spot


@dataclass(frozen=True)
class OddAct:
    """An act at a place where, or a time when, the resident was not allowed to be."""

    name: str
    time: str
    what: str
    place: str
    why: str


@dataclass(frozen=True)
class Conduct:
    """The conduct of all residents.

    Attributes:
        planned, kept: waking minutes with a planned place, and those of them spent in the arena of that place.
        acts, believable: acts at a place, and the permitted ones of them. An act is permitted if the place is not full
            and the resident may enter it: it is an owner, the place is open to it now, or an owner is awake in the
            house.
        not_believable: number of other acts by reason. odd: the other acts, by resident and time.
        in_walls: steps inside a wall. asleep_elsewhere: sleep outside the resident's own house.
        talking_asleep: conversations of sleeping residents.
    """

    planned: int
    kept: int
    acts: int
    believable: int
    not_believable: dict[str, int]
    in_walls: int
    asleep_elsewhere: int
    talking_asleep: int
    odd: tuple[OddAct, ...] = ()

    @property
    def adherence(self) -> float:
        """The share of planned minutes that were spent at the planned place."""
        return self.kept / self.planned if self.planned else 1.0

    @property
    def believable_share(self) -> float:
        """The share of permitted acts."""
        return self.believable / self.acts if self.acts else 1.0


def examine_conduct(history: History) -> Conduct:
    """Compare all acts with plans, rules of places, and physical limits."""
    planned = kept = acts = walls = elsewhere = talking = 0
    odd: list[OddAct] = []
    for name in history.names:
        minutes = [is_kept for _, is_kept in _minutes(history, name)]
        planned, kept = planned + len(minutes), kept + sum(minutes)
        for _, acted in history.events(name, Acted):
            act = acted.act
            tiles = read_walk(act.path)
            walls += sum(not history.setting.world.walkable(tile) for tile in tiles)
            elsewhere += act.asleep and not _is_home(history, name, tiles[-1])
            if act.place and act.arrives <= history.step and history.state(name, act.arrives).act == act:
                acts += 1
                if why := _objection(history, name, act.place, act.arrives):
                    odd.append(OddAct(name, history.clock(act.arrives), act.what, act.place, why))
        talking += sum(_slept(history, name, talk) for _, talk in history.events(name, Talked))
    why_not = dict(Counter(each.why for each in odd))
    return Conduct(planned, kept, acts, acts - len(odd), why_not, walls, elsewhere, talking, tuple(odd))


def trace_adherence(history: History, steps: Sequence[int]) -> list[float]:
    """Return, for each step, the share of the planned minutes up to it that were spent at the planned place."""
    minutes = sorted(each for name in history.names for each in _minutes(history, name))
    shares, at, kept = list[float](), 0, 0
    for step in steps:
        while at < len(minutes) and minutes[at][0] <= step:
            kept += minutes[at][1]
            at += 1
        shares.append(kept / at if at else 1.0)
    return shares


def _minutes(history: History, name: str) -> Iterator[tuple[int, bool]]:
    """Yield each waking minute with a planned place, and whether the resident spent it there."""
    setting = history.setting
    for step in range(0, history.step + 1, setting.profile.a_minute):
        state = history.state(name, step)
        block = state.block_at(setting.minute(step))
        if state.day != setting.day(step) or block is None or block.asleep or block.place not in setting.addresses:
            continue
        wanted = setting.addresses[block.place].upto(ARENA)
        yield step, setting.world.address_at(state.spot(step)).is_within(wanted)


def _is_home(history: History, name: str, spot: Spot) -> bool:
    home = history.setting.addresses[history.setting.people[name].home].upto(SECTOR)
    return history.setting.world.address_at(spot).is_within(home)


def _slept(history: History, name: str, talk: Talked) -> bool:
    """Return whether a resident was asleep when a talk began."""
    before = history.state(name, talk.step - 1)
    return before.asleep and before.act is not None and before.act.until > talk.step


def _objection(history: History, name: str, place: str, step: int) -> str:
    """Return why an act at a place is not permitted; "" if it is permitted."""
    rules, at = history.setting.rules, history.setting.when(step)
    address = history.setting.addresses[place]
    owners = rules.owners(address)
    if not rules.may_enter(name, address, at):
        if not owners:
            return "closed"
        house = address.upto(SECTOR)
        if not any(
            owner in history.setting.people
            and not history.state(owner, step).asleep
            and history.place(owner, step).is_within(house)
            for owner in owners
        ):
            return "nobody let them in"
    capacity = rules.capacity(address)
    if capacity is not None:
        counted = rules.counted_at(address)
        if sum(history.place(each, step).is_within(counted) for each in history.names) > capacity:
            return "full"
    return ""
