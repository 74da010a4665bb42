"""What is asked of whom, who answers in which condition, and the facts that an answer is measured against."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mindstream.town.evaluation.questions import Question
from mindstream.town.prompts.answer_interview import AnswerInterview
from mindstream.town.residents.interview import Interviewer

OF_ANSWER = 8
"""So many memories that an answer itself brings up are shown, beside those that the question does."""


@dataclass(frozen=True)
class Item:
    """A question to somebody, filled for it."""

    resident: str
    question: Question

    @property
    def key(self) -> tuple[str, str]:
        """Who is asked what."""
        return self.resident, self.question.id


@dataclass(frozen=True)
class Answer:
    """What was answered to an item.

    Attributes:
        condition: of the memory; `person`: by a person; `shuffled`: by another resident.
        key: stands for all that was asked.
    """

    item: Item
    condition: str
    text: str
    key: str


@dataclass(frozen=True)
class Facts:
    """What is known of somebody at that moment, a line each."""

    when: str
    lines: tuple[str, ...]


async def gather_facts(interviewer: Interviewer, item: Item, answers: Iterable[str]) -> Facts:
    """Return the facts for judging answers: all that the whole memory gives on the question, and on what they say.

    They do not depend on the order of the answers.
    """
    prompt, found = await interviewer.prepare(item.resident, item.question.text)
    shown = {each.record.id for each in found}
    more: dict[str, str] = {}
    for said in answers:
        if not said.strip():
            continue
        asked, records = await interviewer.prepare(item.resident, said)
        new = [each for each in zip(records, asked.memories, strict=True) if each[0].record.id not in shown]
        more |= {each.record.id: words for each, words in new[:OF_ANSWER]}
    return Facts(prompt.when, (*_lines(prompt), *(f"Remembers: {more[id_]}" for id_ in sorted(more))))


def _lines(prompt: AnswerInterview) -> tuple[str, ...]:
    now = f"Now: {prompt.doing}" + (f", in {prompt.place}" if prompt.place else "") if prompt.doing else ""
    return (
        *prompt.identity.splitlines(),
        *([f"Lives in {prompt.home}."] if prompt.home else []),
        *([now] if now else []),
        *([f"In sight: {', '.join(prompt.near)}"] if prompt.near else []),
        *(f"Was planned for today: {each}" for each in prompt.day[: prompt.begun]),
        *(f"Planned for later today: {each}" for each in prompt.day[prompt.begun :]),
        *([f"Knows these places: {', '.join(prompt.places)}"] if prompt.places else []),
        *(f"Remembers: {each}" for each in prompt.memories if each not in prompt.identity),
    )
