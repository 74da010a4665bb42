"""Typed questions that are answered with probabilities: yes or no, one of several, a score on a scale.

    class IsUrgent(YesNo, Question):          # its prompt text is is_urgent.md, next to the module of the class
        '''Does this message want an answer today?'''
        message: str

    likely = await decide(model, IsUrgent(message=text))
    if likely["yes"] > 0.7: ...

A rule or a decision endpoint returns the probabilities itself. A chat model is asked for a single token, and the
log-probabilities of that token give the probability of each answer. If the model reports no log-probabilities, or if
these hardly cover the answers (MIN_COVERED), the model's answer in text gets the probability 1.

`brier_score`, `calibration_error` and `accuracy` measure how good predicted probabilities are, given the right answers.
"""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, cast

from pydantic import Field

from mindstream.errors import ReplyInvalid
from mindstream.frozen import Frozen
from mindstream.models.model import Distribution, JsonSchema, Logprobs, Message, Model, Piece, Request
from mindstream.models.prompt import Prompt, ask, rule
from mindstream.models.reply import LegiblePieces, without_thoughts
from mindstream.models.rules import Rules
from mindstream.models.untrusted import delimited, indented

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
MIN_COVERED = 0.02
"""Minimum total probability that the first token gives to the answers; below it, the reply's text is read instead."""
MIN_PROBABILITY = 1e-6
"""Minimum probability of an answer, even if the model does not mention it."""
Basis = Literal["distribution", "logprobs", "words"]


class Question(Prompt[str]):
    """A prompt with a fixed set of answers; a reply in text must be one of them, or its mark.

    The template's `# system` part asks the question, its `# user` part holds the subject; `messages` adds instructions
    on the form of the answer.
    """

    reply_tokens: ClassVar[int] = 40

    @abstractmethod
    def answers(self) -> tuple[str, ...]:
        """Return the answers, at least two and at most 26."""

    def marks(self) -> tuple[str, ...]:
        """Return the text that the model writes for each answer: a letter, unless a subclass returns short words."""
        return tuple(LETTERS[: len(self.answers())])

    def reply_schema(self) -> JsonSchema:
        return {"type": "string", "enum": list(self.answers())}

    def asked(self, words: str | None = None) -> tuple[str, str]:
        """Return two parts of the prompt: the system part (the question) and the user part (its subject). The
        instructions on the form of the answer are left out, because a decision endpoint does not need them."""
        messages = super().messages(words)
        parts = [[each.text for each in messages if (each.role == "system") is system] for system in (True, False)]
        return "\n\n".join(parts[0]), "\n\n".join(parts[1])

    def messages(self, words: str | None = None) -> tuple[Message, ...]:
        *before, last = super().messages(words)
        return (*before, replace(last, text=f"{last.text}\n\n{self._how_to_answer()}"))

    def parse(self, text: str) -> str:
        """Return the answer that a text states.

        The text must be one of the answers, its mark, or both (`A: answer`). The model's thoughts are ignored, and so
        are quotation marks and similar signs around the answer.

        Raises:
            ReplyInvalid: the text is anything else.
        """
        said = without_thoughts(text).strip(" \t\n\"'`*.()[]").casefold()
        for answer, mark in zip(self.answers(), self.marks(), strict=True):
            if said in (answer.casefold(), mark.casefold(), f"{mark}: {answer}".casefold()):
                return answer
        raise ReplyInvalid(f"That is none of the answers. {self._how()}")

    def _how_to_answer(self) -> str:
        answers, marks = self.answers(), self.marks()
        if answers == marks:
            return self._how()
        listed = (f"{mark}: {indented(answer)}" for mark, answer in zip(marks, answers, strict=True))
        return f"{delimited(chr(10).join(listed), 'answers')}\n{self._how()}"

    def _how(self) -> str:
        kind = "letter" if self.answers() != self.marks() else "word"
        return f"Answer with one {kind}: {' or '.join(self.marks())}."


YES_NO = ("yes", "no")


