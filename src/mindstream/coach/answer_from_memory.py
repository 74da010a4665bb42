"""A question about oneself is answered by the line in which one said it, or by saying that nothing was found.

The lines are few, so each is looked at: how much of what the question speaks of stands in it (rare words count more,
misspelt ones nearly as much, family by whom it is), and whether it holds what is asked for: a time, a number, a name. What
corrects an older line speaks of what that line spoke of, and comes before it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rapidfuzz import process
from rapidfuzz.distance import OSA

from mindstream.caches import remember
from mindstream.coach.asked_value import Asked, asked_kind, holds_value, states_of_oneself, without_asking
from mindstream.text.kinship import PATTERN as KIN
from mindstream.text.kinship import find_kin, may_mean, without_kin
from mindstream.text.lexical import telling
from mindstream.text.spelling import correct_spelling
from mindstream.text.words import terms

ENOUGH, ENOUGH_OF_OTHERS = 0.66, 0.95
"""The least score of a line that is quoted, where they ask for something of themselves, and for anything else."""
NEAR = 0.14
"""What the nearness of a line's vector counts, in recall's units (those of BM25)."""
VALUE, CORRECTS, NEWER, OF_ANOTHER = 0.25, 0.15, 0.04, 0.3
"""What a line gains that holds what is asked for; that corrects another; that is newer; what one loses that speaks of others."""
ONE_CHARACTER, UNHEARD_OF = 0.5, 0.5
"""What a Chinese character counts that stands there in another word; and what one weighs that no line has: it may be misspelt."""
DEMANDS: frozenset[Asked] = frozenset({"work", "age", "hour", "time", "number", "name"})
"""A line without such a thing answers no question for it."""
OF_ONE: frozenset[Asked] = frozenset({"age", "hour", "time", "number", "work", "place"})
"""Asked of nobody else, it is asked of the user."""
BEFORE = 2
"""So many lines further back what is corrected may stand without being named."""

LEANS = 0.45
"""What it counts, in words that are shared, to follow closely, and to begin as a correction does."""

LEAD_IN = re.compile(
    r"^\W*(?:(?:hey|hi|hello|and|so|ok|okay|but|wait|please|sorry|again|by the way|btw|remind me|tell me"
    r"|(?:can|could|would|will) (?:you|u) (?:please )?(?:tell|remind) me(?: again)?"
    r"|(?:do|can|did) (?:you|u) (?:still )?(?:know|remember|recall|rember))[\s,:]+)+"
    r"|^\W*(?:那|嗨|对了|對了|请问|請問|[你您](?:还|還)?(?:知不知道|记不记得|知道|记得|記得|晓得|曉得)|告诉我|告訴我)+[，,]?",
    re.IGNORECASE,
)
ASIDE = re.compile(
    r"\b(?:did )?i (?:(?:ever|already) )?(?:tell|told|said|say|mention|mentioned)(?: to)?(?: (?:you|u))?(?: about)?\b"
    r"|[我俺](?:是不是)?(?:跟|和|对|對|同|给|給|向)[你您](?:说|說|讲|講|提)(?:过|過)?|[我俺](?:说|說|告诉|告訴)(?:过|過)?(?:[你您])?",
    re.IGNORECASE,
)
ASKS = re.compile(
    r"(?:^|[,.;!:]\s*)(?:(?:in|at|on|for|with|to|from|since) )?(?:(?:who|where|when)(?:'?s\b| (?:is|are|was|were|do|does|did|has|have|had|am|will)\b)"
    r"|(?:what|wat|wot|which|who|how (?:old|many|much|long|often|late|early|far|tall|heavy|big|high))"
    r"(?:'?s\b|(?:\s+[\w'’]+){0,3}?\s+(?:is|are|was|were|do|does|did|has|have|had|am|will)\b))"
    r"|(?:^|[,.;!:]\s*)(?:what|wat|wot|who|where|when|wen|which|how (?:old|many|much|long|often|late|early))\b(?=.*\?\s*$)"
    r"|(?:^|[,.;!:]\s*)(?:my|our) .*\bname\b.*\?",
    re.IGNORECASE,
)
ASKS_IN_CHINESE = re.compile("什[么麼]|啥|[几幾]|哪|[谁誰]|多[少大久长長高重远遠]|何[时時]|好多|[咩乜]|邊[個度間]|好[久大高]")
STATES_IN_CHINESE = re.compile(
    "[都也](?!.*[?？])|几乎|幾乎|[好这那前没]几|[這沒]幾|[没沒](?:什|啥|多少)|不了[几幾]|不管|无论|不知道|不晓得|哪怕"
)
ADVICE = re.compile(
    r"\b(?:should|shall|can|could|may|might|must|would|will|ought|supposed to|have to|need to)\s+(?:i|we|it|this|that)\b"
    r"|\bi (?:should|shall|can|could|may|might|must|would|ought|have to|need)\b|\bwill (?:help|work|happen)\b|\b(?:can|could|would|should) (?:help|be)\b"
    r"|\b(?:what|how) do i do\b(?! for a)|\bdo i (?:need|try|get help|start|begin)\b|\bam i doing\b"
    r"|\b(?:plans?|steps?|advice|advise|tips?|suggest\w*|recommend\w*|wrong with|happening|next for|helps?)\b"
    r"|怎[么麼]|咋|怎样|怎樣|如何|[为為](?:什|啥)|應該|应该|该|該|[^可功]能|可以|要不要|会不会|會不會|建议|建議|[计計][划劃]|下一步|步[骤驟]|[帮幫]我|合[适適]|最好|正常|\b(?:normal|healthy|best|better|right)\b",
    re.IGNORECASE,
)
NAME = re.compile(r"\bmy (?:own )?name\b|\bi(?: am|'m)? called\b|\bam i called\b|^\W*(?:[我俺]叫|[我俺]的?名字)", re.IGNORECASE)
YOU = re.compile(r"\b(?:you|your|yours|u|ur)\b|[你您]", re.IGNORECASE)
OWN = re.compile(
    r"\b(?:my|our|mine)\b|\b(?:do|did|am|was|have|had) (?:i|we)\b|\bi (?:said|told|mentioned)\b|[我俺咱]", re.IGNORECASE
)
OF_OTHERS = re.compile(r"\b(?:he|she|him|her|his)\b|[他她佢]", re.IGNORECASE)
OF_SOMETHING_KNOWN = re.compile(r"\bthe\b|[\u3400-\u9fff](?!是(?:什|啥|咩))", re.IGNORECASE)
CAPITAL = re.compile(r"(?<=[\w'’] )[A-Z][a-z]+")
LIGHT = frozenset("happen get got go have take come do name call tell said say mention know rememb time day date again now still usual exact kind sort one day".split())
LIGHT_CHARACTERS = re.compile(r"(?:每天|每晚|最近|通常|一般|平[时時]|[现現]在|今年|自己|[的了吗嗎呢吧啊喃嘛么麼着著过過在是我俺咱你您他她它佢们們这這那和与與就很嘅喺係咗啦呀做叫要会會给給来來去有个個得儿兒把被用上次])+")
CORRECTING = re.compile(
    r"\b(?:no|nah|nope|not|actually|sorry|mean|meant|correction|wrong|mistake|rather|changed|moved|switched|swapped|now|instead|anymore|after all|said)\b"
    r"|n['’]t\b|\bdown from\b|\bup from\b|不[对對是]|唔係|[说說讲講记記搞弄][错錯]|其[实實]|改|[换換减減][成到]|[现現]在|更正|推[迟遲]|提前",
    re.IGNORECASE,
)
NAMED_AFTER = re.compile(
    r"(?:['’]?s)?,?(?: (?:is|was|are))? (?:(?:Mrs?|Ms|Dr|Prof\w*)\.? )?[A-Z][a-z]+|[小阿老][\u4e00-\u9fff]|([\u4e00-\u9fff])\1"
)
NAMED_BEFORE = re.compile(r"[A-Z][a-z]+(?:,| is)(?: my| our| the)? $")
GIVEN = re.compile(
    r"(?:['’]?s)?,?(?: (?:is|was|are))?(?: (?:called|named))? (?P<name>[A-Z][a-z]+)|叫(?P<unspaced>[\u4e00-\u9fff]{2})"
)
STARTS_WITH_OTHERS = re.compile(r"\W*(?:(?:and|but) )?(?:he|she|they|his|her)\b|\W*[他她佢]", re.IGNORECASE)
ONESELF = re.compile(r"\b(?:i|we|me|us)\b|[我俺咱]", re.IGNORECASE)
CLAUSE = re.compile(r"[,.;!?，。；！？、]\s*")
RUN = re.compile(r"[\u3400-\u9fff]+")
SPACED = re.compile(r"[a-z0-9]")


@dataclass(frozen=True, slots=True)
class MemoryQuestion:
    """A question for what was told: what kind of thing it asks for, of what it speaks, and whether it is one's own."""

    kind: Asked
    body: str
    own: bool
    known: bool


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


