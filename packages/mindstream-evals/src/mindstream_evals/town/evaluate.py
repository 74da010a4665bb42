"""Residents answer in each condition, a judge compares pairs blind, and claims are checked; a run can be resumed.

Items (questions to residents) are drawn at random. For each item, the answers of all pairs of conditions are compared,
in random order, until the wanted number of comparisons is reached. The model calls that an evaluation still needs are
counted beforehand; placeholders stand for answers that are not stored yet.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from mindstream_town.inspect.estimate import CallCount, Counting
from mindstream_town.inspect.history import History
from mindstream_town.residents.interview import CONDITIONS, Condition, Interviewer
from pydantic import Field

from mindstream import chance
from mindstream.errors import InputError
from mindstream.evaluation_cache import EvaluationCache
from mindstream.frozen import Frozen
from mindstream.models.cached_prompts import CachedPrompts, KeptReply, Progress
from mindstream.models.model import Message, Request, estimate_tokens
from mindstream.models.prompt import Prompt
from mindstream.models.roles import Models
from mindstream.models.rules import Rules
from mindstream_evals.town.questions import (
    Answer,
    Item,
    Question,
    draw_questions,
    find_event,
    gaps_of,
    gather_facts,
)

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
        """The item to which the two answers of this pair belong."""
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
    for each in drawn:  # number each resident's items
        place[each.key] = before[each.resident]
        before[each.resident] += 1
    # items that a person answered come first; within both groups, each resident's first item precedes all second items
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
    """Return the resident whose answer the control (condition `shuffled`) shows in place of this resident's answer.

    It is another resident, and a different one for each resident.
    """
    order = sorted(names)
    step = 1 + int(chance.fraction(seed, "shuffled", question) * (len(order) - 1))
    return order[(order.index(name) + step) % len(order)]


def pairs_of(comparisons: Sequence[Comparison], answers: Mapping[tuple[str, str, str], Answer]) -> list[Pair]:
    """Return the two answers of each comparison; comparisons without both answers are left out."""
    keys = [((*each.item.key, each.first), (*each.item.key, each.second)) for each in comparisons]
    return [Pair(answers[one], answers[two]) for one, two in keys if one in answers and two in answers]


R = TypeVar("R")
JUDGE = "judge"
MOST = "six"
"""Maximum number of sentences of a resident's answer, as a word for the prompt."""
FIRST = {"first": 1.0, "second": 0.0, "equal": 0.5}
"""Points of the answer shown first, by verdict."""


@dataclass(frozen=True)
class Design:
    """The design of an evaluation.

    Attributes:
        residents: names; empty: all.
        questions: number per resident, drawn equally from all categories; 0: all.
        pairs: maximum number of comparisons; 0: all.
        shuffled: add a control condition with answers of other residents, which must lose.
        claims: check the claims of answers.
    """

    residents: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = CONDITIONS
    questions: int = 0
    pairs: int = 0
    shuffled: bool = False
    claims: bool = True
    seed: int = 0


@dataclass(frozen=True)
class Judged:
    """A judged pair.

    Attributes:
        won: 1 if the first answer won, 0 if the second, 0.5 for a draw.
        verdicts: a model's points for the first answer: with the two answers in the shown order, and in reverse order.
            Empty: a person judged, or both answers have the same words.
    """

    pair: Pair
    won: float
    verdicts: tuple[float, ...] = ()


@dataclass(frozen=True)
class Checked:
    """An answer's claims, each with the number of the fact that supports it; 0: none."""

    answer: Answer
    claims: tuple[tuple[str, int], ...]


