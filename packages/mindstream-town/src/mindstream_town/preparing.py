"""Prepare a town file: a model reads its descriptions once and adds missing keys; existing keys stay.

Residents that have a `day` are skipped. If any place has a purpose, all places are skipped. So a second run changes
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.items import Array

from mindstream.errors import InputError, ModelError
from mindstream.models.prompt import ask
from mindstream.models.roles import Models
from mindstream_town.formats.town_file import TownFile, parse_town
from mindstream_town.prompts.plans import Dated, DayPart, PreparePlaces, PrepareResident, ResidentKeys, TownKeys
from mindstream_town.residents.converse import find_name
from mindstream_town.residents.person import Person
from mindstream_town.source import setting_of
from mindstream_town.world.tree import OBJECT, sector_of
from mindstream_town.world.world import minute_of


class Preparing:
    """A town file during its preparation.

    Attributes:
        prepared: names of the residents, and `places`, to which keys were added.

    Raises:
        InputError: the text is not a valid town file.
    """

    def __init__(self, text: str, folder: Path) -> None:
        self._folder, self._before = folder, text
        self._town = self._read(text)
        self._setting = setting_of(self._town)
        self._document: Any = tomlkit.parse(text)
        every = [address for address in self._setting.addresses if ":" in address]
        self._places = sorted(each.partition(":")[2] for each in every)
        self.prepared: list[str] = []

    @property
    def left(self) -> list[str]:
        """What is still to be prepared: the names of the residents without a `day`, and `places` if no place has a
        purpose."""
        people = [each.name for each in self._town.residents if not each.day and each.name not in self.prepared]
        has_places = any(rule.purpose for _, rule in self._town.rules) or "places" in self.prepared
        return people if has_places else [*people, "places"]

    async def run(self, models: Models, on_done: Callable[[int, str], None] = lambda *_: None) -> str:
        """Ask the model for the missing keys and return the new text of the file.

        Raises:
            ModelError: a model call failed.
            InputError: the model's reply does not result in a valid town file.
        """
        left = self.left
        for number, name in enumerate(left):
            on_done(number, name)
            try:
                if name == "places":
                    self._add_places(await ask(models.of(PreparePlaces.role), self._ask_places()))
                else:
                    self._add_resident(name, await ask(models.of(PrepareResident.role), self._ask_resident(name)))
            except ModelError as error:
                raise ModelError(f"the model did not return the town file's entries for {name}: {error}") from error
            self.prepared.append(name)
        text = tomlkit.dumps(self._document)
        try:
            self._read(text)
        except InputError as error:
            raise InputError(
                f"the entries that the model wrote make the town file invalid, so nothing was changed: {error}"
            ) from None
        return text if left else self._before

    def _read(self, text: str) -> TownFile:
        return parse_town(text, self._folder)

    def _person(self, name: str) -> Person:
        return next(each for each in self._town.residents if each.name == name)

    def _people(self) -> tuple[str, ...]:
        return tuple(
            f"{each.name} ({each.home.partition(':')[2]}): {each.learned}".strip() for each in self._town.residents
        )

    def _ask_resident(self, name: str) -> PrepareResident:
        person, begins = self._person(name), self._setting.when(0)
        prose = (person.innate, person.learned, person.currently, person.lifestyle, person.routine, person.about)
        return PrepareResident(
            who=name,
            prose="\n".join(each for each in prose if each),
            home=person.home.partition(":")[2],
            sentences=tuple(each.text for each in person.memories),
            date=f"{begins:%A %Y-%m-%d}",
            places=tuple(self._places_of(person)),
            people=self._people(),
        )

    def _ask_places(self) -> PreparePlaces:
        return PreparePlaces(places=tuple(map(self._with_things, self._rooms)), people=self._people())

    @property
    def _rooms(self) -> list[str]:
        """Addresses of the rooms and houses."""
        return [each for each in self._places if each.count(":") < OBJECT - 2]

    def _with_things(self, room: str) -> str:
        inside = [each for each in self._places if each.startswith(f"{room}:") and each.count(":") == OBJECT - 2]
        things = ", ".join(each.rpartition(":")[2] for each in inside)
        return f"{room} ({things})" if things and ":" in room else room

    def _places_of(self, person: Person) -> list[str]:
        """Return the places and objects that a resident may use: all except the homes of other residents that the
        resident does not know, and the objects in these homes."""
        world, homes = self._setting.name, self._setting.homes
        known = {sector_of(each) for each in (person.home, *person.knows)}
        return [
            each for each in self._places if (sector := sector_of(f"{world}:{each}")) in known or not homes.get(sector)
        ]

    def _add_resident(self, name: str, keys: ResidentKeys) -> None:
        table = next(each for each in self._document["residents"] if each["name"] == name)
        person = self._person(name)
        places = dict(enumerate(self._places_of(person), 1))
        bed = places.get(keys.bed, "")
        if not person.bed and bed.count(":") == OBJECT - 2:
            table["bed"] = bed
        table["day"] = _lines([_day(part, places) for part in keys.day if part.start != part.end])
        known = {each.name for each in person.relations}
        met = [(find_name(self._setting, each.who), each.kind) for each in keys.knows]
        new = {who: kind for who, kind in met if who in self._setting.people and who not in known | {name}}
        if new:
            told = [
                {"who": each.name, "as": each.what} | ({"avoids": True} if each.avoids else {})
                for each in person.relations
            ]
            table["relations"] = _lines([*told, *({"who": who, "as": kind} for who, kind in new.items())])
        if keys.agreed:
            self._add_agreed(table, keys.agreed, places)

    def _add_agreed(self, table: Any, agreed: list[Dated], places: Mapping[int, str]) -> None:
        """Add the keys of each appointment to the memory that tells of the appointment, unless the memory has such
        keys. If no memory tells of the appointment, add a memory."""
        seeds = [dict(each) if hasattr(each, "items") else {"text": str(each)} for each in table.get("seeds", [])]
        for each in agreed:
            if 0 < each.of <= len(seeds) and "what" not in seeds[each.of - 1]:
                seeds[each.of - 1] |= self._dated(each, places)
            elif not 0 < each.of <= len(seeds):
                seeds.append({"text": each.text} | self._dated(each, places))
        table["seeds"] = _lines([each if len(each) > 1 else each["text"] for each in seeds])

    def _dated(self, said: Dated, places: Mapping[int, str]) -> dict[str, Any]:
        place, people = places.get(said.place, ""), self._setting.people
        names = [find_name(self._setting, each) for each in (said.host, *said.who)]
        host, who = names[0], [each for each in names[1:] if each in people]
        begin, end = (_moment(said.day, clock) for clock in (said.start, said.end))
        keys: dict[str, Any] = {"what": said.what, "from": begin, "to": end if end > begin else end + timedelta(days=1)}
        keys |= {"where": place} if place else {}
        return keys | ({"host": host} if host in people else {}) | ({"who": who} if who else {})

    def _add_places(self, keys: TownKeys) -> None:
        rooms = self._rooms
        tables = self._document.setdefault("places", tomlkit.aot())
        known = {table["address"]: table for table in tables}
        for each in keys.places:
            owners = [name for said in each.owners if (name := find_name(self._setting, said)) in self._setting.people]
            added = {"purpose": each.purpose, "public": each.public, "owners": owners}
            said = {key: value for key, value in added.items() if value not in (None, [])}
            if each.place > len(rooms) or not said:
                continue
            address = rooms[each.place - 1]
            if address not in known:
                known[address] = tomlkit.table()
                known[address]["address"] = address
                tables.append(known[address])
                known[address] = tables[-1]
            known[address].update({key: value for key, value in said.items() if key not in known[address]})
        if "conditions" not in self._document:
            self._document["conditions"] = {"danger": keys.danger, "fine": keys.fine}


def _day(part: DayPart, places: Mapping[int, str]) -> dict[str, Any]:
    keys: dict[str, Any] = {"from": part.start, "to": part.end, "what": part.what}
    keys |= {"where": places[part.place]} if part.place in places else {}
    return keys | ({"on": list(part.on)} if part.on else {}) | ({"duty": True} if part.duty else {})


def _moment(day: date, clock: str) -> datetime:
    return datetime.combine(day, time()) + timedelta(minutes=minute_of(clock))


def _lines(items: Sequence[dict[str, Any] | str]) -> Array:
    """Return a TOML array with one entry per line."""
    array = tomlkit.array()
    for each in items:
        array.append(each if isinstance(each, str) else tomlkit.inline_table())
        if not isinstance(each, str):
            array[-1].update(each)
    return array.multiline(True)