def read_question(text: str) -> MemoryQuestion | None:
    """Return what an utterance asks of memory; None where it asks for nothing that may have been told."""
    body = LEAD_IN.sub("", correct_spelling(text.strip().replace("’", "'")))
    asked = bool(ASKS.search(body)) or (ASKS_IN_CHINESE.search(body) and not STATES_IN_CHINESE.search(body))
    if not asked or ADVICE.search(body):
        return None
    own = bool(OWN.search(body) or OF_OTHERS.search(body) or find_kin(body))
    body = ASIDE.sub(" ", body)
    kind = asked_kind(body)
    if kind is None or YOU.search(body):
        return None
    known = own or bool(CAPITAL.search(body))
    if kind == "what" and not known and not OF_SOMETHING_KNOWN.search(body):
        return None
    return MemoryQuestion(kind, body, own, known)


def asks_for_name(text: str) -> bool:
    """Tell whether the user asks what they are called."""
    return bool(NAME.search(LEAD_IN.sub("", text))) and read_question(text) is not None


def asks_for_own(text: str) -> bool:
    """Tell whether an utterance asks for what is the user's own, or what they said."""
    question = read_question(text)
    return question is not None and question.own


def is_question(text: str) -> bool:
    """Tell whether a line asks, and so states nothing to quote."""
    text = text.strip(" “”")
    return text[-1:] in "?？" or read_question(text) is not None


