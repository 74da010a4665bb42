"""A typed question whose answer is a probability: yes or no, one of several, a score on a scale.

    class IsUrgent(YesNo, Question):                      # is_urgent.md lies beside this module
        '''Does this message want an answer today?'''
        message: str

    likely = await decide(model, IsUrgent(message=text))
    if likely["yes"] > 0.7: ...

A rule gives the probabilities itself, and so does a decision endpoint. A chat model is asked for one token, and how
probable each answer is as that token is what counts; where it tells none, its answer in words counts for all.
"""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from mindstream.errors import ReplyInvalid
from mindstream.models.ask import ask
from mindstream.models.calibration import coin
from mindstream.models.fence import fenced, indented
from mindstream.models.model import Distribution, JsonSchema, Logprobs, Message, Model, Piece, Request
from mindstream.models.prompt import Prompt
from mindstream.models.providers.thoughts import without_thoughts
from mindstream.models.reply import legible_parts

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
COVERED = 0.02
"""So much of the first token's probability stands for one of the answers at least; else the model was not deciding."""
LEAST = 1e-6
"""The probability of an answer of which nothing is said."""
Basis = Literal["distribution", "logprobs", "words"]


class Question(Prompt[str]):
    """A prompt with a set of answers; the reply in words is one of them.

    Its words ask the question in `# system` and give what it is about in `# user`; how to answer is added.
    """

    reply_tokens: ClassVar[int] = 40

    @abstractmethod
    def answers(self) -> tuple[str, ...]:
        """Return the answers, at least two and at most 26."""

    def marks(self) -> tuple[str, ...]:
        """Return what the model writes for each answer: letters, unless the answers are short words."""
        return tuple(LETTERS[: len(self.answers())])

    def reply_schema(self) -> JsonSchema:
        return {"type": "string", "enum": list(self.answers())}

    def asked(self, words: str | None = None) -> tuple[str, str]:
        """Return the question and what it is about, without how to answer: what a decision endpoint is told."""
        messages = super().messages(words)
        parts = [[each.text for each in messages if (each.role == "system") is system] for system in (True, False)]
        return "\n\n".join(parts[0]), "\n\n".join(parts[1])

    def messages(self, words: str | None = None) -> tuple[Message, ...]:
        *before, last = super().messages(words)
        return (*before, replace(last, text=f"{last.text}\n\n{self._how_to_answer()}"))

    def parse(self, text: str) -> str:
        """Read an answer in words: an answer or its mark, and nothing else.

        Raises:
            ReplyInvalid: it is anything else.
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
        return f"{fenced(chr(10).join(listed), 'answers')}\n{self._how()}"

    def _how(self) -> str:
        kind = "letter" if self.answers() != self.marks() else "word"
        return f"Answer with one {kind}: {' or '.join(self.marks())}."


@dataclass(frozen=True, slots=True)
class Probabilities:
    """How probable each answer is; they sum to 1.

    Attributes:
        weights: the answers in their order.
        basis: what said so: a `distribution` (of a rule, a decision endpoint), the `logprobs` of one token, or `words`,
            which are as sure as they sound: 1 for the answer that was given.
        covered: how much of the token's probability stood for one of the answers at all.
    """

    weights: tuple[tuple[str, float], ...]
    basis: Basis
    covered: float = 1.0

    def __getitem__(self, answer: str) -> float:
        return dict(self.weights)[answer]

    def __iter__(self) -> Iterator[str]:
        return (answer for answer, _ in self.weights)

    def without(self, prior: Probabilities) -> Probabilities:
        """Return what is left when a model's leanings are taken out: its answers about nothing (Zhao 2021).

        Small models lean to one answer whatever the text says; ask them once about "N/A", and take that out.
        """
        divided = {answer: p / prior[answer] for answer, p in self.weights}
        return replace(self, weights=_normalised(tuple(self), divided, self.basis).weights)

    @property
    def best(self) -> str:
        """The likeliest answer; of equals the first."""
        return max(self.weights, key=lambda weight: weight[1])[0]

    @property
    def expected(self) -> float:
        """Where on the scale the answer lies, the first answer being 0."""
        return sum(place * p for place, (_, p) in enumerate(self.weights))


def tossed(question: Question) -> dict[str, float]:
    """Answer without a model where nobody else has read the text: a coin, see calibration."""
    return coin(question.answers())


async def decide(model: Model, question: Question, role: str = "") -> Probabilities:
    """Return how probable each answer is; mostly one forward pass, and no text.

    Raises:
        ModelError: the model cannot be had, or never gives one of the answers.
    """
    answers = question.answers()
    said: list[str] = []
    given: dict[str, float] | None = None
    first: Logprobs | None = None
    async with aclosing(legible_parts(model.reply(Request(question, role or question.role, options=answers)))) as parts:
        async for part in parts:
            if isinstance(part, Distribution):
                given = dict(part.weights)
            elif isinstance(part, Logprobs):
                first = part
            elif isinstance(part, Piece):
                said.append(part.text)
    if given is not None:
        return _normalised(answers, given, "distribution")
    if first is not None:
        weights = weigh(first, answers, question.marks())
        if sum(weights) >= COVERED:
            return _normalised(answers, dict(zip(answers, weights, strict=True)), "logprobs")
    try:
        answer = question.parse("".join(said))
    except ReplyInvalid:
        answer = await ask(model, question, role)
    return _normalised(answers, {answer: 1.0}, "words")


def weigh(first: Logprobs, answers: Sequence[str], marks: Sequence[str]) -> list[float]:
    """Return how much of the first token's probability stands for each answer.

    A token counts for the one answer that it is, or begins: by its mark, or by its word.
    """
    weights = [0.0] * len(answers)
    for token, logprob in first.first:
        if (place := _meant(token, answers, marks)) is not None:
            weights[place] += math.exp(min(0.0, logprob))
    return weights


def _meant(token: str, answers: Sequence[str], marks: Sequence[str]) -> int | None:
    text = token.strip(" \t\n\"'`*▁Ġ(")
    bare = re.sub(r"[.:),*\"'`\s]+$", "", text)
    for place, mark in enumerate(marks):
        if bare == mark:
            return place
    begun = bare.casefold()
    if len(begun) < 2 and any(len(mark) == 1 for mark in marks):  # a small letter may begin any word
        return None
    found = [place for place, answer in enumerate(answers) if begun and answer.casefold().startswith(begun)]
    return found[0] if len(found) == 1 else None


def _normalised(answers: Sequence[str], weights: dict[str, float], basis: Basis) -> Probabilities:
    """Make weights sum to 1 over the answers.

    Raises:
        ReplyInvalid: there are none of these answers, or they are no probabilities.
    """
    found = [weights.get(answer, 0.0) for answer in answers]
    total = sum(found)
    if not math.isfinite(total) or total <= 0 or min(found) < 0:
        raise ReplyInvalid(f"the probabilities {weights} are none of the answers {', '.join(answers)}")
    shares = [max(p / total, LEAST) for p in found]
    whole = sum(shares)
    pairs = tuple((answer, share / whole) for answer, share in zip(answers, shares, strict=True))
    return Probabilities(pairs, basis, total if basis == "logprobs" else 1.0)
