"""Detect alarms by code, before any answer: by patterns, by words near each other, and by a recogniser."""

from __future__ import annotations

import asyncio
import heapq
import re
from bisect import bisect_left
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Generic, Literal, TypeAlias, TypeVar

from mindstream.caches import remember
from mindstream.coach.packs.pack import Alarm, Pack, all_texts
from mindstream.text.classifier import TOKEN, Classifier, View, views
from mindstream.text.pattern import Patterns, pattern
from mindstream.text.words import CJK, Language, sentences, simplify, stem, windows

SAFETY = "safety"
"""Model name that is logged for an answer that consists of an alarm's words."""
MAX_INLINE = 1_000
"""Maximum length, in characters, of a text that is analysed in the event loop (this takes a few milliseconds). Longer
texts are analysed in a thread."""
REMEMBERED = 512
"""Maximum number of cached results. They are needed again when the reasoner analyses an utterance, possibly after many
other conversations."""


@dataclass(frozen=True, slots=True)
class Raised:
    """An alarm that an utterance raises or hints at, and what detected it."""

    alarm: Alarm
    basis: Literal["words", "recogniser"]


LATELY = 3
"""After an alarm about danger to life has stopped the conversation: number of answers in which rules give no other
advice."""


async def look_over(pack: Pack, text: str) -> None:
    """Search a long text for hints of danger in a thread. Later searches of this text are answered from the cache."""
    if len(text) > MAX_INLINE and pack.alarms:
        await asyncio.to_thread(find_hint, pack, text)


def find_alarm(pack: Pack, text: str) -> Alarm | None:
    """Return the alarm that an utterance's words raise (see `find_raised`); None: they raise none."""
    raised = find_raised(pack, text)
    return raised.alarm if raised else None


def find_raised(pack: Pack, text: str) -> Raised | None:
    """Return the alarm that an utterance's words raise; None: they raise none.

    If they raise several, an alarm that stops the conversation takes precedence. No classifier overrules this alarm.
    Results are cached.
    """
    return pack.cached(("alarms", ""), lambda: remember(REMEMBERED)(partial(_sure, pack)))(text)


def find_hint(pack: Pack, text: str) -> Raised | None:
    """Return the alarm that an utterance hints at; None: there is no hint.

    The hint is found by the pack's `hints`, or else by a recogniser. The result is also None if the utterance raises an
    alarm that stops the conversation. Results are cached.
    """
    return pack.cached(("alarms", "hint"), lambda: remember(REMEMBERED)(partial(_hinted, pack)))(text)


def spoke_of_danger(pack: Pack, said: Sequence[str]) -> bool:
    """Return whether one of the last LATELY answers in `said` contains the words of an alarm about danger to life that
    stops the conversation."""
    texts = [text for alarm in pack.alarms if alarm.stops and alarm.is_danger for text in all_texts(alarm.say)]
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
    """Return the recogniser's input: the text without the alarm's harmless phrases; unchanged if it has none."""
    plain = _plain(text)
    left = _without(alarm, plain)
    return text if left == plain else left


Part = Literal["patterns", "hints", "unless"]


def _matching(pack: Pack, text: str, part: Literal["patterns", "hints"] = "patterns") -> list[Alarm]:
    """Return the alarms of which a pattern matches a text outside of the alarm's harmless phrases."""
    spared = _found(pack, text, "unless")
    found = _found(pack, text, part)
    return [
        alarm
        for at, alarm in enumerate(pack.alarms)
        if at in (found if at not in spared else _found(pack, _without(alarm, text), part))
    ]


def _without(alarm: Alarm, text: str) -> str:
    """Return a text without an alarm's harmless phrases."""
    for phrases in alarm.unless.values():
        for phrase in phrases:
            text = pattern(simplify(phrase)).without(text)
    return text


def _found(pack: Pack, text: str, part: Part) -> frozenset[int]:
    """Return the indexes of the alarms that a text matches.

    A text matches by a regular expression of this part. For `patterns`, it also matches by words near each other
    (`Alarm.together`).
    """
    found = _patterns(pack, part).matching(text)
    if part == "patterns":
        found = found.union(*(each.matching(text) for each in _together(pack)))
    return found


