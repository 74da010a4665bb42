"""Who somebody is, as the prompts of scenes say it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mindstream_town.residents.converse import OF_PEOPLE
from mindstream_town.residents.moving_in import SECRET
from mindstream_town.residents.places import words_of
from mindstream_town.residents.surroundings import household, housemates
from mindstream_town.residents.turn import ResidentTurn
from mindstream_town.setting import Setting
from mindstream_town.world.tree import sector_of


def identity(turn: ResidentTurn, currently: str | None = None) -> str:
    """Return who a resident is, with its life so far and its household.

    Args:
        currently: what its days are about; None: as it sees it itself.
    """
    person = turn.person
    home = words_of(sector_of(person.home))
    with_whom = household(turn.setting, person)
    lives = f"Home: {home}, {'with ' + ', '.join(with_whom) if with_whom else 'alone'}"
    now = turn.state.currently if currently is None else currently
    alone = person.model_copy(update={"relations": ()})
    return "\n".join(each for each in (alone.identity(now), person.about, lives, *_knows(turn)) if each)


def _knows(turn: ResidentTurn) -> tuple[str, ...]:
    """Say whom somebody knew when the town began, and whom it has met since."""
    known = {each.name: each.what for each in turn.person.relations}
    at_home = housemates(turn.setting, turn.person)
    before = [f"{name} ({what})" for name, what in known.items() if name not in at_home]
    since = sorted({*turn.state.scenes, *turn.state.met} - {*known, *at_home})
    return (
        f"Knew at first: {'; '.join(before)}" if before else "",
        f"Has met since: {', '.join(since)}" if since else "",
    )


def public_identity(turn: ResidentTurn, keeps_secrets: bool) -> str:
    """Return who a resident is, as a talk may show it: of who keeps a secret nothing that it has written of itself."""
    return identity(turn, turn.person.currently if keeps_secrets else None)


def doing(turn: ResidentTurn) -> str:
    """Say what somebody is at: where it is on its way to, or how the thing is that it uses."""
    act = turn.state.act
    if act is None or not act.place:
        return turn.doing
    at = f"{act.place.rpartition(':')[2]}: {act.state}" if act.state else ""
    more = (
        at if act.has_arrived(turn.step) else f"on the way: {words_of(act.place)}",
        _is_duty(turn) and "a duty",
        f"until {turn.setting.when(act.until):%H:%M}",
    )
    return f"{act.what} ({', '.join(each for each in more if each)})"


def _is_duty(turn: ResidentTurn) -> bool:
    """Tell whether the usual day has a duty at this hour, where somebody is."""
    act, minute, date = turn.state.act, turn.setting.minute(turn.step), turn.setting.when(turn.step)
    return act is not None and any(
        each.duty
        and each.is_on(date)
        and each.start <= minute < each.end
        and sector_of(each.place) == sector_of(act.place)
        for each in turn.person.day
    )


def relation_to(turn: ResidentTurn, other: str) -> str:
    """Say as what somebody knows another."""
    if relation := turn.relation(other):
        return relation
    if other in housemates(turn.setting, turn.person):
        return "lives in the same home"
    return "met since" if other in turn.state.scenes else "a stranger"


def is_known(turn: ResidentTurn, other: str) -> bool:
    """Tell whether somebody knows another from before the town began."""
    return bool(turn.relation(other)) or other in housemates(turn.setting, turn.person)


def last_met(turn: ResidentTurn, other: str) -> str:
    """Return when somebody last was in a scene with another, in the town's time; "" never."""
    last = turn.state.scenes.get(other)
    return "" if last is None else f"{turn.setting.when(last):%A %H:%M}"


def find_place(said: str, places: Mapping[str, str]) -> str:
    """Return the address of a place that a reply names; "" where it is none of them, or could be two.

    Args:
        places: addresses by the names that were listed.
    """
    name = said.split(" (")[0].split(": ")[0].strip().casefold()
    if not name:
        return ""
    by_name = {each.casefold(): address for each, address in places.items()}
    if name in by_name:
        return by_name[name]
    near = {address for each, address in by_name.items() if name in each or each in name}
    return near.pop() if len(near) == 1 else ""


def find_thing(setting: Setting, place: str, said: str) -> str:
    """Return the address of a thing in a place; the place itself where no such thing is there."""
    name = said.strip().casefold()
    things = {each.rpartition(":")[2].casefold(): each for each in setting.objects_in(place)}
    return things.get(name, place)


def by_words(addresses: Sequence[str]) -> dict[str, str]:
    """Return addresses by their names in words."""
    return {words_of(each): each for each in addresses}


MOST = 6


async def secrets_of(turn: ResidentTurn) -> tuple[str, ...]:
    """Return the newest of what somebody keeps to itself."""
    found = await turn.recall_about([SECRET], MOST, kinds=OF_PEOPLE)
    return tuple(each.text for each in found if each.data.get(SECRET))