class YesNo:
    """Mixin for yes-no questions: `class IsUrgent(YesNo, Question)`."""

    def answers(self) -> tuple[str, ...]:
        return YES_NO

    def marks(self) -> tuple[str, ...]:
        return YES_NO


class Predicate(YesNo, Question):
    """Is a statement about some text true?"""

    text: str
    question: str


class Choice(Question):
    """Which of several answers fits a text best?"""

    text: str
    question: str
    options: tuple[str, ...] = Field(min_length=2, max_length=len(LETTERS))

    def answers(self) -> tuple[str, ...]:
        return self.options


class Score(Question):
    """Which level of a scale, the lowest first, fits a text best?"""

    text: str
    question: str
    levels: tuple[str, ...] = Field(min_length=2, max_length=len(LETTERS))

    def answers(self) -> tuple[str, ...]:
        return self.levels


@dataclass(frozen=True, slots=True)
class Probabilities:
    """The probabilities of the answers; their sum is 1.

    Attributes:
        weights: the answers in their order, each with its probability.
        basis: the source of the probabilities. `distribution`: a rule or a decision endpoint; `logprobs`: the
            log-probabilities of one token; `words`: an answer in text, which has the probability 1.
        covered: total probability that the first token gave to the answers; 1 unless the basis is `logprobs`.
    """

    weights: tuple[tuple[str, float], ...]
    basis: Basis
    covered: float = 1.0

    def __getitem__(self, answer: str) -> float:
        return dict(self.weights)[answer]

    def __iter__(self) -> Iterator[str]:
        return (answer for answer, _ in self.weights)

    def without(self, prior: Probabilities) -> Probabilities:
        """Return the probabilities without a model's bias, measured by its answers to an empty subject (Zhao 2021).

        Small models prefer one answer for every text. Ask the model once about "N/A", and pass the result as `prior`.
        """
        divided = {answer: p / prior[answer] for answer, p in self.weights}
        return replace(self, weights=_normalised(tuple(self), divided, self.basis).weights)

    @property
    def best(self) -> str:
        """The likeliest answer; the first one if several are equally likely."""
        return max(self.weights, key=lambda weight: weight[1])[0]

    @property
    def expected(self) -> float:
        """The expected position on the scale; the first answer is 0."""
        return sum(place * p for place, (_, p) in enumerate(self.weights))


async def decide(model: Model, question: Question, role: str = "") -> Probabilities:
    """Return the probability of each answer, usually from a single token of the model.

    Raises:
        ModelError: the model is unavailable, or its reply is none of the answers.
    """
    answers = question.answers()
    if type(model) is Rules:
        return _normalised(answers, model.answer(cast("Prompt[dict[str, float]]", question)), "distribution")
    text, legible, given, first = list[str](), LegiblePieces(), None, None
    async with aclosing(model.reply(Request(question, role or question.role, options=answers))) as parts:
        async for part in parts:
            match part:
                case Distribution():
                    given = dict(part.weights)
                case Logprobs():
                    first = part
                case Piece():
                    text.append(legible.add(part.text))
    if given is not None:
        return _normalised(answers, given, "distribution")
    if first is not None:
        weights = weigh(first, answers, question.marks())
        if sum(weights) >= MIN_COVERED:
            return _normalised(answers, dict(zip(answers, weights, strict=True)), "logprobs")
    try:
        answer = question.parse("".join(text))
    except ReplyInvalid:
        answer = await ask(model, question, role)
    return _normalised(answers, {answer: 1.0}, "words")


def weigh(first: Logprobs, answers: Sequence[str], marks: Sequence[str]) -> list[float]:
    """Return, for each answer, the total probability of the first tokens that stand for it.

    A token stands for an answer if the token is the answer's mark, or if this answer, and no other answer, begins with
    the token. If marks are letters, a token of one letter is only compared with the marks.
    """
    weights = [0.0] * len(answers)
    for token, logprob in first.first:
        if (place := _matching_answer(token, answers, marks)) is not None:
            weights[place] += math.exp(min(0.0, logprob))
    return weights


