"""What is typed by a person who lives as somebody in a town: commands, and what follows them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass

from mindstream.errors import InputError
from mindstream_town.embody.embodied import ALL, MINUTES

HELP = """go PLACE                         walk there: "go cafe", "go Hobbs Cafe:cafe"
do WHAT [for MINUTES] [at PLACE]   do something; a WHAT with "for" or "at" in it stands in quotes
say TEXT [to WHO | to all]       say something, in any language: to whom you talk with, else to all who are near;
                                 the nearest who is free answers, and the others remember it
decline                          talk no more, or do not answer
wait [MINUTES | until HH:MM]     let time go by; without a time until what you do, or the talk, is over, or
                                 somebody speaks to you
look, who, places, plan          what is around; who; where you can go; what is left of the day's plan
whisper NAME TEXT                put a thought into somebody's memory
set OBJECT CONDITION             change an object; CONDITION "" puts it right (OBJECT in quotes if it has blanks)
leave                            go: a resident goes on by itself, a visitor is gone"""
BARE = ("look", "who", "places", "plan", "help", "decline", "leave")
_TIMED = re.compile(r"(\d{1,2}:\d{2})\s+(.+)", re.DOTALL)


@dataclass(frozen=True)
class Typed:
    """A command.

    Attributes:
        at: the time of the day that is waited for before it, HH:MM; "" none.
        verb: one of those of HELP. words: what follows it.
        minutes: None where none are said. place, until: "" where none is said.
    """

    verb: str
    words: tuple[str, ...] = ()
    minutes: int | None = None
    place: str = ""
    until: str = ""
    at: str = ""


def read_typed(line: str) -> Typed:
    """Read a command.

    Raises:
        InputError: it is none.
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
        raise InputError(f"there is no command {verb!r:.40}: help lists them")
    if not rest:
        raise InputError(f"{verb} what? help says how")
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
    """Return what is said and to whom: "hello to Ada" where one who is near is called so, or ALL; else all, and "".

    Structure alone: the last word or name after the last " to ".
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
        raise InputError("wait how long? wait, wait 10 (minutes), or wait until 12:30")
    return Typed("wait", minutes=int(rest) if rest else None, at=at)


def _two(verb: str, rest: str) -> tuple[str, str]:
    try:
        first, *more = shlex.split(rest) or [""]
    except ValueError as error:
        raise InputError(f"{verb}: {error}".lower()) from None
    if not first or not more:
        raise InputError(f"{verb} what? help says how")
    return first, " ".join(more)
