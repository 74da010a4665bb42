"""The terminal screen of a town: its events as lines of text and as JSON rows, and for a user who controls a
resident, typed commands and their results."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from mindstream.cli.shell.output import complain, print_json, progress_lines, say_lines, short
from mindstream.errors import InputError
from mindstream.log.events import Event, Reflected, Remembered
from mindstream_town.embody.embodied import ALL, MINUTES, Embodied
from mindstream_town.embody.outlook import Happening, Surroundings
from mindstream_town.events import Acted, DayPlanned, ObjectChanged, StoodIn, Talked, TownEvent
from mindstream_town.inspect.lookup import find_object, find_resident, find_step, format_time
from mindstream_town.residents.places import words_of
from mindstream_town.setting import Setting

HELP = """go PLACE                         walk there: "go cafe", "go Hobbs Cafe:cafe"
do WHAT [for MINUTES] [at PLACE]   do something; quote a WHAT that contains "for" or "at"
say TEXT [to WHO | to all]       say something, in any language: to your partner, else to all who are near;
                                 the nearest free resident answers, and the others remember it
decline                          end the talk, or do not answer
wait [MINUTES | until HH:MM]     let time pass; if no time is given, until your act or talk is over, or
                                 a resident speaks to you
look, who                        show what is around you; show who is near
places, plan                     show the places that you know; show the rest of your plan for the day
whisper NAME TEXT                add a thought to a resident's memory
set OBJECT CONDITION             change an object (put OBJECT in quotes if it has blanks); CONDITION "" means
                                 that nothing is wrong with it
