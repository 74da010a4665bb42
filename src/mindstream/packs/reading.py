"""How rules read an utterance: its language, the moves it makes, the pack's topics it names or denies.

No model; data only: `moves.yaml` here, the topics' cues in the pack. English cues match in any form of the word and
through small misspellings; Chinese cues match as character strings.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import yaml
from rapidfuzz.distance import OSA

from mindstream.caches import remember
from mindstream.language.windows import windows
from mindstream.language.words import stem
from mindstream.packs.misspelt import mended
from mindstream.packs.pack import Language, Pack

CJK = re.compile(r"[\u3400-\u9fff]")
WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
CUE_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?|\*")
REMEMBERED = 2_000
"""How many utterances' readings are remembered for a pack."""
WINDOW = 600
"""How much of an utterance the patterns of moves are given at once, in characters."""
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


def language_of(text: str, among: tuple[Language, ...] = ("en", "zh")) -> Language:
    """Tell the language of a text by its script; the first of `among` where it cannot be told."""
    spoken = [c for c in text if c.isalpha()]
    chinese = sum(1 for c in spoken if CJK.match(c))
    if "zh" in among and chinese * 5 > len(spoken):  # a character says as much as four letters
        return "zh"
    return next((language for language in among if language != "zh"), among[0])


def read(pack: Pack, text: str) -> Reading:
    """Read an utterance as the rules understand it; what was read lately is remembered."""
    return pack.cached(("readings", ""), lambda: remember(REMEMBERED)(partial(_read, pack)))(text)


def _read(pack: Pack, text: str) -> Reading:
    language = language_of(text, pack.languages)
    return Reading(text, language, moves_of(text, language), tuple(_mentions(pack, text, language)))


def moves_of(text: str, language: Language) -> frozenset[str]:
    """Name what an utterance does in a conversation: greets, asks for a plan, dislikes, … (moves.yaml)."""
    return frozenset(
        name
        for window in windows(_plain(text, language), WINDOW)
        for name, patterns in _moves().items()
        if any(pattern.search(window) for pattern in patterns.get(language, ()))
    )


def besides(text: str, language: Language, moves: Collection[str]) -> str:
    """Return what an utterance says besides these moves: its beginning, without the words that make them."""
    text = _plain(text, language)[:WINDOW]
    for name in moves:
        for pattern in _moves()[name].get(language, ()):
            text = pattern.sub(" ", text)
    return text


def _plain(text: str, language: Language) -> str:
    return text if language == "zh" else mended(text.replace("’", "'"))


def move_names() -> tuple[str, ...]:
    """Name the moves that an utterance can make."""
    return tuple(_moves())


@lru_cache(1)
def _moves() -> dict[str, dict[Language, list[re.Pattern[str]]]]:
    raw = yaml.load(Path(__file__).with_name("moves.yaml").read_text("utf-8"), Loader=yaml.CSafeLoader)
    return {
        move: {language: [re.compile(p, re.IGNORECASE) for p in patterns] for language, patterns in by.items()}
        for move, by in raw.items()
    }


def _mentions(pack: Pack, text: str, language: Language) -> list[Mention]:
    found: dict[str, Mention] = {}
    for clause in filter(None, (part.strip() for part in BREAKS.split(text))):
        mentions = _chinese(pack, clause) if language == "zh" else _english(pack, clause, language)
        for mention in mentions:
            known = found.get(mention.topic)
            if known is None or (known.denied and not mention.denied):
                found[mention.topic] = mention
    return list(found.values())


def _chinese(pack: Pack, clause: str) -> list[Mention]:
    found = []
    for topic in pack.topics:
        for cue in pack.cues("zh")[topic.id]:
            seen = _pattern_zh(cue).search(clause)
            if seen:
                before = clause[max(0, seen.start() - 4) : seen.start()]
                found.append(Mention(topic.id, seen[0], bool(DENIES_ZH.search(before))))
                break
    return found


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
    """Return where a cue ends whose words come from here on; None where they do not."""
    if not cue:
        return at
    if cue[0] == GAP:
        ends = (_end(cue[1:], stems, words, at + skipped) for skipped in range(WIDEST + 1))
        return next((end for end in ends if end is not None), None)
    if at < len(words) and _same(cue[0], stems[at], words[at]):
        return _end(cue[1:], stems, words, at + 1)
    return None


@lru_cache(10_000)
def _pattern_zh(cue: str) -> re.Pattern[str]:
    return re.compile(f".{{0,{2 * WIDEST}}}?".join(map(re.escape, cue.split(GAP))))


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
