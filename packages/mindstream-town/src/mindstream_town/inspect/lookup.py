"""Find residents, places and times that a user types; error messages suggest similar names."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta

from mindstream.clock import DAY_S
from mindstream.errors import InputError
from mindstream.text.dates import WEEKDAYS
from mindstream.text.times import plain, read_clock, read_day
from mindstream_town.residents.places import words_of
from mindstream_town.setting import Setting
from mindstream_town.world.tree import OBJECT

IGNORED = {*WEEKDAYS, *(day[:3] for day in WEEKDAYS)}
AROUND = timedelta(days=183)
"""A date without a year that is more than this time before the town's beginning is taken to be in the next year."""


def read_moment(
    setting: Setting, typed: str, now: int, *, end: bool = False, day_of: int | None = None
) -> float | None:
    """Parse "Feb 14 19:00", "2023-02-14 19:00", "day 2", "yesterday 10am", "tomorrow noon", "19:00" (today), "now".

    Args:
        now: the step whose day is today.
        end: the meaning of a day without a time. True: the last step of the day; False: the first.
        day_of: the step whose day applies to a time without a day; None: today.

    Returns:
        The moment; None if the text is not a time.

    Raises:
        InputError: the day or the time of day does not exist.
    """
    first, today = setting.when(0).date(), setting.when(max(now, 0)).date()
    words = [word for word in plain(typed.replace(",", " ")).split() if word not in IGNORED]
    if words == ["now"]:
        return setting.moment(max(now, 0))
    at = words.index("day") if "day" in words[:-1] else -1
    if at >= 0 and words[at + 1].isdecimal():
        words[at : at + 2] = [_nth_day(first, words[at + 1]).isoformat()]
    day, rest = read_day(" ".join(words), today, first - AROUND)
    if not rest:
        return None if day is None else _midnight(day) + (DAY_S - setting.profile.step_s if end else 0)
    seconds = read_clock(rest)
    if seconds is None:
        return None
    return _midnight(day or setting.when(max(now if day_of is None else day_of, 0)).date()) + seconds


def format_time(setting: Setting, step: int) -> str:
    """Return the time of a step, such as "Tue Feb 14, 17:05"; seconds are included unless they are 0.

    Step -1 has the time of step 0.
    """
    when = setting.when(max(step, 0))
    return f"{when:%a %b} {when.day}, {when:%H:%M:%S}".removesuffix(":00" if when.second == 0 else "")


def _midnight(day: date) -> float:
    return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()


def _nth_day(first: date, number: str) -> date:
    if not number.strip("0"):
        raise InputError("there is no day 0: the town begins on day 1")
    try:
        return first + timedelta(days=int(number[:9]) - 1)
    except OverflowError:
        raise InputError(f"day {number:.20} is too far in the future") from None


LONGEST = 99
"""Maximum number of characters of an input that an error message repeats."""
MOST_FITS, MOST_NEAR = 40, 8
"""Maximum number of matches, and of suggestions, in an error message."""
ALIKE = 0.7
"""Minimum similarity of a suggestion to the typed name (ratio of `difflib`, 0 to 1)."""
STEM = 3
"""Minimum length of a word that can match as a part of another word."""


def find_resident(setting: Setting, typed: str) -> str:
    """Return the full name of a resident.

    Args:
        typed: the full name, or a word of the name that no other resident's name has, such as the first name. Upper and
            lower case are equal.

    Raises:
        InputError: there is no such resident, or several.
    """
    return _find(typed, setting.people, f"{setting.name} has no resident called")


def find_place(setting: Setting, typed: str) -> str:
    """Return the address of a place from its address, the end of it, or words ("quay of Landing", "Landing quay").

    If a place matches and all other matches are inside of it, such as a house and its rooms, this place is returned.

    Raises:
        InputError: there is no such place, or several.
    """
    places, wanted = [each for each in setting.addresses if ":" in each], typed.strip().casefold()
    said = [each for each in places if wanted in _ways_to_say(each)]
    if len(said) == 1 and typed not in places:
        return said[0]
    return _find(typed, places, f"{setting.name} has no place called")


def _ways_to_say(place: str) -> tuple[str, ...]:
    """Return the lower-case texts by which a place may be named."""
    words = words_of(place).casefold()
    return words, f"the {words}", " ".join(place.split(":")[1:]).casefold()


def find_object(setting: Setting, typed: str) -> str:
    """Return the address of an object from the whole address or the end of it.

    The end is a text such as "cafe:piano", or "piano" if there is only one piano.

    Raises:
        InputError: there is no such object, or several.
    """
    objects = [text for text, each in setting.addresses.items() if each.level == OBJECT]
    wanted = typed.strip().casefold()
    places = [each for each in setting.addresses if f":{each.casefold()}".endswith(f":{wanted}")]
    inside = [each for place in places for each in setting.objects_in(place)]
    if inside and not any(each in objects for each in places):
        raise InputError(f"{typed!r:.{LONGEST}} is a place, not an object; name one of {_list(inside, MOST_FITS)}")
    return _find(typed, objects, f"{setting.name} has no object called")


