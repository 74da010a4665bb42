"""A word problem whose quantities and relations are explicit, as equations for the calculator.

Each clause must be understood whole, or the problem is not: what a reader would have to guess (a unit that
changes, "he" before any name, a quantity that stands nowhere) makes it none of these.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from mindstream.planning.rules.verbs import UNREAD
from mindstream.text.numerals import in_digits
from mindstream.text.words import stem

N = r"(?P<n>\d+(?:,\d{3})*(?:\.\d+)?|[b-z](?= [a-z]))"
ONE = (
    r"(?:[A-Z][\w'-]*(?: [A-Z][\w'-]*)*|(?:[Tt]he|[Aa]n?|[Hh]is|[Hh]er|[Tt]heir) [a-z]+(?: [a-z]+)?|[Hh]e|[Ss]he|[Ii]t)"
)
A, B = rf"(?P<a>{ONE})", rf"(?P<b>{ONE})"
LIST = rf"(?P<list>{ONE}(?:, {ONE})*,? and {ONE}|[Tt]hey|[Tt]ogether they)"
DOES = r"(?P<verb>(?:(?:is|are|was|has|have|had|did) )?[a-z]+)"
UNIT = r"(?: (?P<unit>(?!more|less|fewer)[a-z]+))?"
COMPARED = r"more|less|fewer|(?:old|young|tall|long|short|heavi|light|bigg|small)er"
REST = rf"(?: (?!(?:{COMPARED}|{'|'.join(sorted(UNREAD))})\b)[a-z]+| on [A-Z][a-z]+)*"
"""What a clause may go on with: nothing that makes another quantity of it ("5 years younger", "3 cups each")."""
TIMES = {"twice": "2", "double": "2", "thrice": "3", "triple": "3", "half": "1/2", "a third": "1/3", "a quarter": "1/4"}
K = rf"(?P<k>{'|'.join(TIMES)}|\d+(?:\.\d+)? times)"
AS = r"(?: (?:of )?(?:as (?:many|much|old|long|tall|far|heavy|big)|what|the (?:number|amount)(?: of)?))"
MORE = r"(?P<sign>more|less|fewer|(?:old|young|tall|long|short|heavi|light)er)"
ALL = r"(?:a total of|in total|altogether|together|in all|combined)"
TOTAL = re.compile(rf"{LIST} (?:together )?{DOES} (?:a total of )?{N}{UNIT}{REST}")
DIFFERENCE = re.compile(
    rf"{A} {DOES} {N}{UNIT} {MORE}(?: (?P<unit2>[a-z]+))? than"
    rf"(?: {K}{AS}?| what| the (?:number|amount)(?: of)?)?(?: (?P<unit3>[a-z]+))? {B}(?:'s)?{REST}"
)
RATIO = re.compile(rf"{A} {DOES} {K} as (?:many|much|old|long|tall|far|heavy|big)(?: (?P<unit>[a-z]+))? as {B}{REST}")
PLAIN = re.compile(rf"{A} {DOES}(?: (?P<how>about))? {N}{UNIT}{REST}")
GIVE = re.compile(
    rf"{A} (?:gives|gave|hands|handed|sends|sent|pays|paid) {N}(?: of (?:his|her|its|the))?{UNIT} to {B}{REST}"
)
CHANGE = re.compile(
    rf"{A} (?:then )?"
    r"(?:(?P<gain>buy|get|find|receive|earn|pick|collect|win|gain|add)|eat|lose|sell|spend|use|drop)(?:s|es)?"
    rf"(?: up| away| out)? {N}(?: of (?:them|his|her|its|those))?(?P<again> more| another)?{UNIT}{REST}"
)
QUESTION = re.compile(
    rf"How (?:many|much|old|long|tall|far|heavy)(?: (?P<more>more|fewer|less|older|younger|taller))?"
    rf"(?: (?P<unit>[a-z]+))?"
    rf" (?:do|did|does|is|was|are|were|will|has|have) (?P<a>{ONE}(?:, {ONE})*(?:,? and {ONE})?|they)(?P<rest>[^,;0-9]*)"
)
LONGEST = 2_000
PRONOUNS = {"he", "she", "it"}
LESS = {"less", "fewer", "younger", "shorter", "lighter"}


class NotUnderstood(Exception):  # noqa: N818 (what became of the reading, not a failure)
    """A clause is not one of those that are known."""


@dataclass
class WordProblem:
    """What was read so far."""

    equations: list[str] = field(default_factory=list)
    now: dict[str, str] = field(default_factory=dict)
    """By who it is of, the variable that holds how much it is at this point of the story."""
    units: set[str] = field(default_factory=set)
    last: str = ""

    def who(self, words: str) -> str:
        """Return whose quantity it is."""
        words = words.removesuffix("'s")
        if words.lower() in PRONOUNS:
            if not self.last:
                raise NotUnderstood(words)
            return self.last
        self.last = re.sub(r"\W+", "_", re.sub(r"^(?:the|an?|his|her|their) ", "", words, flags=re.I)) + "_" * (
            len(words) == 1
        )
        return self.last

    def of(self, words: str) -> str:
        """Return the variable of somebody's quantity."""
        who = self.who(words)
        return self.now.setdefault(who, who)

    def set(self, words: str, value: str) -> None:
        """Take down what somebody's quantity is; a second value for one thing is not understood."""
        variable = self.of(words)
        if any(each.startswith(f"{variable} = ") for each in self.equations):
            raise NotUnderstood(words)
        self.equations.append(f"{variable} = {value}")

    def change(self, words: str, sign: str, n: str) -> None:
        """Take down that somebody's quantity is another from here on."""
        before = self.of(words)
        self.now[self.who(words)] = after = f"{before}_"
        self.equations.append(f"{after} = {before} {sign} {n}")

    def measure(self, *units: str | None) -> None:
        self.units |= {stem(unit) for unit in units if unit and unit not in ("than", "to", "did", "does", "old")}


