"""What recurs in free text: words that several of somebody's memories share, and what comes up together.

They are quoted as they stand, so what is said of them is true and grammatical whatever language they are in.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from mindstream.reasoners.reflect.memories import Memory
from mindstream.reasoners.reflect.relations import DAY, OFTEN, Relation, number_word
from mindstream.text.words import FUNCTION_CHARACTERS, STOP, UNSPACED, stem

LONGEST = 100
"""The longest word that is taken for one, in characters."""
_EMPTY = """
bit couple day days end evening evenings first hour hours last least lot minute minutes moment month months morning
mornings night nights one same thing things time times today tomorrow tonight way week weekend weeks while year
years yesterday
"""
EMPTY = frozenset(_EMPTY.split())
"""Words that stand where a topic stands, and are none."""
_BEFORE = """
a an the my our his her their your this that these those some any no another every
much more less enough about after against at before by despite during for from in into like of off on since under with
without
"""
BEFORE = frozenset(_BEFORE.split())
TAKING = frozenset(("drink", "eat", "love", "hate", "need", "want"))
"""What stands before a topic; and the stems of verbs that do."""
WORD = re.compile(rf"(?P<run>[{UNSPACED}]+)|[^\W\d_{UNSPACED}][^\W_{UNSPACED}]*(?:['’-][^\W_{UNSPACED}]+)*|[.!?:;,]")
ENGLISH = frozenset(("the", "of", "my", "and", "to", "with", "at", "for", "is", "was", "it", "that", "i"))
ENGLISH_SHARE = 0.08


@dataclass(frozen=True, slots=True)
class RecurringWord:
    """A word that recurs.

    Attributes:
        word: as it is written most often.
        within: the numbers of the texts that have it, from 1.
    """

    stem: str
    word: str
    within: list[int]


def recurring(texts: Sequence[str], besides: str = "") -> list[RecurringWord]:
    """Return the topics that two texts or more share, the most shared first; the words of `besides` left out.

    A topic is a word that stands as one: in English after an article, a possessive or a preposition somewhere; in
    other languages with a capital within a sentence; in scripts without spaces, characters that recur together.
    """
    tokens = [list(WORD.finditer(text)) for text in texts]
    english = _is_english(tokens)
    within: defaultdict[str, list[int]] = defaultdict(list)
    written: defaultdict[str, Counter[str]] = defaultdict(Counter)
    topical: Counter[str] = Counter()
    for number, found in enumerate(tokens, 1):
        held: dict[str, None] = {}
        before = "."
        for each in found:
            for word, marked in _words(each, before, english):
                key = stem(word.lower()) if english else word.lower()
                written[key][word] += before[0].isalnum()  # as it is written within a sentence, where it stands there
                topical[key] += 1 if marked else -1 if before.lower() in ("to", "not", "i") else 0
                held[key] = None
            before = each[0]
        for key in held:
            within[key].append(number)
    left_out = {form for word in re.findall(r"\w+", besides.lower()) for form in (word, stem(word))}
    topics = [
        RecurringWord(key, written[key].most_common(1)[0][0], numbers)
        for key, numbers in within.items()
        if len(numbers) > 1 and topical[key] > 0 and key not in left_out and 1 < len(key) <= LONGEST
    ]
    return _longest(sorted(topics, key=lambda topic: (-len(topic.within), topic.stem)))


def find_recurring(who: str, records: Sequence[Memory]) -> list[Relation]:
    """Return what comes up again in what somebody said or noted in free text, and what together with it."""
    spoken = [(number, record) for number, record in enumerate(records, 1) if _is_free_text(record)]
    topics = recurring([record.text for _, record in spoken], besides=who)
    verb = "brought up" if all(record.kind == "chat" for _, record in spoken) else "noted"
    found = []
    for topic in (each for each in topics if len(each.within) >= OFTEN):
        because = tuple(spoken[at - 1][0] for at in topic.within)
        days = len({spoken[at - 1][1].created // DAY for at in topic.within})
        said = [f"{who} has {verb} “{topic.word}” {_when(count)}." for count in range(1, 2 * days)]
        newer = said[days // 2 :]  # what was said of less than half as many days is said anew
        found.append(Relation(said[days - 1], (topic.word,), because, tuple(newer)))
        found.extend(_together(who, topic, topics, [number for number, _ in spoken]))
    return found


def _is_free_text(record: Memory) -> bool:
    """Tell whether a record is what somebody said to nobody else, or noted, in words of its own."""
    if record.about or record.is_drawn or record.to:
        return False
    return (record.kind == "chat" and not record.by_agent) or (
        record.kind in ("observation", "note") and not record.keywords
    )


def _when(days: int) -> str:
    return f"on {number_word(days)} days" if days > 1 else "several times"


def _together(
    who: str, topic: RecurringWord, topics: Sequence[RecurringWord], numbers: Sequence[int]
) -> list[Relation]:
    """Return what most often comes up in the same breath as a topic, where that is most of the times."""
    shared = {other.word: sorted(set(topic.within) & set(other.within)) for other in topics if other is not topic}
    word = max(shared, key=lambda each: len(shared[each]), default="")
    both = shared.get(word, [])
    if len(both) < 2 or 2 * len(both) <= len(topic.within):
        return []
    signs = tuple(f"says of “{one}” mostly names “{other}”" for one, other in ((topic.word, word), (word, topic.word)))
    because = tuple(numbers[at - 1] for at in both)
    return [Relation(f"What {who} {signs[0]}, too.", (topic.word, word), because, signs)]


def _is_english(tokens: Sequence[Sequence[re.Match[str]]]) -> bool:
    words = [each[0].lower() for found in tokens for each in found if each[0][0].isalpha()]
    return sum(word in ENGLISH for word in words) >= ENGLISH_SHARE * len(words) > 0


def _words(token: re.Match[str], before: str, english: bool) -> list[tuple[str, bool]]:
    """Return what of a token may be a topic, and whether it stands as one."""
    if run := token["run"]:
        pairs = [run[i : i + 2] for i in range(len(run) - 1)]
        return [(pair, True) for pair in pairs if not set(pair) & FUNCTION_CHARACTERS]
    word = token[0]
    if not word[0].isalpha() or word.lower() in STOP or len(word) < 3:
        return []
    if not english:
        return [(word, True)] if word[0].isupper() and before[0].isalpha() else []
    return [] if word.lower() in EMPTY else [(word, before.lower() in BEFORE or stem(before.lower()) in TAKING)]


def _longest(topics: list[RecurringWord]) -> list[RecurringWord]:
    """Put pairs of characters that overlap, and recur in the same texts, together."""
    joined: list[RecurringWord] = []
    for topic in topics:
        for at, other in enumerate(joined):
            if re.match(f"[{UNSPACED}]", topic.word) and other.within == topic.within:
                if other.word[-1] == topic.word[0]:
                    joined[at] = RecurringWord(other.stem, other.word + topic.word[1:], other.within)
                    break
                if topic.word[-1] == other.word[0]:
                    joined[at] = RecurringWord(other.stem, topic.word + other.word[1:], other.within)
                    break
        else:
            joined.append(topic)
    return joined
