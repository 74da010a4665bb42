"""Answer questions from recalled memories and under control conditions; each model reply is stored and reused."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar, TypeVar

from mindstream import chance
from mindstream.clock import SystemClock
from mindstream.errors import ReplyInvalid
from mindstream.evaluation_cache import EvaluationCache
from mindstream.models.ask import ask
from mindstream.models.decide import JudgeAnswer
from mindstream.models.model import Model, Request, estimate_tokens
from mindstream.models.prompt import Prompt, rule
from mindstream.models.recording import fingerprint
from mindstream.text.words import terms
from mindstream_evals.memory.arms import ARMS, Arm, TalkArms
from mindstream_evals.memory.forms import AskedTalk, TalkQuestion


class AnswerFromMemory(Prompt[str]):
    """What is the answer, by these lines alone?

    Attributes:
        recalled: the shown messages, in the order of the conversation.
        asked: the day on which the question is asked.
    """

    role: ClassVar[str] = "reader"
    reply_tokens: ClassVar[int] = 300

    recalled: tuple[str, ...]
    question: str
    asked: str = ""


@rule(AnswerFromMemory)
def answer_nothing(ask: AnswerFromMemory) -> str:
    """Report that answering needs a language model."""
    return f"No model reads here; {len(ask.recalled)} lines were recalled."


AT_ONCE = 8
R = TypeVar("R")
STATIC, REPLY = 170, 40
"""Approximate tokens of the prompt without the shown messages, and of a reply."""


@dataclass(frozen=True)
class GivenAnswer:
    """The answer to a question under one condition.

    Attributes:
        tokens: tokens of the shown messages; left: number of messages that were not shown.
        evidence: share of the evidence that was shown; None: the data name no evidence.
        overlap: F1 of the words of answer and expected answer; None: the data name no answer.
        right: the judge's verdict; None: no judge is set.
    """

    talk: str
    question: TalkQuestion
    arm: Arm
    answer: str
    tokens: int
    left: int
    seconds: float
    evidence: float | None
    overlap: float | None
    right: bool | None = None


@dataclass
class MemoryEvaluation:
    """An evaluation of answers from memory.

    Attributes:
        judge: the model that judges; None: only word overlap is computed.
        open_arms: opens the conditions for a conversation.
        told: called with the number of finished answers, their total, and the current activity.
        unreadable: number of replies that could not be parsed, even after a retry.
    """

    talks: Sequence[AskedTalk]
    reader: Model
    judge: Model | None
    kept: EvaluationCache
    open_arms: Callable[[AskedTalk], AbstractAsyncContextManager[TalkArms]]
    arms: Sequence[Arm] = ARMS
    told: Callable[[int, int, str], None] = lambda *_: None
    unreadable: int = 0
    _done: int = 0
    _asked: dict[str, asyncio.Lock] = field(default_factory=dict)

    async def run(self) -> list[GivenAnswer]:
        """Answer and judge all questions, conversation by conversation.

        Raises:
            ModelError: a model is not available; earlier answers are cached.
        """
        found: list[GivenAnswer] = []
        for talk in self.talks:
            async with self.open_arms(talk) as arms:
                cells = [(question, arm) for question in talk.questions for arm in self.arms]
                found += await self._each(cells, arms)
        return found

    async def _each(self, cells: Sequence[tuple[TalkQuestion, Arm]], arms: TalkArms) -> list[GivenAnswer]:
        turn, total = asyncio.Semaphore(AT_ONCE), len(self.arms) * sum(len(talk.questions) for talk in self.talks)

        async def one(question: TalkQuestion, arm: Arm) -> GivenAnswer | None:
            async with turn:
                answered = await self._answer(arms, question, arm)
            self._done += 1
            self.told(self._done, total, "answering")
            return answered

        tasks = [asyncio.ensure_future(one(*cell)) for cell in cells]
        try:
            return [each for each in await asyncio.gather(*tasks) if each is not None]
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _answer(self, arms: TalkArms, question: TalkQuestion, arm: Arm) -> GivenAnswer | None:
        shown, began = await arms.show(question, arm), SystemClock().elapsed()
        asked = _day(arms.talk.ends if question.at is None else question.at)
        prompt = AnswerFromMemory(recalled=shown.lines, question=question.text, asked=asked)
        where = {"talk": arms.talk.id, "question": question.id, "type": question.type, "arm": arm}
        evidence = shown.share_of(question.evidence)
        told = {
            "asked": question.text,
            "expected": question.expected,
            "shown": [each.id for each in shown.messages],
            "tokens": shown.tokens,
            "evidence": evidence,
        }

        async def answer() -> dict[str, Any]:
            reply = await ask(self.reader, prompt)
            return {
                "row": "answer",
                **where,
                **told,
                "seconds": round(SystemClock().elapsed() - began, 3),
                "reply": reply,
            }

        row = await self._once(self.reader, prompt, answer)
        if row is None:
            return None
        said = str(row["reply"])
        return GivenAnswer(
            arms.talk.id,
            question,
            arm,
            said,
            shown.tokens,
            shown.left,
            float(row["seconds"]),
            evidence,
            word_overlap(said, question.expected) if question.expected else None,
            await self._judge(question, said, where),
        )

    async def _judge(self, question: TalkQuestion, said: str, where: dict[str, Any]) -> bool | None:
        judge = self.judge
        if judge is None:
            return None
        prompt = JudgeAnswer(
            question=question.text,
            answer=said,
            expected=(question.expected,) if question.expected else (),
            points=question.points,
        )

        async def grade() -> dict[str, Any]:
            found = await ask(judge, prompt)
            return {"row": "judgement", **where, **found.model_dump()}

        row = await self._once(judge, prompt, grade)
        return None if row is None else bool(row["right"])

    async def _once(
        self, model: Model, prompt: Prompt[Any], do: Callable[[], Awaitable[dict[str, Any]]]
    ) -> dict[str, Any] | None:
        key = fingerprint(Request(prompt, prompt.role), model.name)
        async with self._asked.setdefault(key, asyncio.Lock()):  # two arms may show the same messages
            found = self.kept.find(key)
            if found is None:
                try:
                    found = await do() | {"model": model.name}
                except ReplyInvalid:
                    self.unreadable += 1
                    return None
                self.kept.keep(key, found)
        return found


def word_overlap(said: str, expected: str) -> float:
    """Return F1 of the words of an answer and the expected answer, as LoCoMo scores answers."""
    one, other = terms(said), terms(expected)
    common = sum(min(one.count(word), other.count(word)) for word in set(one))
    return 2 * common / (len(one) + len(other)) if common else 0.0


def draw_questions(talks: Sequence[AskedTalk], n: int, seed: int, types: Iterable[str] = ()) -> list[tuple[str, str]]:
    """Draw n questions, balanced over types, by keyed random numbers; return (conversation, id); n = 0: all of them."""
    wanted = set(types)
    by_type: dict[str, list[tuple[str, str]]] = {}
    for talk in talks:
        for each in talk.questions:
            if not wanted or each.type in wanted:
                by_type.setdefault(each.type, []).append((talk.id, each.id))
    if not n:
        return [each for some in by_type.values() for each in some]
    mixed = [chance.sample(some, len(some), seed, kind) for kind, some in sorted(by_type.items())]
    return list(_in_turns(mixed))[:n]


def _in_turns(rows: Sequence[Sequence[tuple[str, str]]]) -> Iterator[tuple[str, str]]:
    for place in range(max(map(len, rows), default=0)):
        yield from (row[place] for row in rows if place < len(row))


@dataclass(frozen=True)
class AtMost:
    """Upper limits of the calls and tokens of an evaluation that has no stored answers."""

    calls: int
    tokens_in: int
    tokens_out: int


def count_at_most(
    talks: Sequence[AskedTalk], arms: Sequence[Arm], tokens: int, whole_tokens: int
) -> tuple[AtMost, AtMost]:
    """Return the upper limits for the reader and for the judge."""
    questions = [(talk, question) for talk in talks for question in talk.questions]
    whole = {
        talk.id: min(whole_tokens, sum(20 + estimate_tokens(each.text) for each in talk.messages)) for talk in talks
    }
    shown = sum(whole[talk.id] if arm == "whole" else tokens for talk, _ in questions for arm in arms)
    judged = sum(estimate_tokens(" ".join((each.text, each.expected, *each.points))) for _, each in questions)
    calls = len(arms) * len(questions)
    return (
        AtMost(calls, shown + STATIC * calls, REPLY * calls),
        AtMost(calls, len(arms) * judged + (STATIC + REPLY) * calls, REPLY * calls),
    )


def _day(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d (%a)")
