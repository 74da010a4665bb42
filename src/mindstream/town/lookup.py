"""What a person types of a town, found in it: a resident, a place, a time; what is not there with its nearest."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from datetime import UTC, datetime

from mindstream.errors import InputError
from mindstream.town.setting import Setting
from mindstream.town.world.address import OBJECT

DATED = ("%Y %b %d %H:%M", "%Y %B %d %H:%M", "%Y %d %b %H:%M", "%Y %d %B %H:%M", "%Y %a %d %b %H:%M")
"""Days as people write them, after the year."""
LONGEST = 99
"""So many characters of what was typed are repeated."""
MOST_FITS, MOST_NEAR = 40, 8
"""So many are named of those that fit, and where nothing does."""
ALIKE = 0.7
"""As near what was typed must be to a name, for that one to be meant."""


def find_resident(setting: Setting, typed: str) -> str:
    """Return the name of a resident: whole, or a part of it that only one has, in any letters.

    Raises:
        InputError: nobody is called so, or several are.
    """
    return _find(typed, setting.people, f"nobody in {setting.name} is called")


def find_place(setting: Setting, typed: str) -> str:
    """Return the address of a place: whole, or the end of it.

    Raises:
        InputError: there is none, or several.
    """
    return _find(
        typed, [each for each in setting.addresses if ":" in each], f"there is no place in {setting.name} called"
    )


def find_object(setting: Setting, typed: str) -> str:
    """Return the address of an object: whole, or the end of it ("cafe:piano", "piano" where there is but one).

    Raises:
        InputError: there is none, or several.
    """
    objects = [text for text, each in setting.addresses.items() if each.level == OBJECT]
    wanted = typed.strip().casefold()
    places = [each for each in setting.addresses if f":{each.casefold()}".endswith(f":{wanted}")]
    inside = [each for place in places for each in setting.objects_in(place)]
    if inside and not any(each in objects for each in places):
        raise InputError(f"{typed!r:.{LONGEST}} is a place; in it are {_list(inside, MOST_FITS)}: say which")
    return _find(typed, objects, f"there is no object in {setting.name} called")


def find_step(setting: Setting, typed: str, now: int) -> int:
    """Return the step of a time: "Feb 14 19:00", "2023-02-14 19:00", "day 2 19:00", "19:00" (today), "step 4320".

    Args:
        now: the step that says which day today is.

    Raises:
        InputError: it is no time, or before the town's first step.
    """
    words = typed.strip().split()
    if len(words) == 2 and words[0].lower() == "step" and words[1].isdecimal() and len(words[1]) < 12:
        return int(words[1])
    when = _read_time(setting, " ".join(words), now)
    step = -int(-(when - setting.start) // setting.profile.step_s) if when is not None else -1
    if step >= 0:
        return step
    first = setting.when(0)
    what = "no time" if when is None else "before the town's first moment"
    raise InputError(
        f"{typed!r:.{LONGEST}} is {what}: it begins on {first:%b} {first.day} {first:%H:%M}; say it as"
        f' "{first:%b} {first.day} 19:00", "{first:%Y-%m-%d} 19:00", "day 1 19:00", "19:00" or "step 4320"'
    )


def _read_time(setting: Setting, text: str, now: int) -> float | None:
    year = setting.when(max(now, 0)).year
    for form in DATED:
        if (found := _parse(f"{year} {text}", form)) is not None:
            return found
    for form in ("%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M"):
        if (found := _parse(text, form)) is not None:
            return found
    word, _, rest = text.partition(" ")
    number, _, clock = rest.partition(" ")
    if word.lower() == "day" and number.isdecimal() and len(number) < 7:
        day = int(number) - 1
    else:
        day, clock = setting.day(max(now, 0)), text
    minutes = _parse(f"1970-01-01 {clock}", "%Y-%m-%d %H:%M")
    return None if minutes is None else setting.moment(setting.step_at(day, int(minutes) // 60))


def _parse(text: str, form: str) -> float | None:
    try:
        return datetime.strptime(text, form).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


def _find(typed: str, names: Iterable[str], missing: str) -> str:
    known = list(names)
    if typed in known:
        return typed
    wanted = typed.strip().casefold()
    for fits in (
        [each for each in known if each.casefold() == wanted],
        [each for each in known if each.casefold().endswith(f":{wanted}")],
        [each for each in known if wanted in each.casefold().replace(":", " ").split()],
    ):
        if len(fits) == 1:
            return fits[0]
        if fits:
            raise InputError(f"{typed!r:.{LONGEST}} may be {_list(fits, MOST_FITS)}: say which")
    words: dict[str, list[str]] = {}
    for each in known:
        whole = each.rpartition(":")[2].casefold()
        for word in (whole, *whole.split()):
            words.setdefault(word, []).append(each)
    near = difflib.get_close_matches(wanted.rsplit(":", 1)[-1][:LONGEST], words, 1, ALIKE)
    found = words[near[0]] if near else []
    hint = f"did you mean {_list(found, MOST_NEAR)}?" if found else f"there are {_list(known, MOST_NEAR)}"
    raise InputError(f"{missing} {typed!r:.{LONGEST}}: {hint}")


def _list(names: list[str], most: int) -> str:
    """Name some, each as short as it can be typed."""
    tops = {each.partition(":")[0] for each in names}
    short = [each.partition(":")[2] or each for each in names] if len(tops) == 1 else names
    return ", ".join(map(repr, short[:most])) + (f" and {len(short) - most} more" if len(short) > most else "")
