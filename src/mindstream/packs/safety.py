"""What must be recognised before anyone speaks: in code, from the pack's alarms, with a model too."""

from __future__ import annotations

import re
from functools import lru_cache, partial

from mindstream.caches import remember
from mindstream.language.windows import windows
from mindstream.packs.pack import Alarm, Pack
from mindstream.packs.recogniser import harmless, recognises

SAFETY = "safety"
"""Named as the model of an answer that an alarm gave."""
WINDOW = 600
"""How much of a text patterns are given at once, in characters."""
REMEMBERED = 200


def recognised(pack: Pack, text: str) -> Alarm | None:
    """Return the first alarm that an utterance raises, one that stops before one that does not.

    Asked more than once about the same words, it answers from memory.

    What a pattern finds comes before what a recogniser finds: it knows more exactly what it is. But where the
    recogniser is sure of the contrary ("my doctor asked whether I think of harming myself; I don't"), a pattern's word
    is not enough.
    """
    return pack.cached(("alarms", ""), lambda: remember(REMEMBERED)(partial(_recognised, pack)))(text)


def _recognised(pack: Pack, text: str) -> Alarm | None:
    plain = re.sub(r"\s+", " ", text.replace("’", "'").replace("＇", "'")).strip()
    matched = [alarm for alarm in pack.alarms if _matches(alarm, plain)]
    raised = [alarm for alarm in matched if not (alarm.recogniser and harmless(alarm.recogniser, text))]
    if not any(alarm.stops for alarm in raised):
        raised += [alarm for alarm in pack.alarms if alarm.recogniser and recognises(alarm.recogniser, text)]
    return next((alarm for alarm in raised if alarm.stops), next(iter(raised), None))


def _matches(alarm: Alarm, text: str) -> bool:
    return any(_matches_in(alarm, window) for window in windows(text, WINDOW))


def _matches_in(alarm: Alarm, text: str) -> bool:
    for patterns in alarm.unless.values():
        for pattern in patterns:
            text = _compiled(pattern).sub(" ", text)
    return any(_compiled(pattern).search(text) for patterns in alarm.patterns.values() for pattern in patterns)


@lru_cache(2_000)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)
