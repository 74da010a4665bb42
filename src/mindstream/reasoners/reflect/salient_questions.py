"""Which high-level questions can these memories answer? (Park 2023, 4.2), and the rule that asks about what recurs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from mindstream.models.prompt import Prompt, rule
from mindstream.reasoners.reflect.memories import Memories, Memory
from mindstream.reasoners.reflect.recurring import find_recurring
from mindstream.reasoners.reflect.relations import TALKS, WEIGHTY


class Questions(BaseModel):
    """High-level questions, the most salient first."""

    model_config = ConfigDict(frozen=True)

    questions: list[Annotated[str, Field(max_length=1_000)]] = Field(max_length=20)


class SalientQuestions(Prompt[Questions]):
    """The most salient high-level questions that these memories can answer."""

    who: str
    memories: tuple[str, ...]
    count: int = 3
    records: tuple[Memory, ...] = ()
    """The memories as records: for the rule."""


@rule(SalientQuestions)
def recurring_questions(ask: SalientQuestions) -> Questions:
    """Ask about people, what goes on and what recurs in free text; first what was thought about least."""
    memories = Memories(ask.who, ask.records)
    thought = "\n".join(text for _, text in memories.own_thoughts)
    topics = [each.about[0] for each in find_recurring(ask.who, ask.records)]
    people, events, words = (_ranked(each, thought) for each in (_people(memories), _events(memories), topics))
    mixed = zip_longest(
        [f"What do {ask.who} and {name} talk about, and what is {name} doing these days?" for name in people],
        [f"Who is {event}, and what is it about?" for event in events],
        [f"What about {word} matters to {ask.who}?" for word in words],
    )
    return Questions(questions=[each for each in chain.from_iterable(mixed) if each][: ask.count])


def _ranked(found: Sequence[str], thought: str) -> list[str]:
    """Return each once, what was thought about least first, then what comes up most."""
    counted = Counter(found)
    return sorted(counted, key=lambda each: (thought.count(each), -counted[each], each))


def _people(memories: Memories) -> list[str]:
    return [name for _, record in memories.numbered for name in _named(record, memories)]


def _named(record: Memory, memories: Memories) -> Iterator[str]:
    names = (record.by, record.to, record.about.subject if record.about else "")
    return (name for name in names if name in memories.people)


def _events(memories: Memories) -> list[str]:
    return [
        deed for _, record, _, deed in memories.deeds if (record.importance or 0) >= WEIGHTY and not TALKS.match(deed)
    ]
