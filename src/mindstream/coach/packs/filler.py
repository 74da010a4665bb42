"""Fillers state nothing: no noun, number or claim that is neither in the utterance nor in memory (spec 1).

A check in code, by vocabulary: the words of holding the line ("one moment, let me think") are free; any other word must
have been said. It errs on the side of finding fault: docs/talker-reasoner.md tells how often.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from mindstream.text.words import stem

WORD = re.compile(r"[a-z]+(?:['’][a-z]+)?|\d+|[\u3400-\u9fff]+", re.IGNORECASE)
FREE_ZH = re.compile(
    r"[请让给我你您的了在再等一下会儿点时间想好就马上稍片刻认真仔细考虑琢磨这那个先别急还没完正是吧呢啊嗯和与先把它"
    r"说问告诉谢看听明白知道可以来也很久长比要有结果]+"
)


@lru_cache(1)
def _free() -> frozenset[str]:
    return frozenset(Path(__file__).with_name("filler_words.txt").read_text("utf-8").split())


def states(filler: str, known: Iterable[str]) -> list[str]:
    """Return the words of a filler that state something: those that are not free and stand nowhere in `known`.

    Args:
        known: the utterance, and what memory holds.
    """
    said = " ".join(known)
    stems = {stem(word.lower().replace("’", "'")) for word in WORD.findall(said)}
    found: list[str] = []
    for word in WORD.findall(filler):
        plain = word.lower().replace("’", "'")
        if "\u3400" <= plain[0] <= "\u9fff":
            found.extend(part for part in re.split(FREE_ZH, plain) if part and part not in said)
        elif plain not in _free() and stem(plain) not in stems:
            found.append(word)
    return found
