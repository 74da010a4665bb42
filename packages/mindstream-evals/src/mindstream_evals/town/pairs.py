"""Draw comparisons: for each drawn item all pairs of conditions, in random order."""

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
    """Two conditions whose answers to the same item are compared; `first` is shown first."""

    item: Item
    first: str
    second: str


@dataclass(frozen=True)
class Pair:
    """Two answers to the same item; `first` is shown first."""

    first: Answer
    second: Answer

    @property
    def item(self) -> Item:
        """The item to which both are answers."""
        return self.first.item

    @property
    def id(self) -> str:
        """An id derived from both answers in this order; it does not reveal the conditions."""
        return chance.keyed_token(
            16, "pair", *self.item.key, self.first.key, self.second.key, self.first.text, self.second.text
        )

    @property
    def is_same(self) -> bool:
        """Whether both answers have the same words."""
        return self.first.text.split() == self.second.text.split()


def draw_comparisons(
    items: Sequence[Item], conditions: Sequence[str], by_person: Collection[tuple[str, str]], most: int, seed: int
) -> list[Comparison]:
    """Return all pairs of conditions for each drawn item; items that a person answered are drawn first.

    All pairs of an item need only one answer per condition. So few items with all pairs cost less than many items with
    one pair each, and only an item with all pairs gives a ranking of the conditions.

    Args:
        most: maximum number of comparisons; 0: all.
    """
    drawn = chance.sample(items, len(items), seed, "items")
    before = Counter[str]()
    place: dict[tuple[str, str], int] = {}
    for each in drawn:  # each resident occurs once before any occurs twice
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
    """Return the resident whose answer to a question the control uses: another resident, and a different one for each
    resident."""
    order = sorted(names)
    step = 1 + int(chance.fraction(seed, "shuffled", question) * (len(order) - 1))
    return order[(order.index(name) + step) % len(order)]


def pairs_of(comparisons: Sequence[Comparison], answers: Mapping[tuple[str, str, str], Answer]) -> list[Pair]:
    """Return the pairs with both answers."""
    keys = [((*each.item.key, each.first), (*each.item.key, each.second)) for each in comparisons]
    return [Pair(answers[one], answers[two]) for one, two in keys if one in answers and two in answers]
