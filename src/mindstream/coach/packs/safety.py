"""What must be recognised before anyone speaks: in code, from the pack's alarms, with a model too."""

from __future__ import annotations

import asyncio
from functools import partial

from mindstream.caches import remember
from mindstream.coach.packs.pack import Alarm, Pack
from mindstream.coach.packs.recogniser import harmless, recognises
from mindstream.text.pattern import Patterns, pattern

SAFETY = "safety"
"""Named as the model of an answer that an alarm gave."""
LONG = 1_000
"""Longer texts, in characters, are looked over in a thread; a short one takes some milliseconds."""
REMEMBERED = 200


async def look_over(pack: Pack, text: str) -> None:
    """Look a long text over beside the event loop; whoever then asks what it raises is answered from memory."""
    if len(text) > LONG and pack.alarms:
        await asyncio.to_thread(find_alarm, pack, text)


def find_alarm(pack: Pack, text: str) -> Alarm | None:
    """Return the first alarm that an utterance raises, one that stops before one that does not.

    Asked more than once about the same words, it answers from memory.

    What a pattern finds comes before what a recogniser finds: it knows more exactly what it is. But where the
    recogniser is sure of the contrary ("my doctor asked whether I think of harming myself; I don't"), a pattern's word
    is not enough.
    """
    return pack.cached(("alarms", ""), lambda: remember(REMEMBERED)(partial(_recognised, pack)))(text)


def _recognised(pack: Pack, text: str) -> Alarm | None:
    matched = _matching(pack, " ".join(text.replace("’", "'").replace("＇", "'").split()))
    raised = [alarm for alarm in matched if not (alarm.recogniser and harmless(alarm.recogniser, text))]
    if not any(alarm.stops for alarm in raised):
        raised += [alarm for alarm in pack.alarms if alarm.recogniser and recognises(alarm.recogniser, text)]
    return next((alarm for alarm in raised if alarm.stops), next(iter(raised), None))


def _matching(pack: Pack, text: str) -> list[Alarm]:
    """Return the alarms of which a pattern stands in a text, its harmless phrases aside."""
    spared = _patterns(pack, "unless").matching(text)
    found = _patterns(pack, "patterns").matching(text)
    return [
        alarm
        for at, alarm in enumerate(pack.alarms)
        if at in (found if at not in spared else _patterns(pack, "patterns").matching(_without(alarm, text)))
    ]


def _without(alarm: Alarm, text: str) -> str:
    """Return a text without the phrases that are harmless to an alarm."""
    for phrases in alarm.unless.values():
        for phrase in phrases:
            text = pattern(phrase).without(text)
    return text


def _patterns(pack: Pack, part: str) -> Patterns[int]:
    """Return the patterns of a pack's alarms, or the phrases that spare them, by the place of the alarm.

    What cannot be searched for in time counts as an alarm, and not as harmless.
    """
    return pack.cached(
        ("alarms", part),
        lambda: Patterns(
            {
                at: [pattern(source) for sources in getattr(alarm, part).values() for source in sources]
                for at, alarm in enumerate(pack.alarms)
            },
            in_doubt=part == "patterns",
        ),
    )
