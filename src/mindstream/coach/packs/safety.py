"""What must be recognised before anyone speaks: in code, from the pack's alarms, with a model too."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from mindstream.caches import remember
from mindstream.coach.packs.pack import Alarm, Pack, all_texts
from mindstream.coach.packs.recogniser import recognises_danger
from mindstream.coach.packs.together import Together
from mindstream.text.pattern import Patterns, pattern
from mindstream.text.traditional import simplify

SAFETY = "safety"
"""Named as the model of an answer that an alarm gave."""
LONG = 1_000
"""Longer texts, in characters, are looked over in a thread; a short one takes some milliseconds."""
REMEMBERED = 200


@dataclass(frozen=True, slots=True)
class Raised:
    """An alarm that an utterance raises or hints at, and by what it was heard."""

    alarm: Alarm
    basis: Literal["words", "recogniser"]


LATELY = 3
"""So many answers after an alarm that stopped the talk, a stand-in talks of nothing else."""


async def look_over(pack: Pack, text: str) -> None:
    """Look a long text over beside the event loop; whoever then asks what it raises is answered from memory."""
    if len(text) > LONG and pack.alarms:
        await asyncio.to_thread(find_hint, pack, text)


def find_alarm(pack: Pack, text: str) -> Alarm | None:
    """Return the alarm that an utterance raises, one that stops before one that does not."""
    raised = find_raised(pack, text)
    return raised.alarm if raised else None


def find_raised(pack: Pack, text: str) -> Raised | None:
    """Return the first alarm that an utterance raises by its words; no classifier takes that back.

    Asked more than once about the same words, it answers from memory.
    """
    return pack.cached(("alarms", ""), lambda: remember(REMEMBERED)(partial(_sure, pack)))(text)


def find_hint(pack: Pack, text: str) -> Raised | None:
    """Return what an utterance only hints at: by a pack's `hints`, else by what a recogniser hears.

    Where an alarm stops the talk for sure there is nothing left to hint at.
    """
    return pack.cached(("alarms", "hint"), lambda: remember(REMEMBERED)(partial(_hinted, pack)))(text)


def spoke_of_danger(pack: Pack, said: Sequence[str]) -> bool:
    """Tell whether one of the last answers is what an alarm says that stops the talk; `said`: those of the coach."""
    texts = [text for alarm in pack.alarms if alarm.stops for text in all_texts(alarm.say)]
    return any(text in answer for answer in said[-LATELY:] for text in texts)


def _sure(pack: Pack, text: str) -> Raised | None:
    raised = _matching(pack, _plain(text))
    sure = next((alarm for alarm in raised if alarm.stops), next(iter(raised), None))
    return Raised(sure, "words") if sure else None


def _hinted(pack: Pack, text: str) -> Raised | None:
    if (sure := find_alarm(pack, text)) and sure.stops:
        return None
    for alarm in _matching(pack, _plain(text), "hints"):
        return Raised(alarm, "words")
    heard = (alarm for alarm in pack.alarms if alarm.recogniser and recognises_danger(_spared(alarm, text)))
    return next((Raised(alarm, "recogniser") for alarm in heard), None)


def _plain(text: str) -> str:
    return " ".join(simplify(text).replace("’", "'").replace("＇", "'").split())


def _spared(alarm: Alarm, text: str) -> str:
    """Return what a recogniser reads: the text, or what is left of it where harmless phrases stand in it."""
    plain = _plain(text)
    left = _without(alarm, plain)
    return text if left == plain else left


Part = Literal["patterns", "hints", "unless"]


def _matching(pack: Pack, text: str, part: Literal["patterns", "hints"] = "patterns") -> list[Alarm]:
    """Return the alarms of which a pattern stands in a text, its harmless phrases aside."""
    spared = _found(pack, text, "unless")
    found = _found(pack, text, part)
    return [
        alarm
        for at, alarm in enumerate(pack.alarms)
        if at in (found if at not in spared else _found(pack, _without(alarm, text), part))
    ]


def _without(alarm: Alarm, text: str) -> str:
    """Return a text without the phrases that are harmless to an alarm."""
    for phrases in alarm.unless.values():
        for phrase in phrases:
            text = pattern(simplify(phrase)).without(text)
    return text


def _found(pack: Pack, text: str, part: Part) -> frozenset[int]:
    """Return the places of the alarms of which a pattern stands in a text, or words that say it together."""
    found = _patterns(pack, part).matching(text)
    if part == "patterns":
        found = found.union(*(each.matching(text) for each in _together(pack)))
    return found


def _together(pack: Pack) -> list[Together[int]]:
    """Return what says an alarm together, by language; each alarm by its place."""

    def build() -> list[Together[int]]:
        languages = {language for alarm in pack.alarms for language in alarm.together}
        return [
            Together(language, {at: alarm.together.get(language, ()) for at, alarm in enumerate(pack.alarms)})
            for language in sorted(languages)
        ]

    return pack.cached(("alarms", "together"), build)


def _patterns(pack: Pack, part: Part) -> Patterns[int]:
    """Return a pack's patterns of alarms, their hints, or the phrases that spare them, by the place of the alarm.

    What cannot be searched for in time counts as an alarm, and not as harmless.
    """
    return pack.cached(
        ("alarms", part),
        lambda: Patterns(
            {
                at: [pattern(simplify(source)) for sources in getattr(alarm, part).values() for source in sources]
                for at, alarm in enumerate(pack.alarms)
            },
            in_doubt=part != "unless",
        ),
    )
