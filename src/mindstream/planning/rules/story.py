"""A word problem about what one person or place has, buys, shares or uses up, as a formula found by its units.

A quantity is of a unit ("12 eggs") or of a unit for each of another ("12 eggs a box"); what is asked for is worked out
from those whose units lead to it. Where a quantity is left over, a word is not known, somebody else comes in, or the
result cannot be (half an egg, less than nothing), the story is not understood.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from fractions import Fraction

from mindstream.errors import ToolError
from mindstream.planning.rules.quantities import NUMBER, is_number, read_clauses
from mindstream.planning.rules.verbs import (
    ASKING,
    AUXILIARIES,
    BE,
    CURRENCIES,
    PARTICLES,
    PREPOSITIONS,
    PRONOUNS,
    SHARED,
    STATES,
    UNREAD,
    sign_of,
    sign_of_phrase,
)  # fmt: skip
from mindstream.text.units import kind_of
from mindstream.text.words import stem
from mindstream.tools.algebra.formula import read_formulas
from mindstream.tools.algebra.values import evaluate

PART = re.compile(
    rf"(?:(?P<before>\D+?) )?(?P<n>{NUMBER}) of"
    r" (?:them|(?:the|his|her|its|their|these|those) (?P<of>[a-z]+))(?P<more> .+)?"
)
BY_PERCENT = re.compile(
    r"(?P<s>\D+) (?:is|was|are|were) (?P<how>reduced|lowered|cut|discounted|increased|raised) by (?P<n>\d[\d.]*%)"
)
RATIO = re.compile(
    r"(?:(?P<before>\D+?) )?(?P<k>\d+(?:\.\d+)?) times as (?:many|much)(?P<more>(?: [a-z]+)?(?: on [A-Z][a-z]+)?)"
)
ASKED = re.compile(r"(?:How (?P<how>many|much|far|long)|What(?= (?:does|do|did) .+ cost\b))(?P<rest> .+)")
AFTER = re.compile(rf" (?:after|in|for) (?P<n>{NUMBER}) (?P<unit>[a-z]+)")
TOTAL = re.compile(r"\b(?:in total|altogether|in all|together)\b")
REMAINS = re.compile(r"\b(?:left|remain|remains|now|still|over)\b")


class NotUnderstood(Exception):  # noqa: N818 (what became of the reading, not a failure)
    """Something of the story has no single meaning."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A quantity, `per` so many of another; a part `of` something is a share of what is there then."""

    n: str
    unit: str
    per: str = ""
    sign: int = 0
    of: str = ""
    is_state: bool = False


