"""How rules read an utterance: its language, the moves it makes, the pack's topics it names or denies.

No model; data only: the moves (coach/moves), the topics' cues in the pack. English cues match in any form of the
word and through small misspellings; Chinese cues match as character strings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rapidfuzz.distance import OSA

from mindstream.caches import remember
from mindstream.coach.moves.moves import moves_of
from mindstream.coach.packs.pack import Pack
from mindstream.text.language import Language, language_of
from mindstream.text.pattern import pattern
from mindstream.text.windows import both_ends, first_and_last
from mindstream.text.words import stem

WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
CUE_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?|\*")
REMEMBERED = 2_000
"""How many utterances' readings are remembered for a pack."""
CLAUSES = 100
"""In so many clauses, the first and the last, topics are looked for."""
GAP, WIDEST = "*", 3
"""In a cue a star stands for up to three words, or six Chinese characters: 'wake * times'."""
BREAKS = re.compile(
    r"[.,;:!?。，；：！？\n]+|\b(?:but|because|since|when|although|though|due|so|and then|while|just|only)\b"
    r"|但是|但|因为|不过|只是",
    re.IGNORECASE,
)
DENIES = re.compile(
    r"\b(?:no|not|never|without|none|neither|nor|\w+n['’]t|dont|doesnt|isnt|arent|wasnt|didnt|stopped|quit|gave up)\b",
    re.I,
)
UNDENIES = re.compile(
    r"\b(?:can(?:no|['’])?t|cannot|could ?n['’]?t|won['’]t|not (?:only|just|enough)|no matter|why not|not sure)\b", re.I
)
WEAK = frozenset("up the a an my so very really too always just quite all keep keeps".split())  # noqa: SIM905
"""Words that may stand in a cue or be left out of it: 'wake at three' is 'wake up at three'."""
ATTITUDE = re.compile(r"\b(?:like|love|enjoy|stand|want|need|bear|sleep|know|get|have time)\b", re.I)
DENIES_ZH = re.compile(r"(?:没有?|不是|不喝|不吃|不抽|不用|并不|从不|无|戒了?)$")


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
    return Reading(text, language, moves_of(text, language), tuple(_mentions(pack, text, language)))


def _mentions(pack: Pack, text: str, language: Language) -> list[Mention]:
    found: dict[str, Mention] = {}
    text = both_ends(text)
    clauses = [clause for part in BREAKS.split(text) if (clause := part.strip())]
    chinese = _spoken(pack, text) if language == "zh" else {}
    for clause in first_and_last(clauses, CLAUSES):
        mentions = _chinese(chinese, clause) if language == "zh" else _english(pack, clause, language)
        for mention in mentions:
            known = found.get(mention.topic)
            if known is None or (known.denied and not mention.denied):
                found[mention.topic] = mention
    return list(found.values())


Pieces = tuple[str, ...]
"""A Chinese cue: the characters between its stars."""


def _spoken(pack: Pack, text: str) -> dict[str, list[Pieces]]:
    """Return each topic's Chinese cues of which all pieces stand somewhere in a text, in the pack's order."""
    by_beginning = pack.cached(("beginnings", "zh"), lambda: _by_beginning(pack))
    beginnings = {text[at : at + size] for size in (1, 2) for at in range(len(text) - size + 1)}
    spoken: dict[str, list[Pieces]] = {}
    for _, topic, pieces in sorted(cue for each in by_beginning.keys() & beginnings for cue in by_beginning[each]):
        if all(piece in text for piece in pieces):
            spoken.setdefault(topic, []).append(pieces)
    return spoken


def _by_beginning(pack: Pack) -> dict[str, list[tuple[int, str, Pieces]]]:
    """Index a pack's Chinese cues, numbered, by their first two characters."""
    index: dict[str, list[tuple[int, str, Pieces]]] = {}
    cues = ((topic, cue.strip(f"{GAP} ")) for topic, cues in pack.cues("zh").items() for cue in cues)
    for number, (topic, cue) in enumerate(cues):
        if cue:
            index.setdefault(cue.split(GAP)[0][:2], []).append((number, topic, tuple(cue.split(GAP))))
    return index


def _chinese(spoken: Mapping[str, Sequence[Pieces]], clause: str) -> list[Mention]:
    found = []
    for topic, cues in spoken.items():
        if seen := next(filter(None, (_first(pieces, clause) for pieces in cues)), None):
            start, end = seen
            denied = bool(DENIES_ZH.search(clause[max(0, start - 4) : start]))
            found.append(Mention(topic, clause[start:end], denied))
    return found


def _first(pieces: Pieces, clause: str) -> tuple[int, int] | None:
    """Return from where to where a cue stands in a clause."""
    if len(pieces) > 1:
        return pattern(f".{{0,{2 * WIDEST}}}?".join(map(re.escape, pieces))).first(clause)
    start = clause.find(pieces[0])
    return (start, start + len(pieces[0])) if start >= 0 else None


