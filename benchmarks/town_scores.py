"""The 25 questions of an interview and what would be right, computed from a resident's whole stream and state.

A score says how much of an answer is right, 0 to 1. It never looks at what the answer was drawn from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from mindstream import chance
from mindstream.memory.record import Record
from mindstream.text.support import SHARE
from mindstream.text.windows import sentences
from mindstream.text.words import terms
from mindstream.town.events import Block, Talked
from mindstream.town.history import History
from mindstream.town.interview import day_lines
from mindstream.town.metrics.fact import Fact, read_fact
from mindstream.town.person import Person
from mindstream.town.places import words_of

CATEGORIES = ("self-knowledge", "memory", "plans", "reactions", "reflections")
MAYOR = "somebody is running for mayor | somebody is a candidate for mayor | somebody stands for mayor"
PARTY = "there is a Valentine's Day party"
DOES_NOT_KNOW = ("do not know", "don't know", "have not met", "not know", "no idea")
APT = {
    "Your breakfast is burning! What would you do?": "see turn off stove help put out stop remove open",
    "The bathroom is occupied. What would you do?": "wait later meanwhile another knock",
    "Your refrigerator is empty. What would you do?": "buy shop market store groceries shopping",
    "A friend of yours walks by on the street. What would you do?": "hello greet tell talk chat wave",
    "You see a fire on the street. What would you do?": "help call warn firefighters extinguish see",
}
"""Reactions, and words of deeds that fit each."""


@dataclass(frozen=True)
class Asked:
    """A question, and how right an answer to it is."""

    category: str
    question: str
    score: Callable[[str], float]


@dataclass
class Truth:
    """What is true of a resident after a step, with nothing hidden."""

    history: History
    name: str
    step: int
    _cache: dict[str, frozenset[str]] = field(default_factory=dict)

    @property
    def person(self) -> Person:
        return self.history.setting.people[self.name]

    @cached_property
    def records(self) -> tuple[Record, ...]:
        """What it remembers by then."""
        moment = self.history.setting.moment(self.step)
        return tuple(each for each in self.history.records[self.name] if each.created <= moment)

    @cached_property
    def known(self) -> tuple[str, ...]:
        """Whom it has talked with or remembers from before, in an order drawn by the seed."""
        talked = {talk.partner for at, talk in self.history.events(self.name, Talked) if at <= self.step}
        before = " ".join(each.text for each in self.records if each.kind == "note" and not each.evidence)
        return self._drawn(name for name in self.history.names if name in talked or name in before)

    @cached_property
    def unknown(self) -> tuple[str, ...]:
        """Of whom nothing that it remembers says anything."""
        said = "\n".join(f"{each.by} {each.text}" for each in self.records)
        return self._drawn(name for name in self.history.names if name not in said) or ("Dora Finch",)

    def _drawn(self, names: object) -> tuple[str, ...]:
        assert hasattr(names, "__iter__")
        seed = self.history.setting.seed
        others = [name for name in names if name != self.name]
        return tuple(sorted(others, key=lambda name: chance.fraction(seed, "interview", self.name, name)))

    def holds(self, fact: Fact) -> bool:
        """Tell whether a memory of its says a fact."""
        return any(fact.is_in(each.text, each.by) for each in self.records)

    def block(self, minute: int, *, tomorrow: bool = False) -> Block | None:
        """Return what is planned for a minute: tomorrow by the plan that it then really made."""
        setting = self.history.setting
        at = setting.step_at(setting.day(self.step) + 1, minute) if tomorrow else self.step
        return self.history.state(self.name, at).block_at(minute)

    def words(self, text: str) -> frozenset[str]:
        """Return a text's content words, names aside."""
        if text not in self._cache:
            self._cache[text] = frozenset(terms(text)) - self.history.setting.name_words
        return self._cache[text]

    def of_person(self, name: str) -> frozenset[str]:
        """Return the words that describe somebody."""
        other = self.history.setting.people.get(name)
        return frozenset() if other is None else self.words(f"{other.learned} {other.currently} {other.innate}")

    @cached_property
    def sources(self) -> tuple[frozenset[str], ...]:
        """The words of each thing that it may say: what it is, remembers, has planned, knows of places."""
        state = self.history.state(self.name, self.step)
        told = [
            *self.person.identity(state.currently).splitlines(), *self.person.identity().splitlines(),
            *(f"{each.by} {part}" for each in self.records for part in sentences(each.text)),
            *day_lines(self.history.setting, state, self.step), *map(words_of, state.knows),
            state.act.what if state.act else "",
        ]  # fmt: skip
        return tuple(frozenset(terms(f"{self.name} {each}")) for each in told)

    def made_up(self, answer: str) -> list[str]:
        """Return the sentences of an answer that claim something which nothing says.

        What one would do is no claim; that one does not know is none. After a colon stands what is claimed.
        """
        found = []
        for sentence in sentences(answer):
            told, colon, claim = sentence.partition(": ")
            if sentence.startswith("I would") and not colon:
                continue
            words = frozenset(terms(claim or told)) - {"yes", "no"}
            if not words or any(each in sentence for each in DOES_NOT_KNOW):
                continue
            if not any(len(words & source) >= SHARE * len(words) for source in self.sources):
                found.append(sentence)
        return found


def does_not_know(answer: str) -> bool:
    """Tell whether an answer says that it is none."""
    return any(each in answer for each in DOES_NOT_KNOW)


def questions_for(truth: Truth) -> list[Asked]:
    """Return the 25 questions to a resident; names in them are drawn by the seed."""
    return [*_self(truth), *_memory(truth), *_plans(truth), *_reactions(truth), *_reflections(truth)]