leave                            give up control: a resident goes on by itself, a visitor leaves"""
BARE = ("look", "who", "places", "plan", "help", "decline", "leave")
_TIMED = re.compile(r"(\d{1,2}:\d{2})\s+(.+)", re.DOTALL)


@dataclass(frozen=True)
class Typed:
    """A parsed command.

    Attributes:
        at: time of the day (HH:MM) to wait for before the command; "": none.
        verb: one of the verbs in HELP.
        words: arguments of the verb.
        minutes: duration of `do` or `wait`; None: not given.
        place: place of `do`; "": not given.
        until: end of `wait` (HH:MM); "": not given.
    """

    verb: str
    words: tuple[str, ...] = ()
    minutes: int | None = None
    place: str = ""
    until: str = ""
    at: str = ""


def read_typed(line: str) -> Typed:
    """Parse a command.

    Raises:
        InputError: the line is not a valid command.
    """
    timed = _TIMED.fullmatch(line.strip())
    at, line = timed.groups() if timed else ("", line.strip())
    verb, _, rest = line.partition(" ")
    verb, rest = verb.casefold(), rest.strip()
    if verb in BARE:
        return Typed(verb, at=at)
    if verb == "wait":
        return _wait(rest, at)
    if verb in ("whisper", "set"):
        return Typed(verb, _two(verb, rest), at=at)
    if verb not in ("go", "do", "say"):
        raise InputError(f"unknown command {verb!r:.40}: type help for a list")
    if not rest:
        raise InputError(f"{verb} needs an argument: type help for its form")
    if verb != "do":
        return Typed(verb, (rest.strip('"'),), at=at)
    return _do(rest, at)


def _do(rest: str, at: str) -> Typed:
    quoted, _, behind = rest[1:].partition('"') if rest.startswith('"') else ("", "", rest)
    words, n = behind.split(), 0
    while n < len(words) and not (
        words[n] == "at" or (words[n] == "for" and "".join(words[n + 1 : n + 2]).isdecimal())
    ):
        n += 1
    what, words = quoted or " ".join(words[:n]), words[n:]
    minutes = MINUTES
    if words[:1] == ["for"]:
        minutes, words = int(words[1][:4]), words[2:]
        words = words[1:] if words[:1] in (["min"], ["minutes"]) else words
    place = " ".join(words[1:] if words[:1] == ["at"] else words).strip('"')
    return Typed("do", (what,), minutes, place, at=at)


def addressee(text: str, near: Iterable[str]) -> tuple[str, str]:
    """Split "hello to Ada" into "hello" and "Ada".

    The addressee is the text after the last " to ". It must be `all`, or the name or first name of exactly one person
    nearby. Else return the whole text and "".
    """
    said, to, who = text.rpartition(" to ")
    wanted = who.strip().casefold()
    fits = [each for each in near if wanted in (each.casefold(), each.split()[0].casefold())]
    fits = fits or [ALL] if wanted == ALL else fits
    return (said, fits[0]) if to and said.strip() and len(fits) == 1 else (text, "")


def _wait(rest: str, at: str) -> Typed:
    until = re.fullmatch(r"until\s+(.+)", rest)
    if until:
        return Typed("wait", until=until[1], at=at)
    if rest and not rest.isdecimal():
        raise InputError("expected wait, wait MINUTES (such as wait 10), or wait until HH:MM")
    return Typed("wait", minutes=int(rest) if rest else None, at=at)


def _two(verb: str, rest: str) -> tuple[str, str]:
    try:
        first, *more = shlex.split(rest) or [""]
    except ValueError as error:
        raise InputError(f"{verb}: {error}".lower()) from None
    if not first or not more:
        raise InputError(f"{verb} needs two arguments: type help for its form")
    return first, " ".join(more)


@dataclass(frozen=True)
class Cut:
    """A resident has spoken to the user. The command was interrupted, or (`begun` false) was not started."""

    who: str
    begun: bool = True


class Screen:
    """Runs typed commands and prints the results; `left`: whether the user has given up control."""

    def __init__(self, me: Embodied, json: bool) -> None:
        self.me, self.json, self.left = me, json, False
        self._told = me.town.step

    def prompt(self) -> None:
        """Show a prompt in a terminal."""
        if sys.stdin.isatty() and not self.json:
            when = self.me.town.setting.when(max(self.me.town.step, 0))
            print(f"{when:%H:%M} > ", end="", file=sys.stderr, flush=True)

    async def try_to(self, line: str) -> Cut | None:
        """Run a command; return the interruption by a resident, or None. If the command is invalid, print the
        message."""
        try:
            return await self.obey(line)
        except InputError as error:
            complain(str(error))
            return None

    async def obey(self, line: str) -> Cut | None:
        """Run a command and print its result.

        Returns:
            The interruption by a resident; None: there was none.

        Raises:
            InputError: the command is unknown, or cannot be run.
        """
        typed = read_typed(line)
        if typed.at and (who := await self._wait_until(typed.at)):
            await self.tell("wait", f"{who} has spoken to you: {short(line)!r} was not run", who)
            return Cut(who, begun=False)
        if typed.verb == "help":
            say_lines(HELP.splitlines())
        elif typed.verb in ("look", "who", "places", "plan"):
            await self.look(typed.verb)
        else:
            return await self._do(typed, line)
        return None

    async def look(self, what: str = "look") -> None:
        """Print the surroundings, or one part of them (`who`, `places`, `plan`)."""
        seen = await self.me.look()
        lines = {"look": look_lines, "who": who_lines, "places": place_lines, "plan": plan_lines}[what](seen)
        self._show(seen.model_dump(mode="json") | {"command": what}, list(lines))

    async def tell(self, verb: str = "", more: str = "", cut_by: str = "") -> None:
        """Print the events since the last output; after `go`, `do` and `wait` also the resident's position and
        activity.

        Args:
            verb: the verb of the command that was run; "": no command was run.
            more: a line to add; "": none.
            cut_by: name of the resident who interrupted the command; "": none did.
        """
        seen = await self.me.look(self._told)
        self._told = self.me.town.step
        lines = list(lines_of(seen.happened, self.me.name))
        if verb in ("go", "do", "wait"):
            lines += list(look_lines(seen))[:1]
        if more:
            lines.append(f"{seen.time[11:16]}  {more}")
        if lines:
            row = seen.model_dump(mode="json") | {"command": verb} | ({"cut_short_by": cut_by} if cut_by else {})
            self._show(row, lines)

    async def let_pass(self, steps: int) -> None:
        """Let some steps pass and print the events."""
        with self._shown_to_go_on():
            await self.me.wait(until=self.me.town.step + steps)
        await self.tell()

    def _show(self, row: dict[str, object], lines: Sequence[str]) -> None:
        if self.json:
            print_json(row)
        else:
            say_lines(lines)

    @contextmanager
    def _shown_to_go_on(self) -> Iterator[None]:
        """Show a progress line if the wait in this block takes long."""
        setting = self.me.town.setting
        with progress_lines(f"{setting.when(max(self.me.town.step, 0)):%H:%M} in {setting.name}") as told:
            self.me.on_step = lambda step: told(step, doing=f"{setting.when(step):%H:%M} in {setting.name}")
            yield

    async def _wait_until(self, time: str) -> str:
        """Wait until a time of the day; return the name of the resident who interrupted the wait, else "". Raise
        InputError if the time is in the past."""
        until = find_step(self.me.town.setting, time, self.me.town.step)
        if until < self.me.town.step:
            now = format_time(self.me.town.setting, self.me.town.step)
            raise InputError(f"{time} is in the past: in the town it is already {now}")
        with self._shown_to_go_on():
            return await self.me.wait(until=until) if until > self.me.town.step else ""

    async def _do(self, typed: Typed, line: str) -> Cut | None:
        if typed.verb == "wait" and self.me.talks_with and not self.json:
            say_lines(waiting_lines(await self.me.look()))
        with self._shown_to_go_on():
            who = await self._act(typed)
        await self.tell(typed.verb, f"{who} has spoken to you: {short(line)!r} was interrupted" if who else "", who)
        return Cut(who) if who else None

    async def _act(self, typed: Typed) -> str:
        """Run a command; return the name of the resident who interrupted it, else ""."""
        me, town, words = self.me, self.me.town, typed.words
        match typed.verb:
            case "go":
                return await me.go(words[0])
            case "do":
                return await me.do(words[0], typed.minutes or 1, typed.place)
            case "say":
                text, to = addressee(words[0], [each.name for each in (await me.look()).people])
                await me.say(text, to)
            case "decline":
                await me.decline()
            case "wait" if typed.until:
                return await me.wait(until=find_step(town.setting, typed.until, town.step))
            case "wait":
                return await me.wait(typed.minutes)
            case "whisper":
                await town.whisper(find_resident(town.setting, words[0]), words[1])
            case "set":
                await town.set_object(find_object(town.setting, words[0]), words[1].strip(), by=me.name)
            case "leave":
                await me.leave()
                self.left = True
        return ""


MOST_THINGS = 12


def lines_of(happened: Iterable[Happening], own: str) -> Iterator[str]:
    """Yield the lines that show events to the user.

    Args:
        own: the name of the controlled resident; sightings of this resident have no line.
    """
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
    """Yield the resident's position, activity, people and things in sight, and who waits for an answer."""
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


