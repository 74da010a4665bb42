"""Ask residents questions as of any step; an interview writes no rows and does not affect memories.

Parts of the memory can be hidden, as in the ablations of Park 2023 (6.2).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from mindstream.errors import InputError
from mindstream.identifiers import StreamName
from mindstream.memory.recall.ranking import Filters, Generative, Policy
from mindstream.memory.recall.recall import Recalled, Recaller, recaller_of
from mindstream.memory.store.record import Kind, Record
from mindstream.models.embedders.embedder import Embedder, embedder
from mindstream.models.prompt import ask
from mindstream.models.roles import AnyModels, Models, open_models
from mindstream.text.classifier import SHARE
from mindstream.text.words import plain_words, sentences, terms
from mindstream_town.inspect.history import Source, open_store, step_of
from mindstream_town.journal import TownState, read_setting, read_town
from mindstream_town.prompts.conduct import AnswerInterview
from mindstream_town.residents.person import policy_of
from mindstream_town.residents.places import words_of
from mindstream_town.residents.sight import is_in_sight
from mindstream_town.setting import Setting
from mindstream_town.state import ResidentState

Condition: TypeAlias = Literal["full", "no_reflection", "no_reflection_no_plan", "none"]
CONDITIONS: tuple[Condition, ...] = get_args(Condition)
OF_WORLD: tuple[Kind, ...] = ("observation", "chat", "note")
"""Kinds of memories that remain if the resident's own thoughts are hidden."""
RECALLED, OF_NAME = 30, 10
BESIDE = 60
"""Minutes before and after the current time in which the day's plan is shown task by task."""
LONGEST = 400
"""Maximum characters of a memory in the prompt; a plan of a day may have twice as many."""


@dataclass(frozen=True)
class Interview:
    """A question and its answer.

    Attributes:
        memories: the recalled memories: for the question, then for each resident that the question names, then for the
            previous question. Each group is ordered by relevance.
        rests_on: the recalled memories whose words occur in the answer.
    """

    name: str
    question: str
    answer: str
    step: int
    condition: Condition
    memories: tuple[Recalled, ...]
    rests_on: tuple[Record, ...]


class Interviewer:
    """Asks residents of a town as of a given step. Created by `open_interview`."""

    def __init__(
        self, setting: Setting, town: TownState, recaller: Recaller, policy: Policy, models: Models, step: int
    ) -> None:
        self.setting, self.step = setting, step
        self._town, self._recaller, self._policy, self._models = town, recaller, policy, models

    async def ask(
        self, name: str, question: str, condition: Condition = "full", lines: Sequence[str] = ()
    ) -> Interview:
        """Ask one question.

        Args:
            condition: the kinds of memory that the resident may use.
            lines: the earlier lines of the interview, as `name: words`.

        Raises:
            InputError: the resident or the condition does not exist, or the question is empty.
            ModelError: the model that answers is not available.
        """
        prompt, memories = await self.prepare(name, question, condition, lines)
        answer = await ask(self._models.of(prompt.role), prompt)
        names, records = self.setting.name_words, [each.record for each in memories]
        return Interview(
            name,
            question,
            answer,
            self.step,
            condition,
            tuple(memories),
            tuple(record for record in records if is_source(record.text, answer, names)),
        )

    async def prepare(
        self, name: str, question: str, condition: Condition = "full", lines: Sequence[str] = (), asked_in: str = ""
    ) -> tuple[AnswerInterview, list[Recalled]]:
        """Return the prompt for the model that answers, and the recalled memories.

        Args:
            asked_in: the id of the record that contains the question itself.

        Raises:
            InputError: the resident or the condition does not exist, or the question is empty.
        """
        person = self.setting.people.get(name)
        if person is None:
            raise InputError(
                f"{self.setting.name} has no resident {name!r}; residents: {', '.join(self.setting.people)}"
            )
        if condition not in CONDITIONS:
            raise InputError(f"unknown condition {condition!r}; use one of: {', '.join(CONDITIONS)}")
        if not question.strip():
            raise InputError("the question is empty")
        state = self._town.states.get(name, ResidentState(name=name))
        memories = await self._recall(name, question, lines, condition, asked_in)
        plans, sees = condition in ("full", "no_reflection"), condition != "none"
        when = self.setting.when(max(self.step, 0))
        minute = when.hour * 60 + when.minute
        day = day_lines(self.setting, state, self.step, minute) if plans else ()
        begun = [each for each in state.blocks if each.start <= minute]
        begun_lines = day_lines(self.setting, state.model_copy(update={"blocks": tuple(begun)}), self.step, minute)
        prompt = AnswerInterview(
            who=name,
            identity=person.identity(state.currently if plans else ""),
            home=words_of(person.home),
            when=f"{when:%A, %B} {when.day}, {when.year}, {when:%H:%M}",
            doing=state.act.what if state.act and sees else "",
            place=self._place(state) if sees else "",
            memories=tuple(self._words(each.record) for each in memories),
            day=day,
            begun=min(len(day), len(begun_lines)),
            asleep=state.asleep and sees,
            near=self._near(name) if sees else (),
            places=_houses(state) if sees else (),
            question=question,
            lines=tuple(lines),
        )
        return prompt, memories

    async def _recall(
        self, name: str, question: str, lines: Sequence[str], condition: Condition, asked_in: str
    ) -> list[Recalled]:
        """Return the memories recalled by the question, by names in it and by the previous question; the condition
        decides which memories are included."""
        if condition == "none":
            return []
        key = self._recaller.store.key(StreamName("resident", name))
        now = self.setting.moment(max(self.step, 0))
        filters = Filters(as_of=now, kinds=None if condition == "full" else OF_WORLD, asked_in=asked_in)
        queries = [(question, RECALLED), *((other, OF_NAME) for other in self._named(name, question))]
        queries += [(lines[-2].partition(": ")[2], OF_NAME)] if len(lines) > 1 else []
        found: dict[str, Recalled] = {}
        for query, k in queries:
            recall = await self._recaller.recall(key, query, k, now=now, filters=filters, policy=self._policy)
            nearest = sorted(recall.returned, key=lambda each: -each.parts.get("relevance", 0.0))
            found |= {each.record.id: each for each in nearest if each.record.id not in found}
        hidden = condition == "no_reflection_no_plan"
        return [each for each in found.values() if not (hidden and "plan" in each.record.keywords)]

    def _named(self, name: str, question: str) -> list[str]:
        """Return the other residents whose name, or a part of it, occurs in a question."""
        said, asked = set(plain_words(question)), question.casefold()
        return [
            other
            for other in self.setting.people
            if other != name
            and any(word in said if word.isascii() else word in asked for word in other.casefold().split())
        ]

    def _place(self, state: ResidentState) -> str:
        """Return the resident's place in words; "" on a street."""
        arena = self.setting.world.arena_of(state.spot(max(self.step, 0)))
        return words_of(str(self.setting.world.places[arena])) if arena else ""

    def _words(self, record: Record) -> str:
        """Return a memory as text for the prompt: time, speaker, text.

        The time is left out if the memory is from the town's first step or earlier. The speaker is left out if the
        memory is no message. A long text is cut off.
        """
        said = f"{record.by}: " if record.kind == "chat" else ""
        step = step_of(self.setting, record.created)
        dated = f"({self.setting.when(step):%A %Y-%m-%d %H:%M}) " if step > 0 else ""
        shown = 2 * LONGEST if "plan" in record.keywords else LONGEST
        return f"{dated}{said}{record.text[:shown]}"

    def _near(self, name: str) -> tuple[str, ...]:
        states, step = self._town.states, max(self.step, 0)
        if name not in states:
            return ()
        spot = states[name].spot(step)
        return tuple(
            other
            for other, state in sorted(states.items())
            if other != name and is_in_sight(self.setting, spot, state.spot(step))
        )


