"""A user controls a resident, or a visitor, while the town runs.

me = await town.embody("Maya", as_visitor=True, at="the Ville:Hobbs Cafe:cafe")
await me.say("Good morning!", "Isabella Rodriguez")
print((await me.look()).people)
await me.leave()

The user's acts are like those of any resident: an act takes at least one step, others see it, and the resident
remembers it. Time passes only while a method is awaited: `go` and `do` run until the act is over, `wait` as long as it
is asked to. These three end early when a resident speaks to the user, and return that resident's name. With
`waits=False`, `go` and `do` run one step, and the caller lets time pass with `wait`.
"""

from __future__ import annotations

from collections.abc import Callable

from mindstream import redaction
from mindstream.errors import InputError
from mindstream_town.embody.living import LONGEST_DONE, LONGEST_SAID, WAYS, Deed, Do, End, Go, Leave, Say, Step, Way
from mindstream_town.embody.outlook import OpenTown, Surroundings, people_around, survey
from mindstream_town.events import SpokenLine
from mindstream_town.inspect.lookup import find_place, find_resident
from mindstream_town.residents.person import Person
from mindstream_town.residents.places import may_use, words_of
from mindstream_town.residents.turn import Resident
from mindstream_town.setting import Setting
from mindstream_town.world.tiles import TileWorld
from mindstream_town.world.tree import ARENA, WORLD, Spot


def find_entrance(town: OpenTown, person: Person, typed: str) -> str:
    """Return the place where a visitor enters: the typed place, or a public one that is open.

    Raises:
        InputError: the typed place does not exist, or the visitor may not enter it now; or no place was typed, and no
            public place is open.
    """
    setting = town.setting
    if typed:
        return find_open_place(town, person, typed)
    when = setting.when(max(town.step, 0))
    open_to_all = [
        str(each)
        for each in setting.world.places
        if each.level == ARENA and may_use(setting, person, str(each)) and setting.rules.is_open(each, when)
    ]
    if not open_to_all:
        raise InputError(
            f"no public place in {setting.name} is open now: wait, or name a place with --at where a resident can let"
            " you in"
        )
    return open_to_all[0]


def find_open_place(town: OpenTown, person: Person, typed: str) -> str:
    """Return the address of the typed place, if the person may enter it now.

    Raises:
        InputError: there is no such place; the place is closed; or the place is private, and no resident is there to
            admit the person.
    """
    setting, place = town.setting, find_place(town.setting, typed)
    address = setting.addresses[place]
    if not may_use(setting, person, place) and not _is_let_in(town, person, place):
        raise InputError(f"{words_of(place)} is not open to you, and no resident is there to let you in")
    when = setting.when(max(town.step, 0))
    if person.name not in setting.rules.owners(address) and not setting.rules.is_open(address, when):
        raise InputError(f"{words_of(place)} is closed now")
    return place


def find_beside(town: OpenTown, person: Person, spot: Spot, way: Way) -> Spot:
    """Return the neighbouring spot in a direction, if the person can enter it now.

    Raises:
        InputError: the neighbouring spot is a wall or off the map, or belongs to a closed or private place; or the
            town has no map of tiles.
    """
    world = town.setting.world
    if not isinstance(world, TileWorld):
        raise InputError(f"{town.setting.name} has no map of tiles, so single steps are not possible: go to a place")
    there = (spot[0] + WAYS[way][0], spot[1] + WAYS[way][1])
    if not world.walkable(there):
        raise InputError("a wall or the edge of the map blocks this direction")
    place = world.address_at(there)
    if place.level > WORLD and world.arena_of(there) != world.arena_of(spot):
        find_open_place(town, person, str(place.upto(ARENA)))
    return there


def _is_let_in(town: OpenTown, person: Person, place: str) -> bool:
    """Return whether a resident who may use the place is awake in the house, and so can let the person in."""
    setting, step = town.setting, max(town.step, 0)
    house = setting.addresses[place].upto(2)
    return any(
        name != person.name
        and not other.state.asleep
        and may_use(setting, other.person, place)
        and setting.world.address_at(other.state.spot(step)).is_within(house)
        for name, other in town.residents.items()
    )


MINUTES = 15
"""Default duration of an activity, in minutes."""
ALL = "all"
"""The addressee of words that are said to all residents in sight."""