@dataclass
class Evaluation:
    """An evaluation of a town as of one step.

    Attributes:
        person: a person's answers, by resident and question id.
        asked: sends each prompt once and stores the reply.
    """

    interviewer: Interviewer
    history: History
    models: Models
    design: Design
    questions: Sequence[Question]
    ledger: EvaluationCache
    person: Mapping[tuple[str, str], str] = field(default_factory=dict)
    told: Progress = lambda *_: None

    def __post_init__(self) -> None:
        unknown = [each for each in self.design.conditions if each not in CONDITIONS]
        if unknown:
            raise InputError(f"unknown condition {unknown[0]!r}; use one or more of: {', '.join(CONDITIONS)}")
        self.names = self.design.residents or self.history.names
        self._event = find_event(self.history)
        self.asked = CachedPrompts(self.models, self.ledger, self.told)
        if self.design.shuffled and len(self.history.names) < 2:
            raise InputError(
                "the control needs answers of another resident, and the town has only one resident: omit --control"
            )

    @property
    def has_judge(self) -> bool:
        """Whether a language model judges; the `rules` model cannot."""
        return self.models.of(JUDGE).name != Rules.name

    @property
    def conditions(self) -> tuple[str, ...]:
        """All conditions, including the answers of a person and, as a control, those of another resident."""
        more = [PERSON] * bool(self.person) + [SHUFFLED] * self.design.shuffled
        return (*self.design.conditions, *more)

    def items(self) -> list[Item]:
        """Return the drawn questions to all selected residents."""
        return [
            self._item(name, question)
            for name in self.names
            for question in draw_questions(self.questions, self.design.questions, self.design.seed, name)
        ]

    def comparisons(self) -> list[Comparison]:
        return draw_comparisons(self.items(), self.conditions, set(self.person), self.design.pairs, self.design.seed)

    def _item(self, name: str, question: Question) -> Item:
        return Item(name, question.fill(gaps_of(self.history, name, self._event)))

    async def answer(self, comparisons: Sequence[Comparison]) -> dict[tuple[str, str, str], Answer]:
        """Return the answers to compare, by resident, question and condition; those not stored are requested. Answers
        whose reply cannot be parsed are left out."""
        cells = list(dict.fromkeys((each.item, name) for each in comparisons for name in (each.first, each.second)))
        done = await self.asked.each("answering", cells, lambda cell: self._answer(*cell))
        return {(*each.item.key, each.condition): each for each in done}

    async def _answer(self, item: Item, condition: str) -> Answer | None:
        if condition == PERSON:
            said = self.person[item.key]
            return Answer(item, PERSON, said, chance.keyed_token(20, "person", *item.key, said))
        if condition == SHUFFLED:
            other = await self._answer(self.shuffled_item(item), "full")
            return other and Answer(item, SHUFFLED, other.text, other.key)
        prompt = await self.prompt(item, condition)
        kept = await self._kept("answer", prompt, item, condition=condition)
        return kept and Answer(item, condition, kept.reply, kept.key)

    async def _kept(self, row: str, prompt: Prompt[R], item: Item, **more: str) -> KeptReply[R] | None:
        return await self.asked.kept(
            prompt, {"row": row, "resident": item.resident, "question": item.question.id, **more}
        )

    def shuffled_item(self, item: Item) -> Item:
        """Return the same question to another resident. The control condition uses the answer of that resident in place
        of the resident's own."""
        name = other_resident(self.history.names, item.resident, item.question.id, self.design.seed)
        return self._item(name, next(each for each in self.questions if each.id == item.question.id))

    async def prompt(self, item: Item, condition: str) -> Prompt[str]:
        """Return the prompt for a resident's answer in a condition."""
        prompt, _ = await self.interviewer.prepare(item.resident, item.question.text, condition)  # type: ignore[arg-type]
        return prompt.model_copy(update={"most": MOST})

    async def judge(self, pairs: Sequence[Pair]) -> list[Judged]:
        """Have a model judge pairs, each in both orders; pairs of equal answers are draws without a call. A pair is
        left out if a verdict cannot be parsed."""
        return await self.asked.each("judging", pairs, self._judge)

    async def _judge(self, pair: Pair) -> Judged | None:
        if pair.is_same:
            return Judged(pair, 0.5)
        verdicts = []
        for turned, prompt in enumerate(await self.judge_prompts(pair)):
            kept = await self._kept("verdict", prompt, pair.item)
            if kept is None:
                return None
            worth = FIRST[kept.reply.better]
            verdicts.append(1 - worth if turned else worth)
        mean = sum(verdicts) / 2
        return Judged(pair, 0.5 if mean == 0.5 else float(mean > 0.5), tuple(verdicts))

    async def judge_prompts(self, pair: Pair) -> tuple[JudgePair, JudgePair]:
        """Return the prompts for a pair in both orders; the prompts do not name the conditions."""
        texts = pair.first.text, pair.second.text
        facts = await gather_facts(self.interviewer, pair.item, sorted(texts))
        asked = {"who": pair.item.resident, "when": facts.when, "question": pair.item.question.text}
        one, two = (
            JudgePair(**asked, facts=facts.lines, first=first, second=second) for first, second in (texts, texts[::-1])
        )
        return one, two

    async def check(self, answers: Iterable[Answer]) -> list[Checked]:
        """Have a model list the claims of each answer, and the fact that supports each claim."""
        return await self.asked.each("checking claims", list(answers), self._check)

    async def _check(self, answer: Answer) -> Checked | None:
        prompt = await self.check_prompt(answer)
        kept = await self._kept("claims", prompt, answer.item)
        if kept is None:
            return None
        claims = prompt.ground(kept.reply, ())[0].claims
        return Checked(answer, tuple((each.claim, each.fact) for each in claims))

    async def check_prompt(self, answer: Answer) -> CheckClaims:
        item = answer.item
        facts = await gather_facts(self.interviewer, item, [answer.text])
        return CheckClaims(
            who=item.resident, when=facts.when, facts=facts.lines, question=item.question.text, answer=answer.text
        )


def judged_by_people(pairs: Sequence[Pair], verdicts: Sequence[tuple[str, float]]) -> tuple[list[Judged], int]:
    """Return people's verdicts on these pairs, and the number of verdicts on other pairs.

    Each pair of identical texts gets a tie.
    """
    by_id = {each.id: each for each in pairs}
    found = [Judged(by_id[id_], won) for id_, won in verdicts if id_ in by_id]
    found += [Judged(each, 0.5) for each in pairs if each.is_same]
    return found, sum(id_ not in by_id for id_, _ in verdicts)