def find_answer(question: MemoryQuestion, lines: Sequence[str], near: Sequence[float]) -> int | None:
    """Return the place of the line that answers, the lines given oldest first; None where none does.

    `near`: how much nearer than usual each line's vector is to the question's, as recall counts it.
    """
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
        value = _holds(lines[at], question.kind, asked)
        if value == 0 and question.kind in DEMANDS:
            continue
        covered = sum(weight * unit.match(line.words) for unit, weight in zip(units, weights, strict=True)) / sum(weights)
        close = 0.0 if question.kind == "name" else NEAR * max(near[at], near[line.corrects] if line.corrects >= 0 else 0)
        score = max(covered + close / 3 + VALUE * value, 0 if covered else close) + CORRECTS * (line.corrects >= 0) + NEWER * at / len(told)
        score -= OF_ANOTHER * (of_oneself and _is_of_another(lines[at]))
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
    spots += [found.span() for found in KIN.finditer(line) if find_kin(found[0]) and {f"@{who}" for who in find_kin(found[0])} & asked]
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
        Unit(frozenset(word for word in vocabulary if word[0] == "@" and may_mean(who, word[1:])) | {f"@{who}"}, person=True)
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
        for kin in KIN.finditer(line):
            if named := GIVEN.match(line, kin.end()):
                bearers[(named["name"] or named["unspaced"]).lower()] = next(f"@{who}" for who in find_kin(kin[0]))
        words |= {who for name, who in bearers.items() if (name in words if name.isascii() else name in line)}
        if told and STARTS_WITH_OTHERS.match(line) and not any(word[0] == "@" for word in words):
            words |= {word for word in told[-1] if word[0] == "@"}
        told.append(words)
    return told


def _with_corrections(lines: Sequence[str]) -> list[ToldLine]:
    """Return the words of each line, with those of the line that it corrects, if it corrects one."""
    told: list[ToldLine] = []
    for at, (line, words) in enumerate(zip(lines, _with_persons(lines), strict=True)):
        corrects = _corrected(line, words, told) if told and CORRECTING.search(line) else -1
        told.append(ToldLine(words | told[corrects].words if corrects >= 0 else words, corrects))
    return told


def _corrected(line: str, words: frozenset[str], told: Sequence[ToldLine]) -> int:
    """Return the place of the line that this one corrects: the newest of those that share most words; -1: none."""
    shared = [float(sum(len(word) > 1 for word in words & earlier.words)) for earlier in told]
    for back in range(1, min(BEFORE, len(told)) + 1):
        shared[-back] += LEANS
    if CORRECTING.match(line):
        shared[-1] += LEANS
    best = max(range(len(told)), key=lambda at: (shared[at], at))
    return best if shared[best] >= 2 * LEANS else -1
