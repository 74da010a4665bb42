"""What holds between records, and none of them says alone: who is with whom, who does what again, what several say.

Read from what records are about: their triples, who said a line to whom, when and where. Free text is for recurring.py.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from mindstream.clock import Moment
from mindstream.reasoners.reflect.memories import Memories, Memory, house_of, statements, topics_of

HOUR, DAY = 3_600.0, 86_400.0
OFTEN = 3
"""So many occasions are often, so many people are several."""
TELLING, WEIGHTY = 3.0, 5.0
"""From this importance on a deed says something of who does it; and something of what goes on."""
SAME_TIME = 0.75 * HOUR
TALKS = re.compile(r"talking with (?P<other>.+)")
ACCEPTS = re.compile(r"\b(?:would|'d) love to\b|\bwill be there\b|\bcount me in\b|\bwith pleasure\b|\bgladly\b", re.I)
K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Relation:
    """Something that holds between records.

    Attributes:
        text: one sentence.
        about: whom and what it names.
        because: the numbers of the records that it rests on, from 1.
        signs: parts of a sentence that says it already.
    """

    text: str
    about: tuple[str, ...]
    because: tuple[int, ...]
    signs: tuple[str, ...] = ()


def find_relations(who: str, records: Sequence[Memory]) -> list[Relation]:
    """Return what holds between these records, what says most first; of what rests on the same, that alone."""
    memories = Memories(who, records)
    found = [relation for find in FINDERS for relation in find(memories)]
    first = {each.because: each for each in reversed(found)}
    return [each for each in found if first[each.because] is each]


def join(names: Sequence[str]) -> str:
    """Write up to four names as one does in a sentence; of more, three "and others"."""
    if len(names) > OFTEN + 1:
        return f"{', '.join(names[:OFTEN])} and others"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _grouped(pairs: Iterator[tuple[K, str, int]]) -> dict[K, dict[str, int]]:
    """Gather numbers by what they are of and by whom; of each the first."""
    found: defaultdict[K, dict[str, int]] = defaultdict(dict)
    for key, by, number in pairs:
        found[key].setdefault(by, number)
    return found


def _apart(times: Sequence[tuple[Moment, int]], gap: float) -> list[int]:
    """Return the numbers of occasions, at least so far apart."""
    kept: list[tuple[Moment, int]] = []
    for at, number in sorted(times):
        if not kept or at - kept[-1][0] >= gap:
            kept.append((at, number))
    return [number for _, number in kept]


def _agreements(memories: Memories) -> Iterator[Relation]:
    """Several said yes to the same."""
    asked = {
        r.episode: (n, r)
        for n, r in memories.numbered
        if r.to and r.by == memories.who and r.text.endswith(("?", "？"))
    }
    agreed: Iterator[tuple[str, str, int]] = (
        (fact, record.by, number)
        for number, record in memories.heard
        if record.episode in asked and ACCEPTS.search(record.text)
        for fact in statements(asked[record.episode][1].text, own=True)[-1:]
    )
    for fact, answers in _grouped(agreed).items():
        if len(answers) > 1:
            asking = [asked[memories.records[number - 1].episode][0] for number in answers.values()]
            said = f"have said yes when {memories.who} asked them about this: “{fact}”"
            text = f"{join(list(answers))} {said}"
            yield Relation(
                text, (*answers, *topics_of(fact, memories)), tuple(sorted({*answers.values(), *asking})), (said,)
            )


def _gatherings(memories: Memories) -> Iterator[Relation]:
    """Several do the same thing that weighs, within a few hours."""
    seen = [each for each in memories.deeds if (each[1].importance or 0) >= TELLING and not TALKS.match(each[3])]
    times = {number: record.created for number, record, _, _ in seen}
    for deed, by in _grouped((what, who, number) for number, _, who, what in seen).items():
        first = min(times[number] for number in by.values())
        there = {who: number for who, number in by.items() if times[number] - first <= 4 * HOUR}
        if len(there) < OFTEN:
            continue
        houses = {house_of(memories.records[number - 1].place) for number in there.values()}
        house = houses.pop() if len(houses) == 1 else ""
        where = f" at {house}" if house and house not in deed else ""
        said = f"have been {deed}{where}"
        yield Relation(f"{join(list(there))} {said}.", (*there, deed), tuple(there.values()), (f"have been {deed}",))


def _habits(memories: Memories) -> Iterator[Relation]:
    """Somebody does the same on several days."""
    found: defaultdict[tuple[str, str], dict[int, tuple[int, Moment]]] = defaultdict(dict)
    for number, record, who, deed in memories.deeds:
        if (record.importance or 0) >= TELLING and not TALKS.match(deed):
            found[who, deed].setdefault(int(record.created // DAY), (number, record.created % DAY))
    for (who, deed), days in found.items():
        if len(days) < 2:
            continue
        numbers, times = zip(*days.values(), strict=True)
        in_row = max(days) - min(days) == len(days) - 1
        when = f"{number_word(len(days))} days in a row" if in_row else f"on {number_word(len(days))} days"
        same = ", at about the same time" if max(times) - min(times) <= SAME_TIME else ""
        yield Relation(f"{who} has been {deed} {when}{same}.", (who, deed), numbers, (f"{who} has been {deed} ",))


def _pairs(memories: Memories) -> Iterator[Relation]:
    """Two others are seen to talk with each other again and again."""
    talks: defaultdict[tuple[str, str], list[tuple[Moment, int]]] = defaultdict(list)
    for number, record, who, deed in memories.deeds:
        other = match["other"] if (match := TALKS.fullmatch(deed)) else ""
        if other in memories.people and other != who:
            talks[min(who, other), max(who, other)].append((record.created, number))
    for (one, other), times in talks.items():
        occasions = _apart(times, HOUR)
        if len(occasions) >= OFTEN:
            yield Relation(f"{one} and {other} often talk with each other.", (one, other), tuple(occasions))


def _company(memories: Memories) -> Iterator[Relation]:
    """Somebody with whom who remembers it talks again and again."""
    for other, talks in _grouped((other, str(r.created), n) for n, r, other in memories.talks).items():
        if len(talks) >= OFTEN:
            yield Relation(f"{memories.who} often talks with {other}.", (other,), tuple(talks.values()))


def _themes(memories: Memories) -> Iterator[Relation]:
    """What comes up whenever two talk."""
    lines = (
        ((other, topic), str(r.created), n)
        for n, r, other in memories.talks
        if r.to
        for topic in topics_of(r.text, memories)
        if topic != other
    )
    for (other, topic), talks in _grouped(lines).items():
        if len(talks) >= OFTEN:
            text = f"{memories.who} and {other} keep coming back to {topic}."
            yield Relation(text, (other, topic), tuple(talks.values()))


def _whereabouts(memories: Memories) -> Iterator[Relation]:
    """Where somebody is seen again and again, other than in a house that has its name."""
    seen: defaultdict[tuple[str, str], list[tuple[Moment, int]]] = defaultdict(list)
    for number, record, who, _ in memories.deeds:
        if house := house_of(record.place):
            seen[who, house].append((record.created, number))
    for (who, house), times in seen.items():
        occasions, days = _apart(times, HOUR), {at // DAY for at, _ in times}
        if len(occasions) >= OFTEN and len(days) > 1 and not any(name in house for name in who.split()):
            yield Relation(f"{who} is often at {house}.", (who, house), tuple(occasions))


def _spoken_of(memories: Memories) -> Iterator[Relation]:
    """Whom and what several speak of."""
    named = ((each, r.by, n) for n, r in memories.heard for each in topics_of(r.text, memories) if each != r.by)
    for topic, by in _grouped(named).items():
        several = f"Several people speak of {topic}"
        if len(by) >= OFTEN:
            text = f"{several}: {join(list(by))}."
            yield Relation(text, (topic, *by), tuple(by.values()), (several,))
        elif len(by) == 2:
            both = f"both speak of {topic}."
            yield Relation(f"{join(list(by))} {both}", (topic, *by), tuple(by.values()), (both, several))


def _hearsay(memories: Memories) -> Iterator[Relation]:
    """What several say in the same words."""
    told = ((each, record.by, number) for number, record in memories.heard for each in statements(record.text))
    for fact, by in _grouped(told).items():
        if len(by) > 1:
            said = f"have told {memories.who} the same: “{fact}”"
            text = f"{join(list(by))} {said}"
            yield Relation(text, (*by, *topics_of(fact, memories)), tuple(by.values()), (said,))


def _meetings(memories: Memories) -> Iterator[Relation]:
    """Where somebody is to be met whom one often talks with: from what one thought before."""
    often = f"{memories.who} often talks with "
    company = {text.removeprefix(often).rstrip("."): n for n, text in memories.own_thoughts if text.startswith(often)}
    for number, text in memories.own_thoughts:
        name, _, house = text.rstrip(".").partition(" is often at ")
        if house and name in company:
            said = f"{memories.who} is most likely to meet {name} at {house}."
            yield Relation(said, (name, house), (company[name], number), (f"most likely to meet {name} at ",))
    if len(company) >= OFTEN:
        names = sorted(company)[:4]
        said = f"the company that {memories.who} keeps."
        because = tuple(company[name] for name in names)
        yield Relation(f"{', '.join(names[:-1])} and {names[-1]} are {said}", tuple(names), because, (said,))


def number_word(number: int) -> str:
    """Write a number from two on in a sentence."""
    words = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    return words[number - 2] if number - 2 < len(words) else str(number)


FINDERS: tuple[Callable[[Memories], Iterator[Relation]], ...] = (
    _meetings, _agreements, _gatherings, _themes, _company, _habits, _pairs, _hearsay, _spoken_of,
    _whereabouts,
)  # fmt: skip
"""What says most comes first."""