OPENINGS = 2
"""Maximum lines of a conversation to show."""


def describe(mind: str, event: Event, texts: Sequence[str] = ()) -> str | None:
    """Return an event as one line; None for routine events, which are not shown.

    Args:
        mind: name of the resident whose event it is; "": an event of the town itself.
        texts: texts of the event's records.
    """
    match event:
        case Talked() if event.lines and event.lines[0].by == mind:
            said = " / ".join(f"{line.by.split()[0]}: {short(line.text, 90)}" for line in event.lines[:OPENINGS])
            more = f" (and {len(event.lines) - OPENINGS} more)" if len(event.lines) > OPENINGS else ""
            return f"{mind} talks with {event.partner}: {said}{more}"
        case Acted() if event.act.why in ("react", "wait"):
            because = f", because of: {short(event.because, 90)}" if event.because else ""
            return f"{mind}: {event.act.what}{because}"
        case Acted() if event.act.why == "plan":
            return f"{mind}: {event.act.what}"
        case DayPlanned():
            return f"{mind} plans the day: {short('; '.join(event.broad), 140)}"
        case Reflected():
            return f"{mind} reflects: {short('; '.join(texts), 140)}"
        case ObjectChanged():
            by = f", by {event.by}" if event.by else ""
            return f"{words_of(event.place)} is {event.condition or 'in order again'}{by}"
        case Remembered() if mind:
            return None
        case StoodIn():
            return (
                f"{mind}: the model's reply to {event.prompt} was unreadable and is not used: {short(event.reason, 90)}"
            )
    return None


def event_row(setting: Setting, mind: str, event: Event, line: str) -> dict[str, Any]:
    """Return an event as a JSON row."""
    step = event.step if isinstance(event, TownEvent) else None
    time = setting.when(step).isoformat() if step is not None else None
    return {"event": event.kind, "resident": mind, "step": step, "time": time, "line": line}
