"""Evaluate answers from memory with the models of a user's settings; answers are stored next to the question file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from mindstream.errors import InputError
from mindstream.evaluation_cache import EvaluationCache
from mindstream.memory.policy import read_policy
from mindstream.memory.recall.rerank import second_stage
from mindstream.models.cached_prompts import CachedPrompts, Progress
from mindstream.models.embedders.embedder import embedder
from mindstream.models.providers.adapter import price
from mindstream.models.providers.address import Address
from mindstream.models.rules import Rules
from mindstream.models.wrappers.meter import Metered
from mindstream.service.memory import policy_given
from mindstream.service.opening import answering
from mindstream.settings import Settings
from mindstream_evals.memory.evaluate import (
    ARMS,
    Arm,
    ArmStanding,
    AtMost,
    MemoryEvaluation,
    count_at_most,
    draw_questions,
    open_arms,
    report,
)
from mindstream_evals.memory.forms import AskedTalk, draw, read_talks


@dataclass
class Spent:
    """Calls, tokens and cost of an evaluation. `usd` None: a price is unknown."""

    calls: int = 0
    tokens: int = 0
    usd: float | None = 0.0

    def add(self, other: Spent) -> None:
        """Add the calls, tokens and cost of another counter; the cost becomes None if either cost is unknown."""
        self.calls, self.tokens = self.calls + other.calls, self.tokens + other.tokens
        self.usd = None if self.usd is None or other.usd is None else self.usd + other.usd

    def rest(self, settings: Settings) -> Settings:
        """Return the settings with the budget that remains after this use."""
        calls, tokens, usd = settings.budget_calls, settings.budget_tokens, settings.budget_usd
        return settings.model_copy(
            update={
                "budget_calls": calls and max(0, calls - self.calls),
                "budget_tokens": tokens and max(0, tokens - self.tokens),
                "budget_usd": usd and max(0.0, usd - (self.usd or 0.0)),
            }
        )

    def take(self, call: Metered) -> None:
        """Count one model call."""
        self.calls += 1
        if call.usage is not None:
            self.tokens += call.usage.input_tokens + call.usage.output_tokens
            cost = call.usage.cost_usd
            self.usd = None if self.usd is None or cost is None else self.usd + cost


READER, JUDGE = "reader", "judge"
OWN = ("gguf", "local", "ollama")
"""Providers of local models, which cost nothing."""


@dataclass(frozen=True)
class MemoryWish:
    """The options of an evaluation.

    Attributes:
        file: conversations with questions.
        out: file of the answers and verdicts; None: next to `file`.
        tokens: token limit of messages found by memory or BM25.
        whole_tokens: token limit of the whole conversation.
        questions: number of questions, drawn equally from all types; 0: all.
        types: only questions of these types; empty: all types.
    """

    file: Path
    tokens: int
    whole_tokens: int
    arms: tuple[Arm, ...] = ARMS
    questions: int = 0
    types: tuple[str, ...] = ()
    seed: int = 0
    out: Path | None = None

    @property
    def kept_in(self) -> Path:
        """The file of answers and verdicts."""
        return self.out or self.file.resolve().with_suffix(".answers.jsonl")


@dataclass(frozen=True)
class MemoryEvaluated:
    """The result. `unreadable`: number of replies that could not be parsed."""

    form: str
    talks: int
    questions: int
    reader: str
    judge: str
    standings: Sequence[ArmStanding]
    unreadable: int
    spent: Spent


def with_reader(settings: Settings, reader: str, judge: str) -> Settings:
    """Return settings with these models for the roles `reader` and `judge`; "": the role is unchanged.

    If the settings name no default model, the default becomes `reader`, or the rules if `reader` is "".
    """
    roles = {**settings.roles, **({READER: reader} if reader else {}), **({JUDGE: judge} if judge else {})}
    return settings.model_copy(update={"model": settings.model or reader or Rules.name, "roles": roles})


def read_wish(wish: MemoryWish) -> tuple[str, list[AskedTalk]]:
    """Return the format of the file, and its conversations with the drawn questions.

    Raises:
        InputError: the file cannot be read, or has no question, or none of the wanted types.
    """
    form, talks = read_talks(wish.file)
    if not talks:
        raise InputError(f"{wish.file} has no conversation with messages and questions")
    drawn = draw(talks, draw_questions(talks, wish.questions, wish.seed, wish.types))
    if not drawn:
        types = ", ".join(sorted({each.type for talk in talks for each in talk.questions}))
        raise InputError(f"{wish.file} has no questions of the types {', '.join(wish.types)}; its types are: {types}")
    return form, drawn


def estimate(settings: Settings, wish: MemoryWish, talks: Sequence[AskedTalk]) -> tuple[AtMost, float | None]:
    """Return the maximum calls and tokens, and their cost in US dollars; None if a price is unknown."""
    asked = count_at_most(talks, wish.arms, wish.tokens, wish.whole_tokens)
    named = [settings.models.get(READER, settings.model), settings.models.get(JUDGE)]
    bills = [(name, each) for name, each in zip(named, asked, strict=True) if name and name != Rules.name]
    total = AtMost(*(sum(getattr(each, name) for _, each in bills) for name in ("calls", "tokens_in", "tokens_out")))
    costs = [_cost(name, each) for name, each in bills]
    known = [cost for cost in costs if cost is not None]
    return total, sum(known) if len(known) == len(costs) else None


def _cost(name: str, asked: AtMost) -> float | None:
    vendor, _, model = name.partition(":")
    if vendor in OWN:
        return 0.0
    return price(model, Address(name, vendor, model, None, ""), asked.tokens_in, asked.tokens_out)


async def evaluate(settings: Settings, wish: MemoryWish, told: Progress = lambda *_: None) -> MemoryEvaluated:
    """Answer the conversations' questions with each compared memory (arm), judge the answers, and report the results.

    Stored answers are reused.

    Raises:
        InputError: a file cannot be used.
        ModelError: a model is not available; answers until then are stored.
    """
    form, talks = read_wish(wish)
    spent = Spent()
    policy = read_policy(policy_given(settings))
    async with answering(settings, on_call=spent.take) as models:
        second = second_stage(policy.reranker, policy.reranked, models)
        asked = CachedPrompts(models, EvaluationCache(wish.kept_in), told)
        opening = partial(
            open_arms,
            embedder=embedder(settings.embedder),
            tokens=wish.tokens,
            whole_tokens=wish.whole_tokens,
            second=second,
        )
        answers = await MemoryEvaluation(talks, asked, opening, wish.arms, JUDGE in settings.roles).run()
        judge = models.of(JUDGE).name if JUDGE in settings.roles else ""
        reader = models.of(READER).name
    questions = sum(len(talk.questions) for talk in talks)
    return MemoryEvaluated(form, len(talks), questions, reader, judge, report(answers), asked.unreadable, spent)