def _together(pack: Pack) -> list[Together[int]]:
    """Return a matcher for each language. A matcher finds alarms by words near each other (`Alarm.together`).

    The matcher returns the indexes of the alarms in the pack.
    """

    def build() -> list[Together[int]]:
        languages = {language for alarm in pack.alarms for language in alarm.together}
        return [
            Together(language, {at: alarm.together.get(language, ()) for at, alarm in enumerate(pack.alarms)})
            for language in sorted(languages)
        ]

    return pack.cached(("alarms", "together"), build)


def _patterns(pack: Pack, part: Part) -> Patterns[int]:
    """Return the patterns of a pack's alarms, hints or harmless phrases, by alarm index.

    A pattern that cannot be searched in time counts as matching; a pattern of a harmless phrase counts as not matching.
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


Name = TypeVar("Name", bound=Hashable)
Span: TypeAlias = tuple[int, int]
"""Start and end of a match in a text."""
Groups: TypeAlias = Sequence[str]
"""Groups of alternative cues: 'wheel|driving'.

A cue of each group must occur, and these cues must be near each other. No cue of a group that begins with '-' may occur
near them.
"""
NEAR, NEAR_ZH = 150, 48
"""NEAR: number of characters within which a cue of each group must occur. NEAR_ZH: the same for Chinese."""
GAP, WIDEST = "*", 3
"""In a cue a star matches up to three words, or six Chinese characters: 'wake * times'."""
WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?|\*")
BREAKS = re.compile(
    r"[.,;:!?。，；：！？\n]+|\b(?:but|because|since|when|although|though|so|while|just|only)\b|但是|但|因为|不过|只是",
    re.IGNORECASE,
)
"""Matches the end of a clause."""
DENIES = re.compile(r"\b(?:no|not|never|without|none|neither|nor|\w+n['’]t|dont|doesnt|didnt|isnt|stopped)\b", re.I)
UNDENIES = re.compile(r"\b(?:can(?:no|['’])?t|cannot|could ?n['’]?t|won['’]t|not (?:only|just)|no matter)\b", re.I)
DENIES_ZH = re.compile(r"(?:没有?|不是|不会|从来?不|无)$")
OTHERS = re.compile(r"\b(?:he|she|they|(?:my|our|his|her|the) \w+)\b", re.IGNORECASE)
OLD_STORY = re.compile(r"\b(?:years ago|in (?:19|20)\d\d|as a (?:child|kid)|decades)\b|年前|小时候|以前|当年", re.I)
"""Matches words that mark an old story. An old story about another person raises no alarm."""


class Together(Generic[Name]):
    """Finds which named sets of word groups (`[doze|nod off, wheel|driving]`) occur in a text of one language."""

    def __init__(self, language: Language, named: Mapping[Name, Sequence[Groups]]) -> None:
        self._chinese = language == "zh"
        self._near = NEAR_ZH if self._chinese else NEAR
        self._sets = [(name, groups) for name, each in named.items() for groups in each]
        self._cues: dict[str, list[tuple[str, ...]]] = {}
        for _, groups in self._sets:
            for group in groups:
                self._cues[group] = [self._parts(cue) for cue in group.removeprefix("-").split("|")]
        self._by_word: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
        """Groups and their cues, by the first word of the cue."""
        for group, cues in self._cues.items():
            for cue in cues:
                self._by_word.setdefault(next((part for part in cue if part != GAP), GAP), []).append((group, cue))

    def matching(self, text: str) -> frozenset[Name]:
        """Return the names of the sets that match a text.

        A set matches if its groups all occur near each other, and none of its excluded groups (`-…`) does. A cue does
        not count if its clause denies it, or if it belongs to an old story about another person.
        """
        if not self._sets or (self._chinese and not CJK.search(text)):
            return frozenset()
        stand = self._stand(text)
        if not any(stand.values()):
            return frozenset()
        blank = _without_cues_of_several_words(text, (span for spans in stand.values() for span in spans))
        story = bool(OLD_STORY.search(text))

        def counts(begin: int) -> bool:
            before = BREAKS.split(blank[max(0, begin - NEAR) : begin])[-1]
            return not self._is_denied(before) and not (story and _is_of_others(before))

        met = {group: sorted(span for span in spans if counts(span[0])) for group, spans in stand.items()}
        return frozenset(name for name, groups in self._sets if self._is_met(groups, met))

    def _stand(self, text: str) -> dict[str, list[Span]]:
        """Return the occurrences of each group's cues, denied or not."""
        clauses = list(_clauses(text))
        if self._chinese:
            return {
                group: [span for start, clause in clauses for span in _in_chinese(start, clause, cues)]
                for group, cues in self._cues.items()
            }
        words = [_stemmed_words(start, clause) for start, clause in clauses]
        said = {word for each in words for word, _ in each} | {GAP}
        possible: dict[str, list[tuple[str, ...]]] = {}
        for group, cue in (found for word in said for found in self._by_word.get(word, ())):
            if said.issuperset(cue):
                possible.setdefault(group, []).append(cue)
        return {group: [span for each in words for span in _in_words(each, cues)] for group, cues in possible.items()}

    def _parts(self, cue: str) -> tuple[str, ...]:
        if self._chinese:
            return tuple(cue.strip().split(GAP))
        return tuple(word if word == GAP else _stemmed(word) for word in WORD.findall(cue))

    def _is_met(self, groups: Groups, met: Mapping[str, Sequence[Span]]) -> bool:
        wanted = [met.get(group, ()) for group in groups if group[0] != "-"]
        spoilt = [met.get(group, ()) for group in groups if group[0] == "-"]
        return any(
            all(_stands_in(spans, start, start + self._near) for spans in wanted)
            and not any(_stands_in(spans, start - self._near, start + 2 * self._near) for spans in spoilt)
            for start in (start for spans in wanted for start, _ in spans)
        )

    def _is_denied(self, before: str) -> bool:
        if self._chinese:
            return bool(DENIES_ZH.search(before[-4:]))
        return bool(DENIES.search(UNDENIES.sub("", " ".join(before.split()[-5:]))))


