"""Where a pack's words stand in what somebody says: in any form and through small misspellings; Chinese as strings."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Generic, TypeAlias, TypeVar

from rapidfuzz.distance import OSA

from mindstream.caches import remember
from mindstream.text.language import Language
from mindstream.text.pattern import pattern
from mindstream.text.traditional import simplify
from mindstream.text.words import stem

Name = TypeVar("Name", bound=Hashable)
Span: TypeAlias = tuple[int, int]
"""From where to where words stand in a clause."""
WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
CUE_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?|\*")
GAP, WIDEST = "*", 3
"""In a cue a star stands for up to three words, or six Chinese characters: 'wake * times'."""
BREAKS = re.compile(
    r"[.,;:!?。，；：！？\n]+|\b(?:but|because|since|when|although|though|due|so|and then|while|just|only)\b"
    r"|但是|但|因为|不过|只是",
    re.IGNORECASE,
)
"""What ends a clause."""
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
DENIES_ZH = re.compile(r"(?:没有?|不是|不喝|不吃|不抽|不用|并不|从来?不|不会|无|戒了?)$")
OTHERS = re.compile(
    r"\b(?:he|she|they|(?:my|our|his|her|the) (?:\w+ )?(?:girl ?friend|boy ?friend|wife|husband|partner|mum|mom"
    r"|mother|dad|father|parents|sister|brother|uncle|aunt|cousin|grand ?\w+|flat ?mate|room ?mate|colleagues?|boss"
    r"|neighbou?rs?|friends?|son|daughter|kids?|children|cat|dog))\b",
    re.IGNORECASE,
)
REAL_WORDS = frozenset(Path(__file__).with_name("real_words.txt").read_text("utf-8").split())
"""Words that are near a cue in letters and mean something else; they are no misspellings."""


class Cues(Generic[Name]):
    """The cues of one language, by what they show."""

    def __init__(self, language: Language, named: Mapping[Name, Iterable[str]]) -> None:
        self._chinese = language == "zh"
        self._index: dict[str, list[tuple[int, Name, tuple[str, ...]]]] = {}
        for number, (name, cue) in enumerate(
            (name, cue.strip(f"{GAP} ")) for name, cues in named.items() for cue in cues
        ):
            if parts := tuple(simplify(cue).split(GAP)) if self._chinese else _stemmed(cue):
                self._index.setdefault(parts[0][:2] if self._chinese else parts[0], []).append((number, name, parts))
        self._initials: dict[str, list[str]] = {}
        """English first stems by their letter: a misspelt word keeps it."""
        if not self._chinese:
            for first, cues in self._index.items():
                cues.sort(key=lambda cue: -len(cue[2]))
                self._initials.setdefault(first[0], []).append(first)

    def find(self, clause: str) -> dict[Name, Span]:
        """Return what is shown in a clause, and where its first cue stands."""
        return self._find_chinese(clause) if self._chinese else self._find_spaced(clause)

    def _find_chinese(self, clause: str) -> dict[Name, Span]:
        beginnings = {clause[at : at + size] for size in (1, 2) for at in range(len(clause) - size + 1)}
        found: dict[Name, Span] = {}
        for _, name, pieces in sorted(cue for each in self._index.keys() & beginnings for cue in self._index[each]):
            if name not in found and all(piece in clause for piece in pieces) and (span := _first(pieces, clause)):
                found[name] = span
        return found

    def _find_spaced(self, clause: str) -> dict[Name, Span]:
        words = [found for found in WORD.finditer(clause) if found[0].lower() not in WEAK]
        plain = [_plain(found[0]) for found in words]
        stems = [stem(word) for word in plain]
        found: dict[Name, Span] = {}
        for at, word in enumerate(plain):
            for _, name, parts in self._beginning(stems[at], word):
                end = None if name in found else _end(parts[1:], stems, plain, at + 1)
                if end is not None:
                    found[name] = (words[at].start(), words[end - 1].end())
        return found

    def _beginning(self, stemmed: str, word: str) -> Iterator[tuple[int, Name, tuple[str, ...]]]:
        """Give the cues that may begin with this word, misspelt or not."""
        yield from self._index.get(stemmed, ())
        if len(word) >= 5 and word.isalpha() and word not in REAL_WORDS and stemmed not in self._index:
            for first in self._initials.get(word[0], ()):
                if _same(first, stemmed, word):
                    yield from self._index[first]


def is_denied(before: str, language: Language) -> bool:
    """Tell whether what follows these words is denied: 'I don't drink coffee', but not 'I can't stand the noise'."""
    if language == "zh":
        return bool(DENIES_ZH.search(before[-4:]))
    near = UNDENIES.sub("", " ".join(before.split()[-5:]))
    denials = list(DENIES.finditer(near))
    return bool(denials) and not ATTITUDE.search(near[denials[-1].end() :])


def is_of_somebody_else(before: str) -> bool:
    """Tell whether the words before a mention make somebody else its subject."""
    others = list(OTHERS.finditer(before))
    return bool(others) and not re.search(
        r"\b(?:i|i'm|im|i've|me|my|we|us)\b", before[others[-1].end() :], re.IGNORECASE
    )


def _plain(word: str) -> str:
    """Write a word as cues are compared: 'can't' and 'cant' are one."""
    return word.lower().replace("’", "'").replace("n't", "nt")


def _stemmed(cue: str) -> tuple[str, ...]:
    words = [_plain(word) for word in CUE_WORD.findall(cue)]
    return tuple(stem(word) for word in words if word not in WEAK)


def _first(pieces: tuple[str, ...], clause: str) -> Span | None:
    if len(pieces) > 1:
        return pattern(f".{{0,{2 * WIDEST}}}?".join(map(re.escape, pieces))).first(clause)
    start = clause.find(pieces[0])
    return (start, start + len(pieces[0])) if start >= 0 else None


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


@remember(100_000)
def _same(cue: str, stemmed: str, word: str) -> bool:
    """Tell whether a word is a form of the cue, or a small misspelling of it."""
    if cue == stemmed:
        return True
    if len(cue) < 5 or len(word) < 5 or cue[0] != word[0] or word in REAL_WORDS:
        return False
    return OSA.distance(cue, stemmed, score_cutoff=2) <= (1 if len(cue) < 8 else 2)