@dataclass
class Story:
    """What was read so far; `verb`: what the last clause did, for one that names no verb."""

    facts: list[Fact] = field(default_factory=list)
    subject: str = ""
    sign: int | None = None
    is_state: bool = False
    used: set[int] = field(default_factory=set)

    def read(self, clause: str) -> None:
        """Take down what a clause says."""
        if found := BY_PERCENT.fullmatch(clause):
            sign = 1 if found["how"] in ("increased", "raised") else -1
            self.facts.append(Fact(found["n"], self._last(), sign=sign, of=self._last()))
        elif (found := RATIO.fullmatch(clause)) and self.facts and self.facts[-1].sign == 0:
            if found["before"]:
                self._read_before(found["before"].split())
            self.facts.append(replace(self.facts[-1], n=f"{found['k']} * {self.facts[-1].n}"))
        elif found := PART.fullmatch(clause):
            self._read_part(found)
        else:
            words = clause.split()
            at = next((at for at, word in enumerate(words) if is_number(word)), None)
            if at is None:
                raise NotUnderstood(clause)
            per = self._read_before(words[:at])
            self._read_quantities(words[at:], per, may_name_verb=not at)

    def _read_before(self, words: list[str]) -> str:
        """Read who does what; return for each of which things it is."""
        if not words:
            return ""
        if len(words) > 1 and words[-1] in (*PARTICLES, "for") and sign_of(words[-2]) is not None:
            words = words[:-1]
        sign = sign_of(words[-1])
        if sign is None:
            raise NotUnderstood(" ".join(words))
        self.sign, self.is_state = sign, words[-1] in STATES or stem(words[-1]) in STATES
        who = [word for word in words[:-1] if word not in ("has", "have", "had", "then")]
        if len(who) == 2 and (each := stem(who[1].lower())):
            first = who[0].lower()
            if first in ("each", "every") or (first in ("a", "an", "one") and each in self.units()):
                return each
        self._take_subject(who)
        return ""

    def _take_subject(self, words: list[str]) -> None:
        words = words[1:] if words and words[0].lower() in ("the", "a", "an") else words
        who = " ".join(words).lower()
        if not who or who in PRONOUNS or stem(who) in self.units():
            return
        if UNREAD & set(who.split()) or (self.subject and who.split()[-1] != self.subject.split()[-1]):
            raise NotUnderstood(who)
        self.subject = self.subject or who

    def _read_quantities(self, words: list[str], per: str, *, may_name_verb: bool) -> None:
        """Read "4 notebooks at 2.50 euros each", "80 km per hour for 2 hours", "5 eggs break", "35 get off"."""
        found: list[tuple[str, str, str, str]] = []  # how it is joined, number, unit, per
        joint = ""
        while words:
            word = words.pop(0)
            if is_number(word):
                while words and words[0] in ("more", "other", "extra"):
                    words.pop(0)
                is_unit = (
                    words
                    and words[0] not in PREPOSITIONS | BE | {"per", "each", "every", "a", "an"}
                    and (len(words) == 1 or sign_of_phrase(words) is None)
                )
                found.append((joint, word, stem(words.pop(0).lower()) if is_unit else self._last(), ""))
            elif word in ("per", "each", "every", "a", "an", "apiece") and found:
                of = stem(words.pop(0)) if words and word != "apiece" else found[0][2]
                if (len(found) == 1 and of == found[0][2]) or found[-1][3]:
                    raise NotUnderstood(word)
                found[-1] = (*found[-1][:3], of)
            elif word in PREPOSITIONS or word in ("containing", "holding"):
                joint = word
                if word in ("in", "into") and len(words) > 2 and words[1] == "of" and is_number(words[2]) and found:
                    found.append(("of", words[2], found[0][2], stem(words[0])))
                    words = words[3:]
                elif words and not is_number(words[0]):
                    words = _skip_aside(words)
            elif may_name_verb and len(found) == 1 and (sign := sign_of_phrase([word, *words])) is not None:
                words = words[1:] if words and (words[0] in PARTICLES or word in BE) else words
                self.sign, self.is_state, may_name_verb = sign, False, False
                joint = "among" if stem(word) in SHARED else ""
            elif word not in ("equally", "evenly", "now", "then"):
                raise NotUnderstood(word)
        self._add(found, per)

    def _add(self, found: list[tuple[str, str, str, str]], per: str) -> None:
        if self.sign is None or not found or len(found) > 2 or any(number.endswith("%") for _, number, *_ in found):
            raise NotUnderstood("what happens to it")
        (_, number, unit, of), *others = found
        if per and (of or others):
            raise NotUnderstood("for each of what")
        for joint, n, other, each in others:
            price = -self.sign if other in CURRENCIES and joint in ("at", "for") else self.sign
            is_group = joint in ("of", "with", "containing", "holding") and not of
            if joint == "of" and each and each != unit and other == unit:
                self.facts += [Fact(number, unit), Fact(n, unit, each)]
            elif is_group or each == unit:
                self.facts += [Fact(number, unit, sign=self.sign if is_group else 0), Fact(n, other, unit, price)]
            elif joint == "for" and not each and (of or number == "1"):
                self.facts += [Fact(number, unit, of, self.sign)] * bool(of) + [Fact(n, other, sign=0 if of else price)]
            elif joint in ("into", "among", "between") and not each and not of:
                self.facts += [Fact(number, unit), Fact(n, other)]
            else:
                raise NotUnderstood(joint)
        if not others:
            self.facts.append(Fact(number, unit, of or per, self.sign, is_state=self.is_state))

    def _read_part(self, found: re.Match[str]) -> None:
        """Read "a quarter of them are basses", "he eats half of the eggs"."""
        of = stem(found["of"]) if found["of"] else self._last()
        of = _unit_by_kind(self, "much") if of == "money" else of
        words = (found["before"] or found["more"] or "").split()
        sign = sign_of_phrase(words) if found["more"] and not found["before"] else sign_of(words[-1]) if words else None
        if of not in self.units() or (found["before"] and found["more"]):
            raise NotUnderstood(found[0])
        is_share = not found["n"].isdigit()
        if sign:
            if found["before"]:
                self._take_subject(words[:-1])
            self.facts.append(Fact(found["n"], of, sign=sign, of=of if is_share else ""))
        elif is_share and found["more"] and len(words) == 2 and words[0] in BE:
            self.facts.append(Fact(found["n"], stem(words[1]), of=of))
        else:
            raise NotUnderstood(found[0])

    def units(self) -> set[str]:
        """Return the units of what was read."""
        return {unit for fact in self.facts for unit in (fact.unit, fact.per) if unit}

    def _last(self) -> str:
        for fact in reversed(self.facts):
            if not fact.of or fact.of == fact.unit:
                return fact.unit
        raise NotUnderstood("what is counted")

    def total(self, unit: str, *, is_rest: bool) -> str:
        """Return the formula of how many there are: of what is left, or of all that came or went."""
        mine = [(at, fact) for at, fact in enumerate(self.facts) if fact.unit == unit and at not in self.used]
        if not mine:
            return self._count_groups(unit)
        signs = [fact.sign for _, fact in mine if fact.of != unit]
        if (is_rest and (signs[:1] != [0] or 0 in signs[1:])) or (not is_rest and len(set(signs)) > 1):
            raise NotUnderstood(unit)
        formula = ""
        for at, fact in mine:
            self.used.add(at)
            sign = "-" if fact.sign < 0 and (is_rest or fact.of) else "+"
            if fact.of == unit:
                formula = f"({formula}) * (1 {sign} {fact.n})"
                continue
            times = fact.per or fact.of
            value = f"{fact.n} * ({self.total(times, is_rest=bool(fact.of))})" if times else fact.n
            formula = f"{formula} {sign} {value}" if formula else value
        return formula

    def _count_groups(self, unit: str) -> str:
        """Return how many groups a whole makes: 48 eggs in boxes of 12, 200 km at 80 km an hour."""
        rates = [(at, fact) for at, fact in enumerate(self.facts) if fact.per == unit and at not in self.used]
        if len(rates) != 1:
            raise NotUnderstood(unit)
        self.used.add(rates[0][0])
        return f"({self.total(rates[0][1].unit, is_rest=False)}) / ({rates[0][1].n})"