def _clauses(text: str) -> Iterator[tuple[int, str]]:
    """Yield the clauses of a text, each with its start; a very long clause is yielded in overlapping parts."""
    start = 0
    for mark in [*BREAKS.finditer(text), None]:
        end = mark.start() if mark else len(text)
        for at in range(start, max(start + 1, end - NEAR), NEAR):
            yield at, text[at : min(end, at + 2 * NEAR)]
        start = mark.end() if mark else end


def _stands_in(spans: Sequence[Span], begin: int, end: int) -> bool:
    """Return whether one of these sorted spans is between two positions."""
    at = bisect_left(spans, (begin, 0))
    return at < len(spans) and spans[at][1] <= end


def _without_cues_of_several_words(text: str, spans: Iterable[Span]) -> str:
    """Return the text with cues of several words blanked: the 'no' in 'no memory' must not deny what follows."""
    signs = list(text)
    for start, end in spans:
        if " " in text[start:end]:
            signs[start:end] = " " * (end - start)
    return "".join(signs)


def _stemmed(word: str) -> str:
    """Return the form in which words are compared, the stem: 'can't' and 'cant' are equal."""
    return stem(word.lower().replace("’", "'").replace("n't", "nt"))


def _stemmed_words(start: int, clause: str) -> list[tuple[str, Span]]:
    return [(_stemmed(found[0]), (start + found.start(), start + found.end())) for found in WORD.finditer(clause)]


def _in_words(words: Sequence[tuple[str, Span]], cues: Sequence[tuple[str, ...]]) -> Iterator[Span]:
    for cue in cues:
        for at in range(len(words)):
            if end := _end(cue, words, at):
                yield words[at][1][0], words[end - 1][1][1]


