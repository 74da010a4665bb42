"""What somebody is about these days, a day later: what is over goes, what happened and what comes is added."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, timedelta

from mindstream.town.rules.times import read_days

SENTENCES = re.compile(r"(?<=[a-z)*\d][.!?])\s+")
NEWS = ("Yesterday, ", "Since yesterday: ")
TODAY = "Today, "
ADDED = (*NEWS, TODAY)
LONGEST, A_PART = 800, 160
TALKED = re.compile(r"^(?P<who>.{1,60}?) talked with (?P<other>.{1,60}?) about (?P<about>.+)$")


def next_currently(before: str, who: str, day: date, told: Sequence[tuple[date, str]], plans: Sequence[str]) -> str:
    """Return what somebody is about on a day.

    Args:
        told: what comes to mind, with the day on which it was written down.
        plans: what was agreed on for this day.
    """
    kept = [
        each
        for each in SENTENCES.split(before.strip())
        if each and not each.startswith(ADDED) and not _is_over(each, day)
    ]
    yesterday = day - timedelta(days=1)
    lately = [text for when, text in told if when == yesterday and text.startswith(who.split()[0])]
    added = []
    if talks := _talks(lately):
        added.append(f"Yesterday, {who} talked with {talks}.")
    thoughts = (each for each in lately if not TALKED.match(each) and "'s plan for " not in each)
    thought = next((each for each in thoughts if not _is_over(each, day)), "")
    if thought:
        added.append(f"Since yesterday: {SENTENCES.split(thought)[0][:A_PART].rstrip(' .,;')}.")
    if plans:
        added.append(f"{TODAY}{who} will be {' and '.join(plans)[:A_PART]}.")
    if not (kept or added):
        return before[:LONGEST]
    room = LONGEST - sum(len(each) + 1 for each in added)
    return " ".join([" ".join(kept)[: max(0, room)].strip(), *added]).strip()


def still_holds(text: str, day: date) -> str:
    """Leave out of what was written the day before what was said of that day, and what is over."""
    return " ".join(each for each in SENTENCES.split(text) if not (each.startswith(TODAY) or _is_over(each, day)))


def without_news(text: str) -> str:
    """Leave out what happened of late and what others told: no work and no habit of one's own."""
    return " ".join(each for each in SENTENCES.split(text) if not each.startswith(NEWS))


def _is_over(sentence: str, day: date) -> bool:
    """Tell whether a sentence is about days that have all gone by."""
    days = read_days(sentence, day)
    return bool(days) and max(days) < day


def _talks(lately: Sequence[str]) -> str:
    """Say with whom one talked, and about what: the first two."""
    said = []
    for text in lately:
        if found := TALKED.match(text):
            said.append(f"{found['other']} about {SENTENCES.split(found['about'])[0][:80].strip(' .')}")
    return " and with ".join(dict.fromkeys(said[:2]))