def read_word_problem(task: str) -> str | None:
    """Return equations and what is asked, between `;`; None where a clause is not understood whole."""
    if len(task) > LONGEST:
        return None
    text = re.sub(r"\b(in|per|within) one (?=[a-z])", r"\1 a ", " ".join(task.replace("’", "'").split()))
    text = in_digits(text)
    sentences = [each.strip(" .!?") for each in re.split(r"(?<=[a-z0-9])[.;!?](?:\s+|$)", text) if each.strip(" .!?")]
    if len(sentences) < 2:
        return None
    problem = WordProblem()
    try:
        for sentence in sentences[:-1]:
            _read_sentence(problem, sentence)
        asked = _read_question(problem, sentences[-1])
    except NotUnderstood:
        return None
    return "; ".join([*problem.equations, asked]) if problem.equations and len(problem.units) <= 1 else None


def _read_sentence(problem: WordProblem, sentence: str) -> None:
    if not re.search(r"\d|\b[b-z]\b|\b(?:twice|double|half|thrice|triple|third|quarter)\b", sentence):
        raise NotUnderstood(sentence)
    if _read_clause(problem, sentence):
        return
    parts = re.split(r",? (?:and|but|while|then|and then) |, ", sentence)
    if len(parts) < 2 or not all(_read_clause(problem, part) for part in parts):
        raise NotUnderstood(sentence)


def _read_clause(problem: WordProblem, words: str) -> bool:
    words = words.strip()
    if re.search(ALL, words) and (found := TOTAL.fullmatch(words)):
        names = _names(found["list"]) or list(problem.now)
        problem.equations.append(f"{' + '.join(problem.of(name) for name in names)} = {_number(found)}")
        problem.measure(found["unit"])
    elif found := DIFFERENCE.fullmatch(words):
        variable, other = found["a"], problem.of(found["b"])
        sign = "-" if found["sign"] in LESS else "+"
        problem.set(variable, f"{_times(found['k'])}{other} {sign} {_number(found)}")
        problem.measure(*(found[name] for name in ("unit", "unit2", "unit3")))
    elif found := RATIO.fullmatch(words):
        other = problem.of(found["b"])
        problem.set(found["a"], f"{_times(found['k'])}{other}")
        problem.measure(found["unit"])
    elif found := GIVE.fullmatch(words):
        problem.change(found["a"], "-", _number(found))
        problem.change(found["b"], "+", _number(found))
        problem.measure(found["unit"])
    elif (found := CHANGE.fullmatch(words)) and problem.who(found["a"]) in problem.now:
        problem.change(found["a"], "+" if found["gain"] else "-", _number(found))
        problem.measure(found["unit"])
    elif found := PLAIN.fullmatch(words):
        problem.set(found["a"], _number(found))
        problem.measure(found["unit"])
    else:
        return False
    return True


def _read_question(problem: WordProblem, words: str) -> str:
    found = QUESTION.fullmatch(words)
    if not found:
        raise NotUnderstood(words)
    problem.measure(found["unit"])
    names = _names(found["a"])
    if found["more"]:
        other = re.search(rf" than {B}", found["rest"])
        if not other or found["a"].lower() == "they":
            raise NotUnderstood(words)
        pair = problem.of(found["a"]), problem.of(other["b"])
        first, second = reversed(pair) if found["more"] in LESS else pair
        return f"{first} - {second}"
    if found["a"].lower() == "they" or len(names) > 1:
        if not re.search(rf"\b{ALL}\b", found["rest"]):
            raise NotUnderstood(words)
        return " + ".join(problem.of(name) for name in (names if len(names) > 1 else list(problem.now)))
    asked = problem.of(found["a"])
    if not any(re.search(rf"\b{asked}\b", each) for each in problem.equations):
        raise NotUnderstood(words)
    return asked


def _names(words: str) -> list[str]:
    return [] if words.lower().endswith("they") else re.split(r", and | and |, ", words)


def _number(found: re.Match[str]) -> str:
    return found["n"].replace(",", "")


def _times(words: str | None) -> str:
    return f"{TIMES.get(words) or words.removesuffix(' times')} * " if words else ""
