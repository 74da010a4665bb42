"""What a person types of a town, found in it: a resident, a place, a time; what is not there with its nearest."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable

from mindstream.errors import InputError
from mindstream_town.inspect.time_words import format_time, read_moment
from mindstream_town.residents.places import words_of
from mindstream_town.setting import Setting
from mindstream_town.world.tree import OBJECT

LONGEST = 99
"""So many characters of what was typed are repeated."""
MOST_FITS, MOST_NEAR = 40, 8
"""So many are named of those that fit, and where nothing does."""
ALIKE = 0.7
"""As near what was typed must be to a name, for that one to be meant."""
STEM = 3
"""A word of so many letters that is a part of the other is meant, too."""


def find_resident(setting: Setting, typed: str) -> str:
    """Return the name of a resident: whole, or a part of it that only one has, in any letters.

    Raises:
        InputError: nobody is called so, or several are.
    """
    return _find(typed, setting.people, f"nobody in {setting.name} is called")


def find_place(setting: Setting, typed: str) -> str:
    """Return the address of a place: whole, the end of it, or in words ("quay of Landing", "Landing quay").

    Where all that fit lie in one place, as the rooms of a house do, that one is meant.

    Raises:
        InputError: there is none, or several.
    """
    places, wanted = [each for each in setting.addresses if ":" in each], typed.strip().casefold()
    said = [each for each in places if wanted in _ways_to_say(each)]
    if len(said) == 1 and typed not in places:
        return said[0]
    return _find(typed, places, f"there is no place in {setting.name} called")


def _ways_to_say(place: str) -> tuple[str, ...]:
    """Return a place in words, as lists print it, and from the widest to the narrowest, in small letters."""
    words = words_of(place).casefold()
    return words, f"the {words}", " ".join(place.split(":")[1:]).casefold()


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


def find_step(setting: Setting, typed: str, now: int, *, end: bool = False, day_of: int | None = None) -> int:
    """Return the step of a time: "Feb 14 19:00", "day 2", "yesterday 10am", "19:00" (today), "step 4320".

    Args:
        now: the step that says which day today is.
        end: of a day alone its last step is meant, else its first.
        day_of: the step of whose day a time of the day alone is; None: of today.

    Raises:
        InputError: it is no time, there is no such day, or it is before the town's first step.
    """
    words = typed.strip().split()
    if len(words) == 2 and words[0].lower() == "step" and words[1].isdecimal() and len(words[1]) < 12:
        return int(words[1])
    when = read_moment(setting, typed, now, end=end, day_of=day_of)
    step = -int(-(when - setting.start) // setting.profile.step_s) if when is not None else -1
    if step >= 0:
        return step
    first = setting.when(0)
    what = "no time" if when is None else "before the town's first moment"
    raise InputError(
        f"{typed!r:.{LONGEST}} is {what}: it begins on {first:%b} {first.day} {first:%H:%M}; say it as"
        f' "{first:%b} {first.day} 19:00", "{first:%b} {first.day}", "day 1 7pm", "yesterday noon", "19:00" or "now"'
    )


def find_span(setting: Setting, since: str, until: str, now: int) -> tuple[int, int]:
    """Return the steps from one time to another; without one from the first step, or to the last.

    A time of the day without a day is in `until` of the day of `since`.

    Raises:
        InputError: one is no time, or the second is before the first.
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
            raise InputError(f"{typed!r:.{LONGEST}} may be {_list(fits, MOST_FITS)}: say which")
    near = _nearest(wanted.rsplit(":", 1)[-1][:LONGEST], known)
    hint = f"did you mean {_list(near, MOST_NEAR)}?" if near else f"there are {_list(_short_names(known), MOST_NEAR)}"
    if not near and ":" in known[0]:
        hint += "; mindstream town places lists them"
    raise InputError(f"{missing} {typed!r:.{LONGEST}}: {hint}")


def _short_names(names: list[str]) -> list[str]:
    """Return the last parts of addresses, each once."""
    return list(dict.fromkeys(each.rpartition(":")[2] for each in names))


def _nearest(wanted: str, known: Iterable[str]) -> list[str]:
    """Return the names that are most like what was typed: as a whole, by one word, or by how one begins."""
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
    """Name some, each as short as it can be typed."""
    tops = {each.partition(":")[0] for each in names}
    short = [each.partition(":")[2] or each for each in names] if len(tops) == 1 else names
    return ", ".join(map(repr, short[:most])) + (f" and {len(short) - most} more" if len(short) > most else "")
