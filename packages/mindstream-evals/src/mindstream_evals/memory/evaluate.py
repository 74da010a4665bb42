"""Answer questions from recalled memories and under control conditions; each model reply is stored and reused.

The conditions are what a reader sees from recall, from BM25 alone, or from the whole conversation, within a token
budget.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import fmean, median
from typing import Any, Literal

import numpy as np

from mindstream import chance
from mindstream.clock import ManualClock
from mindstream.memory.memory import Memory
from mindstream.memory.recall.rerank import SecondStage
from mindstream.memory.store.record import RecordDraft, fitted_text
from mindstream.models.cached_prompts import CachedPrompts
from mindstream.models.decide import JudgeAnswer
from mindstream.models.embedders.embedder import Embedder
from mindstream.models.model import estimate_tokens
from mindstream.models.prompt import Prompt, rule
from mindstream.significance import wilson
from mindstream.text.lexical import Lexical
from mindstream.text.words import terms
from mindstream_evals.memory.forms import AskedTalk, TalkMessage, TalkQuestion

Arm = Literal["memory", "bm25", "whole"]
ARMS: tuple[Arm, ...] = ("memory", "bm25", "whole")
BEST = 100
"""Maximum number of messages that are ranked; the best that fit into the token limit are shown."""


@dataclass(frozen=True, slots=True)
class ShownLines:
    """The messages that a reader sees, in the order of the conversation; `left`: the number of messages left
    out."""

    messages: tuple[TalkMessage, ...]
    tokens: int
    left: int

    @property
    def lines(self) -> tuple[str, ...]:
        """The messages as text."""
        return tuple(map(line_of, self.messages))

    def share_of(self, evidence: frozenset[str]) -> float | None:
        """Return the share of the evidence that is shown; None: there is no evidence."""
        there = {each.id for each in self.messages} | {each.session for each in self.messages}
        return len(evidence & there) / len(evidence) if evidence else None


@dataclass
class TalkArms:
    """Selects the messages of one conversation that the answering model is shown in each condition (arm).

    They have at most `tokens` tokens; in the arm `whole`, at most `whole_tokens`.
    """

    talk: AskedTalk
    memory: Memory
    tokens: int
    whole_tokens: int

    def __post_init__(self) -> None:
        self._index = Lexical()
        for each in self.talk.messages:
            self._index.add(terms(f"{each.by}: {each.text}"))
        self._by_id = {each.id: each for each in self.talk.messages}

    async def show(self, question: TalkQuestion, arm: Arm) -> ShownLines:
        """Return the messages that the model is shown with a question:

        - arm `whole`: the newest messages;
        - arm `memory`: the messages that the memory recalls;
        - any other arm: the messages that share words with the question.
        """
        if arm == "whole":
            return self._fit(self._newest(), self.whole_tokens)
        ranked = await self._recalled(question) if arm == "memory" else self._by_words(question)
        return self._fit(ranked, self.tokens)

    def _newest(self) -> list[TalkMessage]:
        """Return the newest messages that fit into `whole_tokens`, without gaps, the newest first."""
        kept, tokens = list[TalkMessage](), 0
        for each in reversed(self.talk.messages):
            tokens += estimate_tokens(line_of(each))
            if tokens > self.whole_tokens:
                break
            kept.append(each)
        return kept

    async def _recalled(self, question: TalkQuestion) -> list[TalkMessage]:
        found = await self.memory.recall(question.text, BEST, kinds=["chat"], touch=False)
        return [self._by_id[str(each.record.data["message"])] for each in found]

    def _by_words(self, question: TalkQuestion) -> list[TalkMessage]:
        scores = self._index.scores(terms(question.text))
        best = np.argsort(-scores, kind="stable")[:BEST]
        return [self.talk.messages[at] for at in best if scores[at] > 0]

    def _fit(self, ranked: Sequence[TalkMessage], most: int) -> ShownLines:
        """Select the messages that fit into `most` tokens, best first, and return them in the order of the
        conversation."""
        kept, tokens = list[TalkMessage](), 0
        for each in ranked:
            size = estimate_tokens(line_of(each))
            if tokens + size <= most:
                kept.append(each)
                tokens += size
        place = {each.id: at for at, each in enumerate(self.talk.messages)}
        ordered = tuple(sorted(kept, key=lambda each: place[each.id]))
        return ShownLines(ordered, tokens, len(self.talk.messages) - len(ordered))


@asynccontextmanager
async def open_arms(
    talk: AskedTalk, embedder: Embedder, tokens: int, whole_tokens: int, second: SecondStage | None = None
) -> AsyncIterator[TalkArms]:
    """Write a conversation into a temporary memory, and yield its `TalkArms`, which explains `tokens` and
    `whole_tokens`. Writing calls no language model."""
    asked = [question.at for question in talk.questions if question.at is not None]
    clock = ManualClock(max([talk.ends, *asked]) + 60)
    with tempfile.TemporaryDirectory() as folder:
        async with Memory.open(Path(folder), "talk", embed=embedder, clock=clock, seed=1) as memory:
            memory.second = second
            await memory.retain_all([_draft(each) for each in talk.messages if each.text.strip()])
            yield TalkArms(talk, memory, tokens, whole_tokens)


def _draft(said: TalkMessage) -> RecordDraft:
    by_user = {} if said.by_user is None else {"by_user": said.by_user}
    return RecordDraft(
        text=fitted_text(said.text),
        kind="chat",
        by=said.by,
        episode=said.session,
        created=said.at,
        data={"message": said.id, **by_user},
    )


def line_of(said: TalkMessage) -> str:
    """Return a message as a line for the model that answers the question."""
    day = datetime.fromtimestamp(said.at, UTC).strftime("%Y-%m-%d (%a)")
    return f"{day} {said.by}: {' '.join(said.text.split())}"


class AnswerFromMemory(Prompt[str]):
    """What is the answer, by these lines alone?

    Attributes:
        recalled: the shown messages, in the order of the conversation.
        asked: the day on which the question is asked.
    """

    role = "reader"
    reply_tokens = 300

    recalled: tuple[str, ...]
    question: str
    asked: str = ""


@rule(AnswerFromMemory)
def answer_nothing(ask: AnswerFromMemory) -> str:
    """Report that answering needs a language model."""
    return f"No model reads here; {len(ask.recalled)} lines were recalled."


STATIC, REPLY = 170, 40
"""Approximate tokens of the prompt without the shown messages, and of a reply."""


@dataclass(frozen=True)
class GivenAnswer:
    """The answer to a question under one condition.

    Attributes:
        tokens: tokens of the shown messages; left: number of messages that were not shown.
        evidence: share of the evidence that was shown; None: the data name no evidence.
        overlap: F1 of the words of answer and expected answer; None: the data name no answer.
        right: the judge's verdict; None: no judge is set, or its reply cannot be parsed.
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
        asked: sends each prompt once (roles `reader` and `judge`) and stores the reply.
        open_arms: opens the conditions for a conversation.
        has_judge: whether a model judges; else only word overlap is computed.
    """

    talks: Sequence[AskedTalk]
    asked: CachedPrompts
    open_arms: Callable[[AskedTalk], AbstractAsyncContextManager[TalkArms]]
    arms: Sequence[Arm] = ARMS
    has_judge: bool = False

    async def run(self) -> list[GivenAnswer]:
        """Answer and judge all questions, conversation by conversation. Questions whose reply is empty are left out.

        Raises:
            ModelError: a model is not available; earlier answers are cached.
        """
        found: list[GivenAnswer] = []
        for talk in self.talks:
            async with self.open_arms(talk) as arms:
                cells = [(question, arm) for question in talk.questions for arm in self.arms]
                found += await self.asked.each(f"answering {talk.id}", cells, partial(self._answer, arms))
        return found

    async def _answer(self, arms: TalkArms, cell: tuple[TalkQuestion, Arm]) -> GivenAnswer | None:
        question, arm = cell
        shown = await arms.show(question, arm)
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
        kept = await self.asked.kept(prompt, {"row": "answer", **where, **told})
        if kept is None:
            return None
        return GivenAnswer(
            arms.talk.id,
            question,
            arm,
            kept.reply,
            shown.tokens,
            shown.left,
            kept.seconds,
            evidence,
            word_overlap(kept.reply, question.expected) if question.expected else None,
            await self._judge(question, kept.reply, where) if self.has_judge else None,
        )

    async def _judge(self, question: TalkQuestion, said: str, where: dict[str, Any]) -> bool | None:
        prompt = JudgeAnswer(
            question=question.text,
            answer=said,
            expected=(question.expected,) if question.expected else (),
            points=question.points,
        )
        kept = await self.asked.kept(prompt, {"row": "judgement", **where})
        return kept and kept.reply.right


def word_overlap(said: str, expected: str) -> float:
    """Return F1 of the words of an answer and the expected answer, as LoCoMo scores answers; 0 if they share no
    word."""
    one, other = terms(said), terms(expected)
    common = sum(min(one.count(word), other.count(word)) for word in set(one))
    return 2 * common / (len(one) + len(other)) if common else 0.0


def draw_questions(talks: Sequence[AskedTalk], n: int, seed: int, types: Iterable[str] = ()) -> list[tuple[str, str]]:
    """Draw n questions, balanced over types. Return pairs of a conversation's id and a question's id.

    Args:
        n: 0: all questions are returned.
        seed: determines the draw.
        types: the types to draw from; (): all types.
    """
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
    """Return the upper limits of calls and tokens, for the reader and for the judge."""
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


@dataclass(frozen=True)
class ArmStanding:
    """The result of one condition, for all questions or for those of one type.

    Attributes:
        type: the type of the questions; "": all types.
        right, judged: number of right answers, and of judged answers.
        low, high: ends of Wilson's 95 % interval.
        overlap: mean F1 of the words of answer and expected answer. evidence: mean share of the evidence that was
            shown. Both are means over the questions for which the data name an answer or evidence.
        tokens: mean tokens of the shown messages. seconds: median time of an answer.
        left: share of the answers that were given without the whole conversation.
    """

    arm: Arm
    type: str
    answered: int
    judged: int
    right: int
    low: float
    high: float
    overlap: float | None
    evidence: float | None
    tokens: float
    seconds: float
    left: float

    @property
    def accuracy(self) -> float | None:
        """Share of right answers; None: no answer was judged."""
        return self.right / self.judged if self.judged else None


def report(answers: Sequence[GivenAnswer]) -> list[ArmStanding]:
    """Return the result of each condition for all questions.

    If there are questions of several types, also return the results for the questions of each type.
    """
    types = ["", *sorted({each.question.type for each in answers})]
    arms = list(dict.fromkeys(each.arm for each in answers))
    found = []
    for kind in types if len(types) > 2 else types[:1]:
        for arm in arms:
            some = [each for each in answers if each.arm == arm and kind in ("", each.question.type)]
            if some:
                found.append(_standing(arm, kind, some))
    return found


def _standing(arm: Arm, kind: str, some: Sequence[GivenAnswer]) -> ArmStanding:
    judged = [each.right for each in some if each.right is not None]
    low, high = wilson(sum(judged), len(judged))
    return ArmStanding(
        arm,
        kind,
        len(some),
        len(judged),
        sum(judged),
        low,
        high,
        _mean([each.overlap for each in some]),
        _mean([each.evidence for each in some]),
        fmean(each.tokens for each in some),
        median(each.seconds for each in some),
        sum(each.left > 0 for each in some) / len(some),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    there = [each for each in values if each is not None]
    return fmean(there) if there else None
