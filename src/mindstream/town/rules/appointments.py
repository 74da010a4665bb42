"""What was agreed on for a day, as somebody remembers it: its time, its place, and one's own part in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Literal

from mindstream.text.words import terms
from mindstream.town.prompts.plan_day import Place
from mindstream.town.rules.habits import HABITUAL, TENDS, activity
from mindstream.town.rules.times import read_days, read_minutes, read_part, read_stretches
from mindstream.town.rules.where import find_named, hours_without
from mindstream.town.world.hours import DAY_MINUTES

Role = Literal["guest", "promised", "helper", "host"]
ROLES: tuple[Role, ...] = ("guest", "promised", "helper", "host")
LONGEST = 1_200
USUAL = 90
TOLD = re.compile(r"^\(\w{6,9} (\d{4}-\d\d-\d\d)\) ")
A_PLAN = re.compile(r"^.{0,60}'s plan for ")
HOSTS = re.compile(
    r"\b(?:having|holding|hosting|throwing|planning|organi[sz]ing|giving|hosts?|throws?|holds?|organi[sz]es?"
    r"|has invited|inviting) "
    r"(?P<event>(?:an?|the|her|his|their|our|my) [^.,;:*\n]{3,80})"
)
COMES = re.compile(
    r"\b(?:attend(?:s|ing)?|join(?:s|ing)?|com(?:e|es|ing) to|go(?:es|ing)? to|invit(?:e|es|ed|ing) [^.;\n]{2,40}? to"
    r"|help(?:s|ing)? (?:[\w']+ ){0,4}(?:with|for|at)|(?:prepar|decorat)(?:e|es|ing) (?:for )?) ?"
    r"(?P<event>(?:an?|the|her|his|their|our|my|your) [^.,;:*\n]{3,80})"
)
SAYS = re.compile(
    r"\b(?P<event>(?:an?|the|her|his|their|our|my|your) [^.,;:*\n]{3,60}?) (?:at|on|from|this|tomorrow|tonight"
    r"|today|takes)\b"
)
AFTER_EVENT = re.compile(
    r" (?:at|on|from|with|this|tomorrow|tonight|today|in|next|for|and|is|will|that|there|starting|between|where|to)\b"
)
HEARD = re.compile(
    r"\b(?:heard|said|says|told|knows|was invited|is invited|talked|remembers|learned|mentioned|asked|thinks)\b"
)
HELPS = re.compile(r"\b(?:help(?:s|ing)?|decorat(?:e|es|ing)|sets? up|setting up|prepar(?:e|es|ing))\b")
PROMISES = re.compile(
    r"\b(?:will|'ll|agree[ds]?|promise[ds]?|accept(?:s|ed)?|plans? (?:to|on)|is planning to|going to|wants? to"
    r"|intends?|said yes"
    r"|look(?:s|ing) forward|would (?:love|like)|hopes? to|(?:is|am) (?:coming|going|attending|helping|joining"
    r"|meeting|seeing)"
    r"|has an?|meets?|attends?|joins?|comes)\b"
)
REFUSES = re.compile(
    r"\b(?:won't|will not|can't|cannot|can not|(?:not|unable) (?:going|coming|able|attend|to)|declines?d?"
    r"|refuse[sd]?|does not want"
    r"|doesn't want|turned (?:it )?down|too busy)\b"
)
OPEN = re.compile(
    r"\b(?:invit(?:es?|ed|ation)|welcome|everybody|everyone|anybody|anyone|join(?:s|ing)?)\b"
    r"|\b[Tt]here (?:is|will be) an? [^.;:\n]{3,60}? (?:at|in) (?:the )?[A-Z]"
)
NAME = re.compile(r"\b[A-Z][\w'-]{1,20} [A-Z][\w'-]{1,20}\b")


@dataclass(frozen=True, slots=True)
class Appointment:
    """Something that takes place on a day.

    Attributes:
        start, end: minutes from midnight. place: its number among the places that somebody knows; 0: nobody says.
        by: whose it is, as far as it is told.
    """

    event: str
    start: int
    end: int
    place: int
    role: Role = "guest"
    by: str = ""

    @property
    def what(self) -> str:
        """What one does there."""
        if not self.event.startswith(("a ", "an ", "the ", "her ", "his ", "their ", "our ", "my ", "your ")):
            return self.event
        event = re.sub(r"^(?:a|an|my|your|our) ", "the ", self.event)
        return f"{'hosting' if self.role == 'host' else 'attending'} {event}"


def read_memory(text: str, today: date) -> tuple[date, str]:
    """Return the day on which a memory was written down, and its words."""
    found = TOLD.match(text)
    if found is None:
        return today, text
    try:
        return datetime.strptime(found[1], "%Y-%m-%d").date(), text[found.end() :]
    except ValueError:
        return today, text[found.end() :]


def read_appointments(
    who: str, day: date, told: Iterable[tuple[date, str]], places: Sequence[Place]
) -> list[Appointment]:
    """Return what takes place on a day, by what was told on which days; each once, with one's own part in it."""
    found, refused = _read_all(who, day, told, places)
    return [each for each in found if each.role == "host" or not any(_same(each, other) for other in refused)]


def shun(who: str, day: date, told: Iterable[tuple[date, str]], places: Sequence[Place]) -> tuple[Place, ...]:
    """Return the places with their hours, as somebody would go there: not to where it said that it would not come."""
    _, refused = _read_all(who, day, told, places)
    shunned = list(places)
    for each in refused:
        house = places[each.place - 1].words.rpartition(" of ")[2] if each.place else ""
        for n, place in enumerate(shunned):
            if house and place.words.rpartition(" of ")[2] == house:
                shunned[n] = place.model_copy(update={"hours": hours_without(place, each.start, each.end)})
    return tuple(shunned)