def _english(pack: Pack, clause: str, language: Language) -> list[Mention]:
    found_words = [m for m in WORD.finditer(clause) if m[0].lower() not in WEAK]
    spans = [(m.start(), m.end()) for m in found_words]
    words = [m[0].lower().replace("’", "'") for m in found_words]
    stems = [stem(word) for word in words]
    found: dict[str, tuple[int, int]] = {}
    for at, word in enumerate(words):
        for cue, topic in _beginning(pack, language, stems[at], word):
            end = None if topic in found else _end(cue[1:], stems, words, at + 1)
            if end is not None:
                found[topic] = (spans[at][0], spans[end - 1][1])
    return [
        Mention(topic, clause[start:end], _denied(clause[:start]))
        for topic, (start, end) in found.items()
        if not any(_swallowed((start, end), other, clause) for other in found.values())
        and not (_own(pack, topic) and _of_somebody_else(clause[:start]))
    ]


def _end(cue: tuple[str, ...], stems: list[str], words: list[str], at: int) -> int | None:
    """Return where a cue ends whose words come from here on; None where they do not. What is skipped is the least."""
    ends, said = [at], len(words)
    for word in cue:
        if word == GAP:
            ends = list(dict.fromkeys(end + skipped for end in ends for skipped in range(WIDEST + 1)))
            continue
        ends = [end + 1 for end in ends if end < said and _same(word, stems[end], words[end])]
        if not ends:
            return None
    return ends[0]


OTHERS = re.compile(
    r"\b(?:he|she|they|(?:my|our|his|her|the) (?:\w+ )?(?:girl ?friend|boy ?friend|wife|husband|partner|mum|mom"
    r"|mother|dad|father|parents|sister|brother|flat ?mate|room ?mate|colleagues?|boss|neighbou?rs?|friends?|son"
    r"|daughter|kids?|children|cat|dog))\b",
    re.IGNORECASE,
)


def _own(pack: Pack, topic: str) -> bool:
    found = pack.topic(topic)
    return found is not None and found.own


def _of_somebody_else(before: str) -> bool:
    """Tell whether the words before a mention make somebody else its subject."""
    others = list(OTHERS.finditer(before))
    return bool(others) and not re.search(
        r"\b(?:i|i'm|im|i've|me|my|we|us)\b", before[others[-1].end() :], re.IGNORECASE
    )


def _swallowed(span: tuple[int, int], other: tuple[int, int], clause: str) -> bool:
    """Tell whether a mention is only a part of a longer one; 'noise and light' are two, though."""
    inside = other[0] <= span[0] and span[1] <= other[1] and other != span
    return inside and not re.search(r"\b(?:and|or|nor|plus)\b|&", clause[other[0] : other[1]].lower())


Cue = tuple[tuple[str, ...], str]
"""A cue as stems, and the topic that it shows."""


def _beginning(pack: Pack, language: Language, stemmed: str, word: str) -> Iterator[Cue]:
    """Give the cues that may begin with this word, misspelt or not."""
    cues = pack.cached(("cues", language), lambda: _indexed(pack, language))
    yield from cues.get(stemmed, ())
    if len(word) >= 5 and word.isalpha() and word not in REAL_WORDS and stemmed not in cues:
        for first in pack.cached(("initials", language), lambda: _by_initial(cues)).get(word[0], ()):
            if _same(first, stemmed, word):
                yield from cues[first]


def _by_initial(cues: Iterable[str]) -> dict[str, list[str]]:
    """Group first stems by their letter: a misspelt word keeps it."""
    groups: dict[str, list[str]] = {}
    for first in cues:
        groups.setdefault(first[0], []).append(first)
    return groups


def _indexed(pack: Pack, language: Language) -> dict[str, list[Cue]]:
    """Index a pack's cues by their first stem; longer cues come first."""
    index: dict[str, list[Cue]] = {}
    for topic, cues in pack.cues(language).items():
        for cue in cues:
            words = [word.lower() for word in CUE_WORD.findall(cue.strip(f"{GAP} "))]
            if stemmed := tuple(stem(word) for word in words if word not in WEAK):
                index.setdefault(stemmed[0], []).append((stemmed, topic))
    for found in index.values():
        found.sort(key=lambda cue: -len(cue[0]))
    return index


def _denied(before: str) -> bool:
    """Tell whether what follows these words is denied: 'I don't drink coffee', but not 'I can't stand the noise'."""
    near = " ".join(before.split()[-5:])
    near = UNDENIES.sub("", near)
    denials = list(DENIES.finditer(near))
    return bool(denials) and not ATTITUDE.search(near[denials[-1].end() :])


@remember(100_000)
def _same(cue: str, stemmed: str, word: str) -> bool:
    """Tell whether a word is a form of the cue, or a small misspelling of it."""
    if cue == stemmed:
        return True
    if len(cue) < 5 or len(word) < 5 or cue[0] != word[0] or word in REAL_WORDS:
        return False
    return OSA.distance(cue, stemmed, score_cutoff=2) <= (1 if len(cue) < 8 else 2)


REAL_WORDS = frozenset(Path(__file__).with_name("real_words.txt").read_text("utf-8").split())
"""Words that are near a cue in letters and mean something else; they are no misspellings."""
