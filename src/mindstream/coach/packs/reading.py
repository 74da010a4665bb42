"""How rules read an utterance: its language, the moves it makes, the pack's topics it names or denies.

No model; data only: the moves (coach/moves), the topics' cues in the pack. English cues match in any form of the
word and through small misspellings; Chinese cues match as character strings (cues.py), traditional ones as simplified.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial

from mindstream.caches import remember
from mindstream.coach.memory_question import only_asks_for_own
from mindstream.coach.moves.moves import ASKS, moves_of
from mindstream.coach.packs.cues import BREAKS, Cues, Span, is_denied, is_of_somebody_else
from mindstream.coach.packs.pack import Pack
from mindstream.text.language import Language, language_of
from mindstream.text.traditional import simplify
from mindstream.text.windows import both_ends, first_and_last

REMEMBERED = 2_000
"""How many utterances' readings are remembered for a pack."""
CLAUSES = 100
"""In so many clauses, the first and the last, topics are looked for."""


@dataclass(frozen=True, slots=True)
class Mention:
    """A topic that an utterance names; `denied`: it says that this is not the case."""

    topic: str
    words: str
    denied: bool


@dataclass(frozen=True, slots=True)
class Reading:
    """What the rules see in an utterance."""

    text: str
    language: Language
    moves: frozenset[str]
    mentions: tuple[Mention, ...]

    @property
    def topics(self) -> list[str]:
        """The topics that are named as being the case."""
        return [mention.topic for mention in self.mentions if not mention.denied]


def read_utterance(pack: Pack, text: str) -> Reading:
    """Read an utterance as the rules understand it; what was read lately is remembered."""
    return pack.cached(("readings", ""), lambda: remember(REMEMBERED)(partial(_read, pack)))(text)


def _read(pack: Pack, text: str) -> Reading:
    language = language_of(text, pack.languages)
    moves = moves_of(text, language)
    if only_asks_for_own(text):  # "what do I eat before bed?" asks memory, whatever else it sounds like
        moves = moves - ASKS | {"recall"}
    return Reading(text, language, moves, tuple(_mentions(pack, text, language)))


def _mentions(pack: Pack, text: str, language: Language) -> list[Mention]:
    found: dict[str, Mention] = {}
    clauses = [clause for part in BREAKS.split(both_ends(text)) if (clause := part.strip())]
    for clause in first_and_last(clauses, CLAUSES):
        for mention in _in_clause(pack, clause, language):
            known = found.get(mention.topic)
            if known is None or (known.denied and not mention.denied):
                found[mention.topic] = mention
    return list(found.values())


def _in_clause(pack: Pack, clause: str, language: Language) -> list[Mention]:
    plain = simplify(clause)
    found = pack.cached(("cues", language), lambda: _cues(pack, language)).find(plain)
    return [
        Mention(topic, clause[start:end], is_denied(plain[:start], language))
        for topic, (start, end) in found.items()
        if language == "zh" or not any(_swallowed((start, end), other, clause) for other in found.values())
        if not (_own(pack, topic) and language != "zh" and is_of_somebody_else(clause[:start]))
    ]


def _cues(pack: Pack, language: Language) -> Cues[str]:
    return Cues(language, pack.cues(language))


def _own(pack: Pack, topic: str) -> bool:
    found = pack.topic(topic)
    return found is not None and found.own


def _swallowed(span: Span, other: Span, clause: str) -> bool:
    """Tell whether a mention is only a part of a longer one; 'noise and light' are two, though."""
    inside = other[0] <= span[0] and span[1] <= other[1] and other != span
    return inside and not re.search(r"\b(?:and|or|nor|plus)\b|&", clause[other[0] : other[1]].lower())