def _asked(category: int, question: str, score: Callable[[str], float]) -> Asked:
    return Asked(CATEGORIES[category], question, score)


def _cover(truth: Truth, wanted: str, enough: float) -> Callable[[str], float]:
    """Score by how many of some words an answer has; `enough` of them is all that is asked."""
    words = truth.words(wanted)
    return lambda answer: min(1.0, len(words & truth.words(answer)) / (enough * len(words))) if words else 1.0


def _self(truth: Truth) -> list[Asked]:
    person, people = truth.person, truth.history.setting.people
    home = person.home.split(":")[1]
    housemates = {each for each in people if each != truth.name and people[each].home.split(":")[1] == home}

    def lives_with(answer: str) -> float:
        named = {each for each in people if each != truth.name and each in answer}
        if not housemates:
            return float(not named)
        return 2 * len(named & housemates) / (len(named) + len(housemates))

    about, days = f"{person.learned} {person.currently} {person.innate}", f"{person.lifestyle} {person.routine}"
    return [
        _asked(0, "Give an introduction of yourself.", _cover(truth, person.learned, 0.5)),
        _asked(0, "What is your occupation?", _cover(truth, person.learned, 0.4)),
        _asked(0, "What are your interests?", _cover(truth, about, 0.15)),
        _asked(0, "Who do you live with?", lives_with),
        _asked(0, "Describe your typical weekday schedule.", _cover(truth, days, 0.4)),
    ]


def _memory(truth: Truth) -> list[Asked]:
    setting = truth.history.setting
    names = [*truth.known[:2], *truth.unknown * 3][:3]

    def who_is(name: str) -> Callable[[str], float]:
        if name not in truth.known:
            return lambda answer: float(does_not_know(answer))
        relation = next((each.what for each in truth.person.relations if each.name == name), "")
        right = truth.of_person(name) | truth.words(relation)
        return lambda answer: 0.0 if does_not_know(answer) else min(1.0, len(right & truth.words(answer)) / 2)

    def knows(words: str) -> Callable[[str], float]:
        fact = read_fact(words, setting)
        held = truth.holds(fact)
        return lambda answer: float(fact.is_in(answer) if held else does_not_know(answer))

    return [
        *(_asked(1, f"Who is {name}?", who_is(name)) for name in names),
        _asked(1, "Who is running for mayor?", knows(MAYOR.replace("somebody ", ""))),
        _asked(1, "Was there a Valentine's Day party?", knows(PARTY)),
    ]


def _plans(truth: Truth) -> list[Asked]:
    def right(minute: int, *, tomorrow: bool = False) -> Callable[[str], float]:
        block = truth.block(minute, tomorrow=tomorrow)

        def score(answer: str) -> float:
            if block is None or does_not_know(answer):
                return 0.0
            if block.asleep:
                return float("sleep" in truth.words(answer))
            what = truth.words(block.what.partition(" (")[0])
            said, house = (
                truth.words(answer),
                frozenset(terms(block.place.split(":")[1])) if block.place else frozenset(),
            )
            does = len(what & said) >= SHARE * len(what)
            there = bool(house) and len(house & frozenset(terms(answer))) >= SHARE * len(house)
            return 0.5 * does + 0.5 * there if house else float(does)

        return score

    times = (("6 am", 360), ("1 pm", 780), ("6 pm", 1_080), ("10 pm", 1_320))
    return [
        *(_asked(2, f"What will you be doing at {clock} today?", right(minute)) for clock, minute in times),
        _asked(2, "What will you be doing at 10 am tomorrow?", right(600, tomorrow=True)),
    ]


def _reactions(truth: Truth) -> list[Asked]:
    state = truth.history.state(truth.name, truth.step)
    doing = truth.words(state.act.what.partition(" (")[0]) if state.act else frozenset()
    houses = {place.split(":")[1] for place in state.knows if ":" in place}

    def fits(apt: str) -> Callable[[str], float]:
        deeds = frozenset(terms(apt))

        def score(answer: str) -> float:
            said = truth.words(answer)
            grounded = (
                any(name in answer for name in truth.known)
                or any(house in answer for house in houses)
                or (bool(doing) and doing <= said)
                or any(len(words & said) > 2 for each in truth.records if (words := truth.words(each.text)))
            )
            return 0.5 * bool(deeds & frozenset(terms(answer))) + 0.5 * grounded

        return score

    return [_asked(3, question, fits(apt)) for question, apt in APT.items()]


def _reflections(truth: Truth) -> list[Asked]:
    names = (truth.known * 5)[2:5] if truth.known else (truth.unknown * 3)[:3]
    person = truth.person

    def suits(name: str) -> Callable[[str], float]:
        if name not in truth.known:
            return lambda answer: float(does_not_know(answer))
        return lambda answer: min(1.0, len(truth.of_person(name) & truth.words(answer)) / 2)

    met = {talk.partner for at, talk in truth.history.events(truth.name, Talked) if at <= truth.step}

    def company(answer: str) -> float:
        named = [name for name in met if name in answer]
        if not met or not named:
            return float(not met and does_not_know(answer))
        return 0.5 + 0.25 * min(2, len(truth.of_person(named[0]) & truth.words(answer)))

    about = f"{person.learned} {person.currently} {person.innate}"
    return [
        _asked(4, "What are you most inspired by in life? And why?", _cover(truth, about, 0.15)),
        _asked(4, f"What book would {names[0]} like?", suits(names[0])),
        _asked(4, f"What would you give {names[1]} as a birthday gift?", suits(names[1])),
        _asked(4, f"What would you say to {names[2]} as a compliment?", suits(names[2])),
        _asked(4, "If you were to spend time with one person you met recently, who would it be and why?", company),
    ]