def _houses(state: ResidentState) -> tuple[str, ...]:
    return tuple(sorted({place.split(":")[1] for place in state.knows if ":" in place}))


def _policy(setting: Setting, is_past: bool) -> Policy:
    """Return the town's ranking. For a past step it ignores recency, because the times of recalls are not stored."""
    profile = setting.profile
    return Generative(0.0, profile.importance, profile.relevance) if is_past else policy_of(profile)


def day_lines(setting: Setting, state: ResidentState, step: int, around: int | None = None) -> tuple[str, ...]:
    """Return the plan of the step's day as lines, `HH:MM what (place)`; () if this day is not planned.

    Consecutive equal tasks are combined.

    Args:
        around: a minute of the day. A task far from this minute is replaced by its part of the day; such tasks count as
            equal even at different places. None: all tasks are shown in detail.
    """
    if state.day != setting.day(max(step, 0)):
        return ()
    lines: list[str] = []
    before = ""
    for block in state.blocks:
        whole = around is None or block.start - BESIDE <= around < block.end + BESIDE
        what = block.what if whole else block.what.partition(" (")[0]
        said = f"{what} ({words_of(block.place)})" if block.place else what
        told = said if whole else what
        if told != before:
            lines.append(f"{block.start // 60 % 24:02d}:{block.start % 60:02d} {said}")
        before = told
    return tuple(lines)


def is_source(memory: str, answer: str, names: Collection[str] = ()) -> bool:
    """Return whether an answer uses a memory.

    One sentence of the memory must share at least two words with the answer. Of the sentence's words that are not
    names, the answer must contain at least one and at least the share SHARE.

    Args:
        names: stemmed words of names. They count among the two words, but not for SHARE.
    """
    said = set(terms(answer))
    told = (set(terms(sentence)) for sentence in sentences(memory))
    return any(
        len(words & said) > 1 and len((words & said).difference(names)) >= max(1, SHARE * len(words.difference(names)))
        for words in told
    )


@asynccontextmanager
async def open_interview(
    source: Source, step: int | None = None, *, models: AnyModels = "rules", embed: Embedder | str = "wordllama"
) -> AsyncIterator[Interviewer]:
    """Open a town to interview its residents as of a step; None: the last one.

    Raises:
        InputError: there is no town, or it has not reached this step.
    """
    async with open_store(source) as store:
        setting = await read_setting(store)
        now = await read_town(store, setting.profile)
        if step is not None and not 0 <= step <= now.step:
            why = f"has run up to step {now.step}: choose a step from 0 to {now.step}, not {step}"
            raise InputError(f"the town {why if now.step >= 0 else 'has not run yet'}")
        town = now if step is None else await read_town(store, setting.profile, upto=step)
        async with open_models(models) as shared:
            recaller = recaller_of(store, embedder(embed) if isinstance(embed, str) else embed)
            at = now.step if step is None else step
            yield Interviewer(setting, town, recaller, _policy(setting, at < now.step), shared, at)


async def interview(
    source: Source,
    name: str,
    question: str,
    step: int | None = None,
    condition: Condition = "full",
    *,
    models: AnyModels = "rules",
) -> Interview:
    """Ask a resident one question (see `Interviewer.ask`)."""
    async with open_interview(source, step, models=models) as interviewer:
        return await interviewer.ask(name, question, condition)