def find_step(setting: Setting, typed: str, now: int, *, end: bool = False, day_of: int | None = None) -> int:
    """Return the step of a time: "Feb 14 19:00", "day 2", "yesterday 10am", "19:00" (today), "step 4320".

    Args:
        now: the step whose day is today.
        end: the meaning of a day without a time. True: the last step of the day; False: the first.
        day_of: the step whose day applies to a time without a day; None: today.

    Raises:
        InputError: the text is not a time, or the time is before the town's first step.
    """
    words = typed.strip().split()
    if len(words) == 2 and words[0].lower() == "step" and words[1].isdecimal() and len(words[1]) < 12:
        return int(words[1])
    when = read_moment(setting, typed, now, end=end, day_of=day_of)
    step = -int(-(when - setting.start) // setting.profile.step_s) if when is not None else -1
    if step >= 0:
        return step
    first = setting.when(0)
    what = "not a time" if when is None else "before the beginning of the town"
    raise InputError(
        f"{typed!r:.{LONGEST}} is {what}: the town begins on {first:%b} {first.day} {first:%H:%M}; use a form such as"
        f' "{first:%b} {first.day} 19:00", "{first:%b} {first.day}", "day 1 7pm", "yesterday noon", "19:00" or "now"'
    )


def find_span(setting: Setting, since: str, until: str, now: int) -> tuple[int, int]:
    """Return the first and the last step of a time span; "" stands for the town's first or last step.

    A time without a day in `until` is on the day of `since`, or today if `since` is "".

    Raises:
        InputError: a text is not a time, or the second time is before the first.
    """
    start = find_step(setting, since, now) if since else 0
    end = find_step(setting, until, now, end=True, day_of=start if since else None) if until else max(now, start)
    if end < start:
        raise InputError(
            f"--to {until!r:.{LONGEST}} ({format_time(setting, end)}) is before"
            f" --from {since!r:.{LONGEST}} ({format_time(setting, start)})"
        )
    return start, end


def _find(typed: str, names: Iterable[str], missing: str) -> str:
    known, typed = list(names), unicodedata.normalize("NFC", typed)
    if typed in known:
        return typed
    wanted = typed.strip().casefold()
    for fits in (
        [each for each in known if each.casefold() == wanted],
        [each for each in known if each.casefold().endswith(f":{wanted}")],
        [each for each in known if wanted in each.casefold().replace(":", " ").split()],
    ):
        widest = min(fits, key=len, default="")
        if fits and all(f"{each}:".startswith(f"{widest}:") for each in fits):
            return widest
        if fits:
            raise InputError(f"{typed!r:.{LONGEST}} is ambiguous: name one of {_list(fits, MOST_FITS)}")
    near = _nearest(wanted.rsplit(":", 1)[-1][:LONGEST], known)
    hint = f"did you mean {_list(near, MOST_NEAR)}?" if near else f"known: {_list(_short_names(known), MOST_NEAR)}"
    if not near and ":" in known[0]:
        hint += "; `mindstream town places` lists all"
    raise InputError(f"{missing} {typed!r:.{LONGEST}}: {hint}")


def _short_names(names: list[str]) -> list[str]:
    """Return the last parts of addresses, each once."""
    return list(dict.fromkeys(each.rpartition(":")[2] for each in names))


def _nearest(wanted: str, known: Iterable[str]) -> list[str]:
    """Return the known names that are most similar to the typed name (`wanted`).

    A known name is compared as a whole, and by each of its words. If no name is similar, return the names with a word
    that contains the typed name, or that the typed name contains.
    """
    words: dict[str, list[str]] = {}
    for each in known:
        whole = each.rpartition(":")[2].casefold()
        for word in dict.fromkeys((whole, *whole.split())):
            words.setdefault(word, []).append(each)
    near = difflib.get_close_matches(wanted, words, 1, ALIKE)
    if not near and len(wanted) >= STEM:
        near = [word for word in words if len(word) >= STEM and (word in wanted or wanted in word)][:1]
    return words[near[0]] if near else []


def _list(names: list[str], most: int) -> str:
    """Return up to `most` names as text, and the number of further names. Names have the shortest form that can be
    typed."""
    tops = {each.partition(":")[0] for each in names}
    short = [each.partition(":")[2] or each for each in names] if len(tops) == 1 else names
    return ", ".join(map(repr, short[:most])) + (f" and {len(short) - most} more" if len(short) > most else "")
