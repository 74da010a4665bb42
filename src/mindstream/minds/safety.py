"""What must be recognised before anyone speaks: in code, from the pack's alarms, with a model too."""

from __future__ import annotations

import re
from functools import lru_cache

from mindstream.packs.pack import Alarm, Pack


def recognised(pack: Pack, text: str) -> Alarm | None:
    """Return the first alarm that an utterance raises, one that stops before one that does not."""
    plain = re.sub(r"\s+", " ", text.replace("’", "'").replace("＇", "'")).strip()
    raised = [alarm for alarm in pack.alarms if _raises(alarm, plain)]
    return next((alarm for alarm in raised if alarm.stops), next(iter(raised), None))


def _raises(alarm: Alarm, text: str) -> bool:
    for patterns in alarm.unless.values():
        for pattern in patterns:
            text = _compiled(pattern).sub(" ", text)
    return any(_compiled(pattern).search(text) for patterns in alarm.patterns.values() for pattern in patterns)


@lru_cache(2_000)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)