class Claim(Frozen):
    """Something that an answer says is so."""

    claim: str = Field(min_length=1, max_length=400, description="One short sentence with names instead of pronouns.")
    fact: int = Field(ge=0, le=1_000, description="The number of the fact that bears it out; 0: none does.")


class Claims(Frozen):
    """All that an answer claims."""

    claims: list[Claim] = Field(default_factory=list, max_length=20)


class CheckClaims(Prompt[Claims]):
    """Which claims of an answer do the facts support?"""

    role = "judge"

    who: str
    when: str
    facts: tuple[str, ...]
    """Identity, activity, plan and memories of the resident, one line each. `Claim.fact` is the number of a line, from
    1; 0: no line supports the claim."""
    question: str
    answer: str

    def ground(self, reply: Claims, turns: Sequence[Message]) -> tuple[Claims, str]:  # noqa: ARG002
        """Set the numbers of facts that do not exist to 0, and return a complaint about them for the model."""
        strange = [each.fact for each in reply.claims if each.fact > len(self.facts)]
        if not strange:
            return reply, ""
        kept = [each if each.fact <= len(self.facts) else Claim(claim=each.claim, fact=0) for each in reply.claims]
        return Claims(claims=kept), f"There are {len(self.facts)} facts, none is number {strange[0]}."


Better = Literal["first", "second", "equal"]


class Verdict(Frozen):
    """Which answer is more believable, and why."""

    why: str = Field(max_length=400, description="One sentence: what decides.")
    better: Better = Field(description="The more believable answer; equal: neither is.")


class JudgePair(Prompt[Verdict]):
    """Which of two answers to a question is more believable for a resident?"""

    role = "judge"

    who: str
    when: str
    facts: tuple[str, ...]
    """Identity, activity, plan and memories of the resident, one line each."""
    question: str
    first: str
    second: str


REPLY = {"answer_interview": 60, "judge_pair": 50, "check_claims": 150}
"""Tokens per reply of each prompt, measured in a small town."""
UNKNOWN = "I would have to think about that for a moment, and then I would tell you what I know of it. " * 3
"""Placeholder, in an estimate, for an answer that is not stored yet. It is as long as an average answer."""


async def count_asked(evaluation: Evaluation, comparisons: Sequence[Comparison]) -> Counting:
    """Count the model calls whose results are not stored yet.

    There are calls for answers, for verdicts (each pair of different answers, in both orders), and for the claim check
    of each answer.
    """
    counting, asked = Counting(), set[str]()

    def add(prompt: Prompt[Any], key: str) -> None:
        if key not in asked and evaluation.ledger.find(key) is None:
            asked.add(key)
            _count(counting, prompt)

    cells = list(dict.fromkeys((each.item, name) for each in comparisons for name in (each.first, each.second)))
    answers: dict[tuple[Item, str], Answer] = {}
    for item, condition in cells:
        answers[item, condition] = await _expected(evaluation, item, condition, add)
    if not evaluation.has_judge:
        return counting
    for each in comparisons:
        pair = Pair(answers[each.item, each.first], answers[each.item, each.second])
        if pair.is_same and (pair.first.text != UNKNOWN or pair.first.key == pair.second.key):
            continue
        unknown = UNKNOWN in (pair.first.text, pair.second.text)
        orders = (pair.first.key, pair.second.key), (pair.second.key, pair.first.key)
        for keys, prompt in zip(orders, await evaluation.judge_prompts(pair), strict=True):
            add(prompt, f"{each.item.key} {keys}" if unknown else evaluation.asked.key(prompt))
    for answer in answers.values() if evaluation.design.claims else ():
        check = await evaluation.check_prompt(answer)
        add(check, f"{answer.item.key} {answer.key}" if answer.text == UNKNOWN else evaluation.asked.key(check))
    return counting


async def _expected(
    evaluation: Evaluation, item: Item, condition: str, add: Callable[[Prompt[Any], str], None]
) -> Answer:
    """Return the stored answer, or a placeholder if none is stored. `add` gets the answer's prompt and key, and counts
    the call if it is not stored."""
    if condition == PERSON:
        return Answer(item, condition, evaluation.person[item.key], f"person {item.key}")
    if condition == SHUFFLED:
        other = await _expected(evaluation, evaluation.shuffled_item(item), "full", add)
        return Answer(item, condition, other.text, other.key)
    prompt = await evaluation.prompt(item, condition)
    key = evaluation.asked.key(prompt)
    kept = evaluation.ledger.find(key)
    add(prompt, key)
    return Answer(item, condition, kept["reply"] if kept else UNKNOWN, key)


def _count(counting: Counting, prompt: Prompt[Any]) -> None:
    label = prompt.label()
    kind = counting.by_kind.setdefault(label, CallCount())
    counting.role_of[label] = prompt.role
    messages = Request(prompt, prompt.role).messages
    kind.calls += 1
    kind.tokens_in += sum(estimate_tokens(each.text) for each in messages)
    kind.static += estimate_tokens(messages[0].text)
    kind.tokens_out += REPLY.get(label, 100)