def _end(cue: Sequence[str], words: Sequence[tuple[str, Span]], at: int) -> int:
    """Return the index after the last word of a cue that begins at the word `at`; 0: no cue begins there.

    A gap (GAP) skips up to WIDEST words. If gaps allow several ends, the nearest end is returned.
    """
    ends = [at]
    for part in cue:
        if part == GAP:
            ends = list(dict.fromkeys(end + skipped for end in ends for skipped in range(WIDEST + 1)))
        else:
            ends = [end + 1 for end in ends if end < len(words) and words[end][0] == part]
    return ends[0] if ends else 0


def _in_chinese(start: int, clause: str, cues: Sequence[tuple[str, ...]]) -> Iterator[Span]:
    for cue in cues:
        if all(piece in clause for piece in cue):
            for found in re.finditer(f".{{0,{2 * WIDEST}}}?".join(map(re.escape, cue)), clause):
                yield start + found.start(), start + found.end()


def _is_of_others(before: str) -> bool:
    """Return whether the words before a match show that it is about another person than the user."""
    last = next(reversed(list(OTHERS.finditer(before))), None)
    return last is not None and not re.search(r"\b(?:i|i'm|im|i've|me|my|we|us)\b", before[last.end() :], re.IGNORECASE)


FILE = Path(__file__).with_name("danger.npz")
"""The file with the recogniser's classifier, written by benchmarks/train_recogniser.py."""
LONG = 120
"""Maximum length in characters of a sentence that the recogniser reads at once. It reads a longer one in windows, so
that the beginning does not outweigh the end."""
MANY = 64
"""Maximum number of parts of a text whose neighbours are all paired. A part is a sentence, or a window of a long
sentence.

If there are more parts, short neighbours are joined first, so that there are fewer pairs.
"""
WHOLE = 400
"""Maximum length in characters of a text that is also read as a whole. A longer text is read only in parts."""
ABOVE = 0.0
"""A text sounds like danger if its log odds are above this value.

The log odds must also be above this value after any one word is removed. Therefore no single word decides.
"""
STRONGEST = 8
"""Maximum number of parts of a text that are tested by removing words: the parts with the highest log odds."""
SURER = 1.0
"""Additional log odds that a part of a text needs to count as danger. Many sentences sound darker out of context."""


@remember(REMEMBERED)
def recognises_danger(text: str) -> bool:
    """Return whether a text, or a part of it, sounds like danger to life."""
    if len(text) <= WHOLE and _holds(text, ABOVE):
        return True
    seen = {part: _odds(views(part)) for part in dict.fromkeys(parts(text))}
    surest = heapq.nlargest(STRONGEST, seen, key=seen.__getitem__)
    return any(_holds(part, ABOVE + SURER) for part in surest)


def _holds(text: str, above: float) -> bool:
    """Return whether the log odds of a text stay above a threshold when any one word is removed."""
    if _odds(views(text)) <= above:
        return False
    plain = text.lower()
    without = (f"{plain[: word.start()]}{plain[word.end() :]}" for word in TOKEN.finditer(plain))
    return all(_odds(views(less)) > above for less in without)


def parts(text: str) -> Iterator[str]:
    """Yield the parts of a text: its sentences (very long sentences in windows), then each pair of neighbouring parts.

    A text with a single part yields nothing. If there are more than MANY parts, short neighbouring parts are joined
    before parts are paired.
    """
    pieces = [piece for sentence in sentences(text) for piece in windows(sentence, LONG)]
    if len(pieces) > 1:
        yield from pieces
        together = pieces if len(pieces) <= MANY else _gathered(pieces)
        yield from (f"{one} {two}" for one, two in pairwise(together))


def _gathered(pieces: Iterable[str]) -> Iterator[str]:
    """Join neighbouring short texts until the result is longer than half of LONG."""
    together = ""
    for piece in pieces:
        together = f"{together} {piece}" if together else piece
        if len(together) * 2 > LONG:
            yield together
            together = ""
    if together:
        yield together


def _odds(seen: Sequence[View]) -> float:
    return _classifier().log_odds(seen)


@cache
def _classifier() -> Classifier:
    return Classifier(FILE)
