"""What is compared: drawn items, all conditions against each other, in an order that says nothing."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from mindstream import chance
from mindstream_evals.town.questions import Answer, Item

PERSON, SHUFFLED = "person", "shuffled"


@dataclass(frozen=True)
class Comparison:
    """Two conditions whose answers to an item are compared, in the order in which they are shown."""

    item: Item
    first: str
    second: str


@dataclass(frozen=True)
class Pair:
    """Two answers to one item; `first` is shown first."""

    first: Answer
    second: Answer

    @property
    def item(self) -> Item:
        """What both answer."""
        return self.first.item

    @property
    def id(self) -> str:
        """Its name on a page: of what was answered, in this order, and nothing of how."""
        return chance.keyed_token(
            16, "pair", *self.item.key, self.first.key, self.second.key, self.first.text, self.second.text
        )

    @property
    def is_same(self) -> bool:
        """Both say the same, word for word: there is nothing to be compared."""
        return self.first.text.split() == self.second.text.split()


def draw_comparisons(
    items: Sequence[Item], conditions: Sequence[str], by_person: Collection[tuple[str, str]], most: int, seed: int
) -> list[Comparison]:
    """Return what is compared: whole items, one after another; those that a person answered first.

    All pairs of an item cost one answer for each condition, so few items with all their pairs are cheaper than many
    with one, and only whole items can be ranked.

    Args:
        most: so many comparisons; 0: all.
    """
    drawn = chance.sample(items, len(items), seed, "items")
    before = Counter[str]()
    place: dict[tuple[str, str], int] = {}
    for each in drawn:  # everybody once before anybody twice
        place[each.key] = before[each.resident]
        before[each.resident] += 1
    drawn.sort(key=lambda each: (each.key not in by_person, place[each.key]))
    found = []
    for item in drawn:
        there = [each for each in conditions if each != PERSON or item.key in by_person]
        pairs = list(itertools.combinations(there, 2))
        for first, second in chance.sample(pairs, len(pairs), seed, "pairs", *item.key):
            turned = chance.fraction(seed, "turned", *item.key, first, second) < 0.5
            found.append(Comparison(item, *((second, first) if turned else (first, second))))
    return found[: most or len(found)]


def other_resident(names: Sequence[str], name: str, question: str, seed: int) -> str:
    """Return whose answer stands for somebody's where answers are shuffled: never its own; one to one, by question."""
    order = sorted(names)
    step = 1 + int(chance.fraction(seed, "shuffled", question) * (len(order) - 1))
    return order[(order.index(name) + step) % len(order)]


def pairs_of(comparisons: Sequence[Comparison], answers: Mapping[tuple[str, str, str], Answer]) -> list[Pair]:
    """Return the pairs whose two answers are there."""
    keys = [((*each.item.key, each.first), (*each.item.key, each.second)) for each in comparisons]
    return [Pair(answers[one], answers[two]) for one, two in keys if one in answers and two in answers]
