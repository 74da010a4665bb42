"""Parse the commands that a user types as a controlled resident."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass

from mindstream.errors import InputError
from mindstream_town.embody.embodied import ALL, MINUTES

HELP = """go PLACE                         walk there: "go cafe", "go Hobbs Cafe:cafe"
do WHAT [for MINUTES] [at PLACE]   do something; quote a WHAT that contains "for" or "at"
say TEXT [to WHO | to all]       say something, in any language: to your partner, else to all who are near;
                                 the nearest free resident answers, and the others remember it
decline                          end the talk, or do not answer
wait [MINUTES | until HH:MM]     let time pass; without a time until your act or talk is over, or
                                 a resident speaks to you
look, who, places, plan          surroundings; people; known places; the rest of the day's plan
whisper NAME TEXT                add a thought to a resident's memory
set OBJECT CONDITION             change an object; CONDITION "": in order (OBJECT in quotes if it has blanks)
leave                            give up control: a resident goes on by itself, a visitor leaves"""
BARE = ("look", "who", "places", "plan", "help", "decline", "leave")
_TIMED = re.compile(r"(\d{1,2}:\d{2})\s+(.+)", re.DOTALL)


@dataclass(frozen=True)
class Typed:
    """A parsed command.

    Attributes:
        at: time of the day (HH:MM) to wait for before the command; "": none.
        verb: one of the verbs in HELP. words: its arguments.
        minutes: None if not given. place, until: "" if not given.
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
    """Split "hello to Ada" into "hello" and "Ada", if a person nearby has this name or it is `all`; else return the
    whole text and "".

    Only the text after the last " to " can be an addressee.
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
