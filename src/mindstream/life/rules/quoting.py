"""Which sentences of some passages answer a question: by its words, weighed by how rare they are, quoted as they stand.

A sentence must speak of most of what is asked, in itself or in what stands around it, and hold what is asked for (a
time where it asks when); its document must speak of the subject. Nothing is concluded, and to find nothing
is an answer too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from mindstream.life.rules.sections import read_sections
from mindstream.text.lexical import telling
from mindstream.text.words import terms

ENOUGH, ENOUGH_OF_SUBJECT, NEAR_BEST = 0.55, 0.4, 0.7
"""So much of what is asked must a sentence speak of, so much of the subject its document; and so much of the best."""
BESIDE, ELSEWHERE, KIN, OF_DOCUMENT, HOLDS = 0.5, 0.3, 0.8, 0.7, 0.25
"""What a word counts that stands in the sentence before or the heading; elsewhere in the document; one of the same
stem, nearly; a word of the subject elsewhere; and what it adds to hold what is asked for."""
LONGEST, SHORT, SHORT_ZH = 280, 15, 6
"""A longer sentence is cut, a shorter one answers nothing, in characters."""
DREAM = " (dream)"
"""What stands behind the day of a line of memory that was only dreamt."""
PLACE = re.compile(r"^(?P<name>[^\n]{1,200}?), (?P<place>(?:lines?|page) [\d-]+):$", re.MULTILINE)
WITHIN = re.compile(r"(?:, (?P<unit>lines?|page) (?P<at>[\d-]+)|，第[\d-]+[行页])$")
MEMORY = re.compile(r"^- (?P<day>\d{4}-\d\d-\d\d)(?P<dream> \(dream\))?: (?P<text>.+)$", re.MULTILINE)
QUOTED = re.compile(r"^“(?P<words>.+)” — (?P<place>.+)$", re.MULTILINE)
ENDS = re.compile(
    r"(?<!\b(?:Mr|Dr|St|No|vs|ca)\.)(?<!\b(?:Mrs|e\.g|i\.e)\.)(?<![ .][A-Z]\.)(?<=[.!?])[\"”’')\]]*\s+"
    r"(?=[A-Z0-9\"“‘(])|(?<=[。！？])(?![”’」』）])"
)
LIGHT_WORDS = """
happen get got go come becom do make take say tell told mention know find give use today now still ever anyth anybodi
anyon somebodi someon nobodi someth year time way kind exact much mani long often answer
"""
LIGHT = frozenset(LIGHT_WORDS.split())
TIME = re.compile(
    r"\b[12]\d{3}\b|\b\d{1,2}[.:]\d\d\b|\b(?:January|February|March|April|May|June|July|August|September|October|November"
    r"|December|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?|spring|summer|autumn|winter|century|yesterday|o'clock)\b"
    r"|\d+ ?(?:年|月|日|点|时)|[一二三四五六七八九十]+(?:年|月|日|点)|世纪"
    r"|(?:周|星期)[一二三四五六日天末]|[上下]午|早上|晚上"
)
NUMBER = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|half|halves|thirds?|quarters?|twice|hundreds?|thousands?"
    r"|million)\b|[二三四五六七八九十百千万两]|一[个只条元人次吨米里年天岁名位块座棵本]",
    re.IGNORECASE,
)
REASON = re.compile(
    r"\b(?:because|since|due to|owing to|so that|in order|therefore|for want of|caus\w+|reasons?|led to|thanks to"
    r"|as a result|too (?:few|little|many|much|old|dear))\b|因为|由于|因此|所以|导致|为了|原因|以致",
    re.IGNORECASE,
)
NAME = re.compile(r"(?<=[\w,;] )[A-Z][a-z]+|^[A-Z][a-z]+ [A-Z]|[\u4e00-\u9fff]")
WHERE = re.compile(r"\b(?:in|at|on|near|from|to|into|beside|behind|under) (?:(?:the|an?) )?\w|[在于到]")
KINDS = (
    (r"\b(?:when|what year|which year|how long ago)\b|何时|什么时候|哪一?[年天]|几[月号点时]", TIME, True),
    (r"\bhow (?:many|much|often|far|long|high|big|old)\b|\bcosts?\b|多少|多[久高长大]|几[个只人次]", NUMBER, True),
    (r"\bwhy\b|\breasons?\b|为什么|为何|原因", REASON, False),
    (r"\b(?:who|whom|whose)\b|谁|哪位", NAME, True),
    (r"\bwhere\b|哪里|哪儿|何地", WHERE, False),
)
"""What is asked by which words, how a sentence shows that it holds it, and whether it must."""
NAMED = re.compile(r"(?<=\S )[A-Z][\w'’-]*")
"""A name in a title, not what only begins it."""
CAPITAL = re.compile(r"\b[A-Z][\w'’-]*")
"""A subject that has a name is known by it, whatever else is said of it."""
ASKING = re.compile(
    r"什么时候|什么|谁|何时|何地|哪[里儿一]?|几|多少|多[久高长大]|为什么|为何|怎么样?|怎样|如何|是否|有没有|[吗呢的了是在和与被把给让]"
)
PRONOUN = re.compile(r"(?:It|She|He|They|This|That|These|Its|Her|His|Their)\b|[它她他这]")
SINGLE = re.compile(r"[\u3400-\u9fff]")


@dataclass(frozen=True, slots=True)
class Passage:
    """A text and where it stands: a document's name and place, or the day on which it was told."""

    text: str
    name: str
    place: str


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence as it stands, where it stands, and how well it answers."""

    words: str
    place: str
    score: float = 0.0

    @property
    def file(self) -> str:
        """The file that it stands in."""
        return WITHIN.sub("", self.place)

    def written(self, language: str) -> str:
        """Write it with where it stands, in this language."""
        name, within = self.file, WITHIN.search(self.place)
        place = self.place
        if language == "zh" and within and within["at"]:
            place = f"{name}，第{within['at']}{'页' if within['unit'] == 'page' else '行'}"
        return f"“{self.words}” — {place}"


@dataclass(frozen=True, slots=True)
class _Sentence:
    words: str
    passage: Passage
    own: frozenset[str]
    beside: frozenset[str]
    around: frozenset[str]
    above: tuple[str, ...] = ()
    """What it is headed by: the title, the headings below it, the name of the file."""
    topics: tuple[frozenset[str], ...] = ()
    """Their words."""
    further: str = ""
    """What it goes on to say: the next sentence, where that speaks of the same without a name."""

    @property
    def whole(self) -> str:
        longer = f"{self.words}{'' if SINGLE.search(self.words) else ' '}{self.further}"
        return longer if self.further and len(longer) <= LONGEST else _cut(self.words)


def read_passages(text: str, name: str = "") -> list[Passage]:
    """Read the passages that a search gave: each headed by its file and place, or a line of memory, or plain text."""
    heads = list(PLACE.finditer(text))
    if not heads:
        memories = [Passage(each["text"], "", each["day"] + (each["dream"] or "")) for each in MEMORY.finditer(text)]
        return memories or ([Passage(text, name, "")] if name and text.strip() else [])
    ends = [*(each.start() for each in heads[1:]), len(text)]
    found = [
        Passage(text[head.end() : end].strip(), head["name"].strip(), head["place"])
        for head, end in zip(heads, ends, strict=True)
    ]
    return list(dict.fromkeys(found))


def read_quotes(text: str) -> list[Quote]:
    """Read quotations as they are written."""
    return [Quote(each["words"], each["place"]) for each in QUOTED.finditer(text)]


def find_quotes(part: str, subject: str, passages: Sequence[Passage], most: int = 3) -> list[Quote]:
    """Return the sentences that answer a part of a question about a subject, the best first; none where none does."""
    sentences = list(_sentences(passages))
    about = _weights(" ".join(CAPITAL.findall(subject)), sentences) or _weights(subject, sentences)
    own = _weights(part, sentences)
    wanted, enough = (own, ENOUGH) if own else (about, BESIDE)
    holds, must = next(
        ((shown, must) for asks, shown, must in KINDS if re.search(asks, part, re.IGNORECASE)), (None, False)
    )
    is_known = any(_is_about(each, about) for each in sentences)
    found: dict[str, Quote] = {}
    for each in sentences if wanted else ():
        held = bool(holds and holds.search(each.words))
        if ((must or not own) and holds and not held) or len(each.words) < (
            SHORT_ZH if SINGLE.search(each.words) else SHORT
        ):
            continue
        covered = _share(wanted, partial(_match, each))
        if covered >= enough and (_is_about(each, about) or (is_known and _is_topic(each, part, subject))):
            found.setdefault(each.words, Quote(each.whole, _place(each.passage), covered + HOLDS * held))
    best = sorted(found.values(), key=lambda quote: -quote.score)[:most]
    return [quote for quote in best if quote.score >= NEAR_BEST * best[0].score]


def _sentences(passages: Sequence[Passage]) -> Iterator[_Sentence]:
    around: dict[str, set[str]] = {}
    for each in passages:
        around.setdefault(each.name, set(terms(_stem_of(each.name)))).update(terms(each.text))
    for each in passages:
        before: frozenset[str] = frozenset()
        last: tuple[str, ...] = ()
        for headings, block in read_sections(each.text):
            above = (*headings, _stem_of(each.name)) if each.name else headings
            topics = tuple(frozenset(terms(heading)) for heading in above)
            if headings != last:
                before, last = frozenset(), headings
            sentences = [words.strip() for words in ENDS.split(block) if words.strip()]
            for words, further in zip(sentences, [*sentences[1:], ""], strict=True):
                own = frozenset(terms(words))
                goes_on = further if PRONOUN.match(further) else ""
                beside = before.union(*topics[: len(headings)])
                yield _Sentence(words, each, own, beside, frozenset(around[each.name]), above, topics, goes_on)
                before = own


def _stem_of(name: str) -> str:
    """Return the name of a file as words, without what says of which kind it is."""
    return re.sub(r"[_\-./\s]+", " ", re.sub(r"\.\w{1,5}$", "", name[:200]))


def _weights(text: str, sentences: Sequence[_Sentence]) -> dict[str, float]:
    """Return the words of a question that say what it asks about, each with how telling it is here.

    Of a script without spaces, pairs that stand across two words are left out: unheard of, beside one that is known.
    """
    asked = [unit for unit in terms(ASKING.sub(" ", text)) if unit not in LIGHT]
    counts = {unit: sum(_holds(unit, each.own) > 0 for each in sentences) for unit in asked}
    across = {
        unit for at, unit in enumerate(asked)
        if SINGLE.match(unit) and not counts[unit] and any(map(counts.__getitem__, asked[max(0, at - 1) : at + 2]))
    }  # fmt: skip
    return {unit: telling(count, len(sentences) + 1) for unit, count in counts.items() if unit not in across}


def _share(weights: Mapping[str, float], matches: Callable[[str], float]) -> float:
    return sum(weight * matches(unit) for unit, weight in weights.items()) / (sum(weights.values()) or 1)


def _match(sentence: _Sentence, unit: str) -> float:
    own, beside = _holds(unit, sentence.own), BESIDE * _holds(unit, sentence.beside)
    return own or beside or ELSEWHERE * (unit in sentence.around)


def _is_about(sentence: _Sentence, about: Mapping[str, float]) -> bool:
    """Tell whether a sentence or its document names the subject."""
    return not about or _share(about, partial(_speaks, sentence)) >= ENOUGH_OF_SUBJECT


def _is_topic(sentence: _Sentence, part: str, subject: str) -> bool:
    """Tell whether a part asks of what a sentence is headed by, under a title that is not of another such subject."""
    asked, of = frozenset(terms(part)), frozenset(terms(subject))
    if _is_other(sentence.above[:1], sentence.topics[:1], asked | of, subject):
        return False
    return any(
        topic and all(_holds(unit, asked | of) for unit in topic) and any(_holds(unit, asked) for unit in topic)
        for topic in sentence.topics
    )


def _is_other(above: Sequence[str], topics: Sequence[frozenset[str]], asked: frozenset[str], subject: str) -> bool:
    """Tell whether a title names something of the same kind as the subject, or anything by a name nobody asked for."""
    for title, topic in zip(above, topics, strict=True):
        unasked = [unit for unit in topic if not _holds(unit, asked)]
        words, names = title.split(), {each for name in NAMED.findall(title) for each in terms(name)}
        is_named = any(unit in names for unit in unasked) and any(word.islower() for word in words)
        is_kind = (
            bool(terms(subject)) and title.rstrip()[-1:] == subject.rstrip()[-1:] and bool(SINGLE.match(title[-1:]))
        )
        if unasked and (is_named or is_kind or any(_holds(unit, frozenset(terms(subject))) for unit in topic)):
            return True
    return False


def _speaks(sentence: _Sentence, unit: str) -> float:
    return _holds(unit, sentence.own | sentence.beside) or OF_DOCUMENT * _holds(unit, sentence.around)


def _holds(unit: str, words: frozenset[str]) -> float:
    """Return how surely a word stands among others, itself or in another form."""
    if len(unit) == 1 and SINGLE.match(unit):
        return float(any(unit in other for other in words))
    return 1.0 if unit in words else KIN if any(_is_kin(unit, other) for other in words) else 0.0


def _is_kin(one: str, other: str) -> bool:
    """Tell whether two stems may be of one word: decid(e), decis(ion)."""
    shared = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return shared >= 4 and shared >= 0.7 * max(len(one), len(other))


def _place(passage: Passage) -> str:
    return ", ".join(filter(None, (passage.name, passage.place)))


def _cut(words: str) -> str:
    return words if len(words) <= LONGEST else words[:LONGEST].rsplit(" ", 1)[0] + " …"
