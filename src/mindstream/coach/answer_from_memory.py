"""A question about oneself is answered by the line in which one said it, or by saying that nothing was found.

The lines are few, so each is looked at: how much of what the question speaks of stands in it (rare words count more,
misspelt ones as much, family by whom it is), and whether it holds what is asked for: a time, a number, a name. A line
that corrects an older one speaks of all that the older one spoke of, and comes before it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rapidfuzz import process
from rapidfuzz.distance import OSA

from mindstream.caches import remember
from mindstream.coach.asked_value import Asked, holds_value, states_of_oneself, without_asking
from mindstream.coach.memory_question import CAPITAL, LONGEST, MemoryQuestion
from mindstream.text.kinship import PATTERN as KIN
from mindstream.text.kinship import find_kin, may_mean, without_kin
from mindstream.text.lexical import telling
from mindstream.text.words import terms

ENOUGH, ENOUGH_OF_OTHERS = 0.66, 0.95
"""The least score of a line that is quoted, where they ask for something of themselves, and for anything else."""
NEAR = 0.14
"""What the nearness of a line's vector counts, in recall's units (those of BM25)."""
VALUE, CORRECTS, NEWER, OF_ANOTHER = 0.25, 0.15, 0.04, 0.3
"""What a line gains that holds what is asked for; that corrects another; that is newer; what it loses that speaks of
others only."""
ONE_CHARACTER, UNHEARD_OF = 0.5, 0.5
"""What a Chinese character counts that stands there in another word; what one weighs that no line has, for it may be
misspelt."""
DEMANDS: frozenset[Asked] = frozenset({"work", "age", "hour", "time", "number", "name"})
"""A line without such a thing answers no question for it."""
OF_ONE: frozenset[Asked] = frozenset({"age", "hour", "time", "number", "work", "place"})
"""Asked of nobody else, it is asked of the user."""
BEFORE, FARTHEST = 2, 100
"""So many lines further back what is corrected may stand without being named; and where it is."""

LEANS = 0.45
"""What it counts, in words that are shared, to follow closely, and to begin as a correction does."""

LIGHT = frozenset(
    terms(
        "happen get got go have take come do name call tell said say mention know remember time day date again now"
        " still usual exact kind sort one problem trouble issue matter deal thing"
    )
)
"""Words that tell nothing of which line is meant: who else is named, and how near the lines are, does."""
LIGHT_CHARACTERS = re.compile(
    r"(?:每天|每晚|最近|通常|一般|平[时時]|[现現]在|今年|自己|[问問][题題]|毛病|[来來][着著]"
    r"|[的了吗嗎呢吧啊喃嘛么麼着著过過在是我俺咱你您他她它佢们們这這那和与與就很嘅喺係咗啦呀做叫要会會给給来來去有个個得儿兒把被用上次])+"
)
CORRECTING = re.compile(
    r"\b(?:no|nah|nope|not|actually|sorry|mean|meant|correction|wrong|mistake|rather|changed|moved|switched"
    r"|swapped|now|instead|anymore|after all|said)\b"
    r"|n['’]t\b|\bdown from\b|\bup from\b|不[对對是]|唔係|[说說讲講记記搞弄][错錯]|其[实實]|改"
    r"|[换換减減][成到]|[现現]在|更正|推[迟遲]|提前",
    re.IGNORECASE,
)
NAMED_AFTER = re.compile(
    r"(?:['’]?s)?,?(?: (?:is|was|are))? (?:(?:Mrs?|Ms|Dr|Prof\w*)\.? )?[A-Z][a-z]+|[小阿老][\u4e00-\u9fff]"
    r"|([\u4e00-\u9fff])\1"
)
NAMED_BEFORE = re.compile(r"[A-Z][a-z]+(?:,| is)(?: my| our| the)? $")
GIVEN = re.compile(
    r"(?:['’]?s)?,?(?: (?:is|was|are))?(?: (?:called|named))? (?P<name>[A-Z][a-z]+)"
    r"|叫(?P<unspaced>[\u4e00-\u9fff]{2})"
)
STARTS_WITH_OTHERS = re.compile(r"\W*(?:(?:and|but) )?(?:he|she|they|his|her)\b|\W*[他她佢]", re.IGNORECASE)
ONESELF = re.compile(r"\b(?:i|we|me|us)\b|[我俺咱]", re.IGNORECASE)
CLAUSE = re.compile(r"[,.;!?，。；！？、]\s*")
RUN = re.compile(r"[\u3400-\u9fff]+")
SPACED = re.compile(r"[a-z0-9]")


@dataclass(frozen=True, slots=True)
class Unit:
    """A word of a question: what stands for it, what stands for it in part (one character of it), is it a person."""

    strong: frozenset[str]
    weak: str = ""
    person: bool = False

    def match(self, words: frozenset[str]) -> float:
        return 1.0 if self.strong & words else ONE_CHARACTER if self.weak in words else 0.0


@dataclass(frozen=True, slots=True)
class ToldLine:
    """By what a line is found: its words and those of the line that it corrects, at this place (-1: none)."""

    words: frozenset[str]
    corrects: int


def find_answer(question: MemoryQuestion, lines: Sequence[str], near: Sequence[float]) -> int | None:
    """Return the place of the line that answers, the lines given oldest first; None where none does.

    `near`: how much nearer than usual each line's vector is to the question's, as recall counts it.
    """
    lines = [line[:LONGEST] for line in lines]
    told = _with_corrections(lines)
    units = _units(question.body, frozenset().union(*(line.words for line in told)))
    if not units:
        return next((at for at, line in enumerate(lines) if states_of_oneself(line, question.kind)), None)
    weights = [_weight(unit, told) for unit in units]
    asked = frozenset().union(*(unit.strong | {unit.weak} for unit in units))
    persons = [unit.strong for unit in units if unit.person]
    of_oneself = not persons and question.kind in OF_ONE
    best, found = ENOUGH if question.known else ENOUGH_OF_OTHERS, None
    for at, line in enumerate(told):
        if line.words <= asked or (persons and not any(person & line.words for person in persons)):
            continue
        covered = sum(weights[n] * unit.match(line.words) for n, unit in enumerate(units)) / sum(weights)
        close = max(near[at], near[line.corrects] if line.corrects >= 0 else 0) * NEAR * (question.kind != "name")
        if not covered and not close:
            continue
        value = _holds(lines[at], question.kind, asked)
        if value == 0 and question.kind in DEMANDS:
            continue
        score = max(covered + close / 3 + VALUE * value, 0 if covered else close) + NEWER * at / len(told)
        score += CORRECTS * (line.corrects >= 0) - OF_ANOTHER * (of_oneself and _is_of_another(lines[at]))
        if score >= best:
            best, found = score, at
    return found


def _weight(unit: Unit, told: Sequence[ToldLine]) -> float:
    """Return how telling a word of a question is among the lines."""
    count = sum(unit.match(line.words) > 0 for line in told)
    return telling(count, len(told)) * (UNHEARD_OF if unit.weak and not count else 1)


def _is_of_another(line: str) -> bool:
    """Tell whether a line speaks of others, not of the user."""
    return bool(find_kin(line) or STARTS_WITH_OTHERS.match(line)) and not ONESELF.search(line)


def _holds(line: str, kind: Asked, asked: frozenset[str]) -> float:
    """Return 1 where a line holds what is asked for beside what it is asked of, less where it holds it elsewhere."""
    if kind == "what":
        return 0.0
    if kind == "name":
        return float(_names_it(line, asked))
    beside = any(_words(clause) & asked and holds_value(clause, kind) for clause in CLAUSE.split(line))
    return 1.0 if beside else 0.5 * holds_value(line, kind)


def _names_it(line: str, asked: frozenset[str]) -> bool:
    """Tell whether a line gives a name to what is asked for: "is called", or a name beside it ("my son Felix")."""
    if holds_value(line, "name"):
        return True
    spots = [found.span() for found in re.finditer(r"[a-zA-Z]+", line) if set(terms(found[0])) & asked]
    spots += [
        found.span()
        for found in KIN.finditer(line)
        if find_kin(found[0]) and {f"@{who}" for who in find_kin(found[0])} & asked
    ]
    spots += [found.span() for pair in asked if len(pair) == 2 for found in re.finditer(re.escape(pair), line)]
    return any(NAMED_AFTER.match(line, end) or NAMED_BEFORE.search(line[:start]) for start, end in spots)


@remember(4096)
def _words(text: str) -> frozenset[str]:
    """Return all by which a line may be found: its words, whom it speaks of, pairs and single characters."""
    characters = {character for run in RUN.findall(text) for character in run}
    return frozenset(terms(text)) | characters | {f"@{who}" for who in find_kin(text)}


def _units(body: str, vocabulary: frozenset[str]) -> list[Unit]:
    """Return the words of a question, each with what may stand for it in the lines."""
    units = [
        Unit(
            frozenset(word for word in vocabulary if word[0] == "@" and may_mean(who, word[1:])) | {f"@{who}"},
            person=True,
        )
        for who in sorted(find_kin(body))
    ]
    rest = without_asking(without_kin(body))
    spaced = [word for word in dict.fromkeys(terms(rest)) if SPACED.match(word)]
    spaced = [word for word in spaced if word not in LIGHT] or ([] if units else spaced)
    names = {name.lower() for name in CAPITAL.findall(rest)}
    units += [Unit(_alike(word, vocabulary), person=word in names) for word in spaced]
    for run in RUN.findall(LIGHT_CHARACTERS.sub(" ", rest)):
        pairs = ["", *(run[i : i + 2] for i in range(len(run) - 1)), ""]
        for character, before, after in zip(run, pairs[:-1], pairs[1:], strict=True):
            both = frozenset({before, after} - {""})
            units.append(Unit(both, character) if both else Unit(frozenset({character})))
    return units


def _alike(word: str, vocabulary: frozenset[str]) -> frozenset[str]:
    """Return a word, or where no line has it, those that it may be misspelt for, or that are misspelt for it."""
    if word in vocabulary or len(word) < 5:
        return frozenset({word})
    near = process.extract(
        word, [each for each in vocabulary if len(each) > 4 and SPACED.match(each)], scorer=OSA.distance,
        score_cutoff=1 if len(word) < 8 else 2, limit=3,
    )  # fmt: skip
    return frozenset({word, *(each for each, _, _ in near)})


def _with_persons(lines: Sequence[str]) -> list[frozenset[str]]:
    """Return the words of each line, and whom it speaks of by a name that was given to them, or as "she", "he"."""
    bearers: dict[str, str] = {}
    told: list[frozenset[str]] = []
    for line in lines:
        words = _words(line)
        bearers |= dict(_given_names(line))
        words |= {who for name, who in bearers.items() if (name in words if name.isascii() else name in line)}
        if told and STARTS_WITH_OTHERS.match(line) and not any(word[0] == "@" for word in words):
            words |= {word for word in told[-1] if word[0] == "@"}
        told.append(words)
    return told


@remember(4096)
def _given_names(line: str) -> tuple[tuple[str, str], ...]:
    """Return the names that a line gives to family, and to whom."""
    found = ((GIVEN.match(line, kin.end()), kin[0]) for kin in KIN.finditer(line))
    return tuple(
        ((named["name"] or named["unspaced"]).lower(), f"@{who}")
        for named, kin in found if named for who in find_kin(kin)
    )  # fmt: skip


@remember(4096)
def _may_correct(line: str) -> bool:
    return bool(CORRECTING.search(line))


def _with_corrections(lines: Sequence[str]) -> list[ToldLine]:
    """Return the words of each line, with those of the line that it corrects, if it corrects one."""
    told: list[ToldLine] = []
    for line, words in zip(lines, _with_persons(lines), strict=True):
        corrects = _corrected(line, words, told) if told and _may_correct(line) else -1
        told.append(ToldLine(words | told[corrects].words if corrects >= 0 else words, corrects))
    return told


def _corrected(line: str, words: frozenset[str], told: Sequence[ToldLine]) -> int:
    """Return the place of the line that this one corrects: the newest of those that share most words; -1: none."""
    words = frozenset(word for word in words if len(word) > 1)
    first = max(0, len(told) - FARTHEST)
    shared = [float(len(words & earlier.words)) for earlier in told[first:]]
    for back in range(1, min(BEFORE, len(shared)) + 1):
        shared[-back] += LEANS
    if CORRECTING.match(line):
        shared[-1] += LEANS
    best = max(range(len(shared)), key=lambda at: (shared[at], at))
    return first + best if shared[best] >= 2 * LEANS else -1
