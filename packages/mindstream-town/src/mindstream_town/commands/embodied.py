"""Format the surroundings of a controlled resident as lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mindstream.cli.shell.output import short
from mindstream_town.embody.happened import Happening
from mindstream_town.embody.outlook import Surroundings

MOST_THINGS = 12


def lines_of(happened: Iterable[Happening], own: str) -> Iterator[str]:
    """Yield one line per event, in the words shown to the user (`own`: the name of the controlled resident)."""
    for each in happened:
        text = short(each.text, 600)
        said = {
            "saw": text if each.who != own else "",
            "heard": f"{each.who}: {text}",
            "said": f"you: {text}",
            "did": f"you: {text}",
            "agreed": f"added to your plan: {text}",
            "left": "you leave",
            "talked": f"the talk with {each.who} is over{f': {each.who} has stopped waiting' if each.waited else ''}",
            "unanswered": f"{'you do' if each.who == own else f'{each.who} does'} not answer"
            f"{f', and {each.text} has stopped waiting' if each.waited else ''}",
        }[each.kind]
        if said:
            yield f"{each.time[11:16]}  {said}"


def look_lines(seen: Surroundings) -> Iterator[str]:
    """Yield the resident's position, activity, people in sight and things in sight."""
    until = f", until {seen.until}" if seen.until else ""
    yield f"{seen.time[11:16]}  {seen.name}, {seen.where}: {seen.doing}{until}"
    yield from who_lines(seen)
    things = [_thing(each.name, each.condition, each.used_by) for each in seen.things[:MOST_THINGS]]
    if things:
        yield f"       things: {', '.join(things)}"
    yield from waiting_lines(seen)


def waiting_lines(seen: Surroundings) -> Iterator[str]:
    """Yield a line with the resident who waits for the user's answer, if any, and until when."""
    if seen.talks_with:
        yield f"       {seen.talks_with} waits for your answer until {seen.answer_by}"


def _thing(name: str, condition: str, used_by: tuple[str, ...]) -> str:
    more = [*([condition] if condition else []), *([f"used by {', '.join(used_by)}"] if used_by else [])]
    return f"{name} ({'; '.join(more)})" if more else name


def who_lines(seen: Surroundings) -> Iterator[str]:
    """Yield the people in sight."""
    for each in seen.people:
        known = f" ({each.known_as})" if each.known_as else ""
        yield f"       {each.name}{known}: {'asleep' if each.asleep else each.doing}, {each.place}"
    if not seen.people:
        yield "       no one is in sight"


def place_lines(seen: Surroundings) -> Iterator[str]:
    """Yield the known places."""
    for each in seen.places:
        hours = f", {each.hours}" if each.hours else ""
        yield f"       {each.name}{hours}{'' if each.open else ' (not open to you now)'}"


def plan_lines(seen: Surroundings) -> Iterator[str]:
    """Yield the rest of the day's plan."""
    for each in seen.plan:
        yield f"       {each.start}-{each.end} {each.what}{f', {each.place}' if each.place else ''}"
    if not seen.plan:
        yield "       nothing is planned"