def read_story(task: str) -> str | None:
    """Return the formula of what a story asks; None where it is not understood whole."""
    *clauses, question = read_clauses(task) or [""]
    story = Story()
    try:
        for clause in clauses:
            story.read(clause)
        return _read_question(story, question) if story.facts else None
    except (NotUnderstood, ToolError, RecursionError):
        return None


def _read_question(story: Story, words: str) -> str:
    found = ASKED.fullmatch(words)
    if not found:
        raise NotUnderstood(words)
    rest, after = found["rest"], AFTER.search(found["rest"])
    if after:
        story.facts.append(Fact(after["n"], stem(after["unit"])))
        rest = rest.replace(after[0], "")
    first, *others = rest.split()
    is_named = first not in AUXILIARIES and first != "money"
    unit = stem(first) if is_named else _unit_by_kind(story, found["how"] or "much")
    _check_asked(story, others if is_named or first == "money" else [first, *others])
    mine = [fact for fact in story.facts if fact.unit == unit]
    signs = {fact.sign for fact in mine}
    if sum(fact.is_state for fact in mine if not fact.sign) > 1 and not TOTAL.search(rest):
        raise NotUnderstood("which of the two it is")
    is_rest = bool(REMAINS.search(rest) or (len(signs) > 1 and re.search(r"\b(?:have|has)\b", rest)))
    formula = (
        _share(story, unit)
        if "each" in others
        else story.total(unit, is_rest=is_rest or bool(after and len(signs) > 1))
    )
    return check_result(story, unit, formula)


def check_result(story: Story, unit: str, formula: str) -> str:
    """Return a formula that uses every quantity, and of which something comes that can be."""
    value = evaluate(read_formulas(formula)[0].sides[0]).constant
    is_count = not kind_of(unit) and unit not in CURRENCIES
    is_whole = isinstance(value, Fraction) and (value.denominator == 1 or not is_count)
    if len(story.used) < len(story.facts) or value < 0 or not is_whole:
        raise NotUnderstood(unit)
    return formula


def _share(story: Story, unit: str) -> str:
    """Return how much of a whole each one gets."""
    others = {fact.unit for fact in story.facts} - {unit}
    if len(others) != 1 or any(fact.per or fact.of for fact in story.facts):
        raise NotUnderstood(unit)
    return f"({story.total(unit, is_rest=False)}) / ({story.total(others.pop(), is_rest=False)})"


def _check_asked(story: Story, words: list[str]) -> None:
    """Refuse a question about somebody else, or about more than how much there is."""
    known = {*map(stem, story.subject.split()), *story.units()}
    for word in TOTAL.sub("", REMAINS.sub("", " ".join(words))).split():
        plain = word.lower().removesuffix("'s")
        if plain not in ASKING and stem(plain) not in known and sign_of(plain) is None:
            raise NotUnderstood(word)


def _unit_by_kind(story: Story, how: str) -> str:
    """Return the one unit that "how much" or "how far" can mean."""
    units = {
        unit
        for unit in story.units()
        if (unit in CURRENCIES if how == "much" else kind_of(unit) == {"far": "length", "long": "time"}.get(how))
    }
    if len(units) != 1:
        raise NotUnderstood(how)
    return units.pop()


def _skip_aside(words: list[str]) -> list[str]:
    """Leave out what stands behind a preposition, as far as the next one."""
    end = 0
    while end < len(words) and words[end] not in PREPOSITIONS | {"per", "each", "every"} and not is_number(words[end]):
        if words[end] in UNREAD - {"his", "her", "their", "first", "last"}:
            raise NotUnderstood(words[end])
        end += 1
    return words[end:]