def _read_all(
    who: str, day: date, told: Iterable[tuple[date, str]], places: Sequence[Place]
) -> tuple[list[Appointment], list[Appointment]]:
    """Read what takes place on a day, and what of it somebody said that it would not come to."""
    found: list[Appointment] = []
    refused: list[Appointment] = []
    for when, text in told:
        text = text[:LONGEST]
        if A_PLAN.match(text) or day not in read_days(text, when, day):
            continue
        appointment = read_appointment(who, text, places)
        if appointment is None:
            continue
        if is_by(text, who) and REFUSES.search(text):
            refused.append(appointment)
        elif appointment.role != "guest" or is_open_to_all(text) or who.split()[0] in text:
            _merge(found, appointment)
    return found, refused


def read_appointment(who: str, text: str, places: Sequence[Place]) -> Appointment | None:
    """Read when and where something is, whatever the day; None where the text says no time."""
    stretches = read_stretches(text)
    whole = [each for each in stretches if each.start is not None and each.end is not None]
    chosen = next(iter(whole or [each for each in stretches if each.start is not None]), None) or read_part(text)
    if chosen is None or chosen.start is None:
        return None
    end = chosen.end if chosen.end is not None else chosen.start + (read_minutes(text) or USUAL)
    if end <= chosen.start:
        end += DAY_MINUTES
    role = _role(who, text)
    hosts = HOSTS.search(text)
    place = find_named(text, places, who)
    event = _event(who, text, places[place - 1].words if place else "")
    told = text.partition(": ")[2] or text
    names = [name for name in NAME.findall(told) if name != who]
    by = names[0] if names and (hosts or role == "guest") else ""
    return Appointment(event, chosen.start, min(end, chosen.start + 8 * 60), place, role, by)


def read_appointment_today(who: str, day: date, text: str, places: Sequence[Place]) -> Appointment | None:
    """Read what was agreed on for this day, said on it; what names no day at all is meant for today."""
    text = text[:LONGEST]
    days = read_days(text, day, day)
    if (days and day not in days) or (not days and is_routine(text)) or (is_by(text, who) and REFUSES.search(text)):
        return None
    return read_appointment(who, text, places)


def is_routine(text: str) -> bool:
    """Tell whether a text says what somebody does every day: it is no appointment, whoever says that it comes."""
    said = text.rpartition(": ")[2]
    name = NAME.match(said)
    return (
        name is not None
        and said[name.end() :].split(maxsplit=1)[:1] != []
        and (said[name.end() :].split(maxsplit=1)[0].lower() in HABITUAL | TENDS | {"teaches", "takes"})
    )


def is_open_to_all(text: str) -> bool:
    """Tell whether others may come to what a text tells of."""
    return bool(OPEN.search(text[:LONGEST]) or HOSTS.search(text[:LONGEST]))


def is_by(text: str, who: str) -> bool:
    """Tell whether a text says of somebody what it does itself."""
    return text.startswith((f"{who} ", f"{who.split()[0]} ", "I ", "You ", "you "))


def _role(who: str, text: str) -> Role:
    if any(
        text[: each.start()].rstrip().endswith((who, f"{who} is", f"{who} will be")) for each in HOSTS.finditer(text)
    ):
        return "host"  # whoever it was told to
    if not is_by(text, who):
        own = re.search(rf"\b{re.escape(who.split()[0])}\b[^.;\n]{{0,60}}", text)
        return "helper" if own and HELPS.search(own[0]) and PROMISES.search(own[0]) else "guest"
    heard = HEARD.search(text)
    said = text[: heard.start()] if heard else text
    hosts = HOSTS.search(said)
    if hosts and not HELPS.search(said) and NAME.findall(said[: hosts.start()])[-1:] in ([], [who]):
        return "host"
    if HELPS.search(said):
        return "helper"
    return "promised" if PROMISES.search(said) else "guest"


def _event(who: str, text: str, place: str) -> str:
    """Name what takes place; a place's name is none."""
    for found in filter(None, (each.search(text) for each in (HOSTS, COMES, SAYS))):
        event = AFTER_EVENT.split(found["event"], maxsplit=1)[0].strip(" *'\"")
        if len(event.split()) > 1 and not set(terms(event)) <= set(terms(place)):
            return re.sub(r"^(?:my|your|our) ", "the ", event)[:80]
    said = text.replace(" will be ", " is ", 1).replace(" will ", " ", 1)
    return (activity(said, who) if is_by(text, who) else "") or "keeping an appointment"


def _same(one: Appointment, other: Appointment) -> bool:
    return (
        one.start < other.end and other.start < one.end and (one.place == other.place or 0 in (one.place, other.place))
    )


def _merge(found: list[Appointment], new: Appointment) -> None:
    """Put it to what is the same event, told in other words; the greater part in it counts."""
    for n, old in enumerate(found):
        if _same(old, new):
            greater, lesser = (new, old) if ROLES.index(new.role) > ROLES.index(old.role) else (old, new)
            named = greater if greater.event.startswith(("a ", "an ", "the ", "her ", "his ", "their ")) else lesser
            whole = max(old, new, key=lambda each: (each.end - each.start != USUAL, each is greater))
            found[n] = replace(
                greater, event=named.event, start=whole.start, end=whole.end, place=greater.place or lesser.place,
                by=greater.by or lesser.by,
            )  # fmt: skip
            return
    found.append(new)
