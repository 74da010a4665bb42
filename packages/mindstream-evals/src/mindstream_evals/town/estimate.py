"""Count the remaining model calls of an evaluation; placeholders stand for answers that are not stored yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mindstream_town.inspect.estimate import CallCount, Counting

from mindstream.models.model import Request, estimate_tokens
from mindstream.models.prompt import Prompt
from mindstream_evals.town.evaluate import Evaluation
from mindstream_evals.town.pairs import PERSON, SHUFFLED, Comparison, Pair
from mindstream_evals.town.questions import Answer, Item

REPLY = {"answer_interview": 60, "judge_pair": 50, "check_claims": 150}
"""Tokens per reply of each prompt, measured in a small town."""
UNKNOWN = "I would have to think about that for a moment, and then I would tell you what I know of it. " * 3
"""A placeholder with the length of an average answer."""


async def count_asked(evaluation: Evaluation, comparisons: Sequence[Comparison]) -> Counting:
    """Count the calls that are not stored: answers, both orders of each pair, and the claim check of each answer."""
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
    """Return the stored answer; without one, count its call and return a placeholder."""
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