def _matching_answer(token: str, answers: Sequence[str], marks: Sequence[str]) -> int | None:
    bare = re.sub(r"[.:),*\"'`\s]+$", "", token.strip(" \t\n\"'`*▁Ġ("))
    if bare in marks:
        return marks.index(bare)
    begun = bare.casefold()
    if len(begun) < 2 and any(len(mark) == 1 for mark in marks):  # a lower-case letter may begin any word
        return None
    found = [place for place, answer in enumerate(answers) if begun and answer.casefold().startswith(begun)]
    return found[0] if len(found) == 1 else None


def _normalised(answers: Sequence[str], weights: dict[str, float], basis: Basis) -> Probabilities:
    """Scale weights so that they sum to 1 over the answers; none becomes 0 (see MIN_PROBABILITY).

    Raises:
        ReplyInvalid: no weight is for one of these answers, or the weights are not probabilities.
    """
    found = [weights.get(answer, 0.0) for answer in answers]
    total = sum(found)
    if not math.isfinite(total) or total <= 0 or min(found) < 0:
        raise ReplyInvalid(f"expected probabilities of the answers {', '.join(answers)}, found {weights}")
    shares = [max(p / total, MIN_PROBABILITY) for p in found]
    pairs = tuple((answer, share / sum(shares)) for answer, share in zip(answers, shares, strict=True))
    return Probabilities(pairs, basis, total if basis == "logprobs" else 1.0)


@rule(Predicate)
@rule(Choice)
@rule(Score)
def tossed(question: Question) -> dict[str, float]:
    """Answer a question about a text without a model: with equal probabilities, since no rule understands the text."""
    return coin(question.answers())


Judged = tuple[Mapping[str, float], str]
"""The probabilities of the answers, and the answer that was right."""
BINS = 10
"""Number of intervals of probability in a calibration error."""


def brier_score(judged: Sequence[Judged]) -> float:
    """Return the mean squared distance of probabilities from the outcomes (Brier 1950).

    0 is perfect; equal probabilities of n answers score 1 - 1/n, and certainty about a wrong answer scores 2.
    """
    return _mean([sum((p - (answer == right)) ** 2 for answer, p in given.items()) for given, right in judged])


def calibration_error(judged: Sequence[Judged]) -> float:
    """Return the expected calibration error of the likeliest answers (Naeini 2015).

    This is the mean distance between the share of right answers and the mean probability, in bins of equal width.
    """
    gaps: dict[int, list[float]] = {}
    for given, right in judged:
        answer, p = max(given.items(), key=lambda item: item[1])
        gaps.setdefault(min(BINS - 1, int(p * BINS)), []).append(p - (answer == right))
    return sum(abs(sum(group)) for group in gaps.values()) / _count(judged)


def accuracy(judged: Sequence[Judged]) -> float:
    """Return the share of decisions whose likeliest answer was right; equally likely answers share the credit."""
    hits = []
    for given, right in judged:
        best = [answer for answer, p in given.items() if p == max(given.values())]
        hits.append((right in best) / len(best))
    return _mean(hits)


def coin(answers: Sequence[str]) -> dict[str, float]:
    """Return equal probabilities of all answers: the baseline of a measurement."""
    return dict.fromkeys(answers, 1 / len(answers))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / _count(values)


def _count(values: Sequence[object]) -> int:
    if not values:
        raise ValueError("expected at least one decision to score, found none")
    return len(values)


class Judgement(Frozen):
    """Whether an answer is right, and why."""

    why: str = Field("", max_length=2_000)
    right: bool


class JudgeAnswer(Prompt[Judgement]):
    """Is an answer right, compared with known right answers?

    Attributes:
        expected: right answers, any of which is enough. If there are none, the sources do not contain the answer, and
            a right answer says so.
        points: the content of a right answer, if the data lists it.
    """

    role: ClassVar[str] = "judge"
    reply_tokens: ClassVar[int] = 300

    question: str
    answer: str
    expected: tuple[str, ...] = ()
    points: tuple[str, ...] = ()