class Embodied:
    """A resident or visitor under a user's control. Created by `Town.embody`.

    Attributes:
        waits: whether `go` and `do` wait until the act is over.
        on_step: called with the step's number after each step.
    """

    def __init__(self, town: OpenTown, resident: Resident, *, waits: bool = True) -> None:
        self.town, self.resident, self.waits = town, resident, waits
        self.on_step: Callable[[int], None] = lambda _: None

    @property
    def name(self) -> str:
        """The resident's name."""
        return self.resident.name

    @property
    def talks_with(self) -> str:
        """The resident who waits for the user's answer; "": none."""
        state = self.resident.state
        return state.talks_with if state.talk else ""

    async def go(self, place: str) -> str:
        """Walk to a place.

        Args:
            place: the address of the place, the end of the address, or the name of the place in words.

        Returns:
            The resident who interrupted the walk by speaking to the user; "": none.

        Raises:
            InputError: there is no such place, or it is not open to the user.
            ModelError: a model is not available, or its budget is spent; the step has no effect.
            StorageError: rows could not be written; the step has no effect.
        """
        return await self._do(Go(place=find_open_place(self.town, self.resident.person, place)))

    async def step(self, way: Way) -> str:
        """Walk to the neighbouring tile in a direction; the resident does not remember this.

        Up to two steps of the town pass.

        Returns:
            The resident who has spoken to the user; "": none.

        Raises:
            InputError: a wall, the edge of the map, or a closed or private place is in the way; or the town has no map
                of tiles.
            ModelError: a model is not available, or its budget is spent; the step has no effect.
            StorageError: rows could not be written; the step has no effect.
        """
        heard, here = self.resident.state.talk, self.resident.state.spot(max(self.town.step, 0))
        await self.perform(Step(spot=find_beside(self.town, self.resident.person, here, way)))
        return self._speaks_since(heard) or await self._live(self.town.step + 1)

    async def do(self, what: str, minutes: int = MINUTES, place: str = "") -> str:
        """Do something for some minutes, here or at `place`; return the resident who interrupted the act by speaking to
        the user, or "". Raises the errors of `go`; also InputError if the text is empty or too long."""
        there = find_open_place(self.town, self.resident.person, place) if place else ""
        return await self._do(Do(what=_told(what, LONGEST_DONE), minutes=minutes, place=there))

    async def say(self, text: str, to: str = "") -> None:
        """Say something, and run one step of the town.

        In this step the addressee answers or declines. An addressee that a user controls does neither.

        Args:
            to: the name of the addressee; ALL: all residents in sight; "": the partner of the current talk, or all
                residents in sight if there is no talk. Words for all residents are answered by the partner of the
                current talk. Without a talk, they are answered by the nearest resident who is free, or if none is
                free, by the nearest who is awake. The others remember the words.

        Raises:
            InputError: the text is empty or too long; or there is no such resident; or the resident is asleep or not in
                sight.
        """
        told = _told(text, LONGEST_SAID)
        awake = [each for each in self._people() if not each.state.asleep]
        near, step = [each.name for each in awake], max(self.town.step, 0)
        to_all = to.casefold() == ALL or not (to or self.talks_with)
        free = [each.name for each in awake if not each.state.is_talking(step)]
        whom = self.talks_with or next(iter((*free, *near)), "") if to_all or not to else self._name(to)
        if not whom:
            raise InputError("no one is in sight who could hear you")
        if whom not in near:
            raise InputError(
                f"{whom} is asleep or not in sight" if whom != self.name else "you cannot talk to yourself"
            )
        await self.perform(Say(text=told, to=whom, to_all=to_all))

    async def decline(self) -> None:
        """End the talk with a resident, or refuse it if the user has not answered yet.

        Raises:
            InputError: there is no talk.
        """
        if not self.talks_with:
            raise InputError("there is no talk to end")
        await self.perform(End())

    async def wait(self, minutes: float | None = None, *, until: int | None = None) -> str:
        """Let time pass: some minutes, up to a step, or until the current act or talk is over.

        Returns:
            The resident who ended the wait by speaking to the user; "": none.
        """
        now, profile = self.town.step, self.town.setting.profile
        if until is None and minutes is not None:
            until = now + max(1, round(minutes * 60 / profile.step_s))
        return await self._live(until)

    async def look(self, since: int | None = None) -> Surroundings:
        """Return the surroundings, and with `since` also the events after that step. Nothing changes."""
        return await survey(self.town, self.resident, since)

    async def leave(self) -> None:
        """Give up control: a resident plans the rest of its day itself; a visitor leaves the town."""
        if self.resident.state.embodied:
            await self.perform(Leave())
            await self.town.save()

    async def perform(self, deed: Deed) -> None:
        """Run the next step with this action of the user, and no further step."""
        await self.town.live_with({self.name: deed}, self.town.step + 1, lambda: False, self.on_step)

    async def _do(self, deed: Deed) -> str:
        heard = self.resident.state.talk
        await self.perform(deed)
        return self._speaks_since(heard) or (await self._live(None) if self.waits else "")

    async def _live(self, until: int | None) -> str:
        """Run up to a step, but stop if another resident speaks to this resident.

        Args:
            until: the step; None: run until the current act ends.

        Returns:
            The name of the resident who spoke; "": none.
        """
        doing, heard = self.resident.state.act, self.resident.state.talk

        def stop() -> bool:
            is_done = until is None and self.resident.state.act is not doing
            return is_done or bool(self._speaks_since(heard))

        end = doing.until if until is None and doing is not None else until or self.town.step + 1
        if end > self.town.step:
            await self.town.live_with({}, end, stop, self.on_step)
        return self._speaks_since(heard)

    def _speaks_since(self, heard: tuple[SpokenLine, ...]) -> str:
        """Return the resident who has spoken to the user since these lines; "": none."""
        talk = self.resident.state.talk
        return talk[-1].by if talk and talk != heard and talk[-1].by != self.name else ""

    def _name(self, typed: str) -> str:
        return find_resident(self.town.setting, typed)

    def _people(self) -> list[Resident]:
        return people_around(self.town, self.resident)


def _told(text: str, most: int) -> str:
    """Return the text on one line, redacted if `--redact` is given.

    Raises:
        InputError: the text is empty, or has more than `most` characters.
    """
    told = " ".join(redaction.clean(text).text.split())
    if not 0 < len(told) <= most:
        raise InputError(f"the text must have 1 to {most} characters; it has {len(told)}")
    return told


def visitor(setting: Setting, name: str) -> Person:
    """Return a person for a visitor, who knows the public places."""
    town = setting.world.name
    nobody = Person(name=name, home=town, visits=True)
    known = {
        str(each.upto(level))
        for each in setting.world.places
        if each.level >= 2
        for level in (2, each.level)
        if may_use(setting, nobody, str(each))
    }
    return nobody.model_copy(update={"knows": tuple(sorted(known))})
