"""A typed question is answered with probabilities, from any source."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from fake_endpoint import Asked, Behaviour, FakeEndpoint, Says, Sends
from hypothesis import given
from hypothesis import strategies as st

from mindstream.errors import ModelRefused, ReplyInvalid
from mindstream.models.decide import (
    Choice,
    Predicate,
    Question,
    Score,
    YesNo,
    accuracy,
    brier_score,
    calibration_error,
    coin,
    decide,
    weigh,
)
from mindstream.models.model import Logprobs
from mindstream.models.prompt import ask, rule
from mindstream.models.roles import Models
from mindstream.models.rules import Rules
from mindstream.models.wrappers.meter import Metered

WET = Predicate(text="It is raining.", question="Is it wet?")
TEAM = Choice(text="I was charged twice.", question="Which team?", options=("billing", "shipping", "technical"))
URGENT = Score(text="Call me now!", question="How urgent?", levels=("can wait", "this week", "right now"))


class Warm(YesNo, Question):
    degrees: float = 20.0

    @classmethod
    def words(cls) -> str:
        return "# user\nIs {{ degrees }} warm?"


@rule(Warm)
def by_degrees(ask: Warm) -> dict[str, float]:
    p = 1 / (1 + math.exp(18 - ask.degrees))
    return {"yes": p, "no": 1 - p}


def logs(*probabilities: tuple[str, float]) -> tuple[tuple[str, float], ...]:
    return tuple((token, math.log(p)) for token, p in probabilities)


# Sources of answers.


async def test_a_rule_returns_its_own_probabilities() -> None:
    likely = await decide(Rules(), Warm(degrees=20))
    assert likely["yes"] == pytest.approx(0.88, abs=0.01) and likely.basis == "distribution"


async def test_without_a_model_a_general_question_is_fifty_fifty() -> None:
    assert [(await decide(Rules(), question)).weights[0][1] for question in (WET, TEAM, URGENT)] == pytest.approx(
        [1 / 2, 1 / 3, 1 / 3]
    )


async def test_a_chat_model_is_asked_for_one_token_and_its_probabilities(door: FakeEndpoint) -> None:
    door.otherwise = Says("Yes", logprobs=logs(("Yes", 0.5), (" yes", 0.1), ("No", 0.2), ("Well", 0.2)))
    async with Models.named({"default": f"{door.url}#any"}) as models:
        likely = await decide(models.of(""), WET)
    assert likely["yes"] == pytest.approx(0.75) and likely["no"] == pytest.approx(0.25)
    assert likely.basis == "logprobs" and likely.covered == pytest.approx(0.8)
    asked = door.chats[0].body
    assert (asked["max_tokens"], asked["logprobs"], asked["top_logprobs"], asked["temperature"]) == (1, True, 20, 0)
    assert "response_format" not in asked
    assert asked["messages"][-1]["content"].endswith("Answer with one word: yes or no.")


async def test_answers_are_recognised_by_letter_and_by_word(door: FakeEndpoint) -> None:
    door.otherwise = Says("A", logprobs=logs(("A", 0.4), ("billing", 0.2), ("B.", 0.2), ("tech", 0.1), ("a", 0.1)))
    async with Models.named({"default": f"{door.url}#any"}) as models:
        likely = await decide(models.of(""), TEAM)
    assert [p for _, p in likely.weights] == pytest.approx([0.6 / 0.9, 0.2 / 0.9, 0.1 / 0.9])
    assert likely.best == "billing"
    assert "A: billing\nB: shipping\nC: technical" in door.chats[0].body["messages"][-1]["content"]


@pytest.mark.parametrize(
    "words",
    [
        "logprobs is not supported by this model",
        "You are not allowed to request logprobs from this model",
        "Could not finish the message because max_tokens or model output limit was reached.",
    ],
)
async def test_an_endpoint_without_logprobs_is_asked_for_text_afterwards(door: FakeEndpoint, words: str) -> None:
    door.refuses["logprobs"] = words
    door.otherwise = Says("Yes.")
    async with Models.named({"default": f"{door.url}#any"}) as models:
        first, second = await decide(models.of(""), WET), await decide(models.of(""), WET)
    assert first == second and first.basis == "words" and first["yes"] > 0.99
    assert ["logprobs" in each.body for each in door.chats] == [True, False, False]
    assert door.chats[-1].body["max_tokens"] > 1, "the limit leaves room for thoughts"


async def test_an_invalid_answer_is_shown_to_the_model_again() -> None:
    with FakeEndpoint() as door:
        door.will(Says("That"), Says("That depends."), Says("B"))
        async with Models.named({"default": f"{door.url}#any"}) as models:
            assert (await decide(models.of(""), TEAM)).best == "shipping"
        assert "none of the answers" in door.chats[-1].body["messages"][-1]["content"]


# Decision endpoints.


@pytest.mark.parametrize("kind", ["systemone", "decisions"])
async def test_a_decision_endpoint_is_asked_in_its_own_protocol(door: FakeEndpoint, kind: str) -> None:
    import json

    def answer(asked: Asked) -> Behaviour:
        questions = asked.body["questions"]
        one = questions["question"] if kind == "systemone" else questions[0]
        given: dict[str, object]
        match one["type"]:
            case "noul":
                given = {"type": "noul", "noul": 0.9}
            case "predicate":
                given = {"type": "predicate", "probability": 0.9}
            case "choice" if kind == "systemone":
                given = {"type": "choice", "choice": "billing", "probabilities": {"billing": 0.7, "technical": 0.3}}
            case "choice":
                listed = [{"value": each["value"], "probability": 1 / 3} for each in one["choices"]]
                given = {"type": "choice", "choice": "billing", "confidence": 0.1, "probabilities": listed}
            case _ if kind == "systemone":
                given = {"type": "score", "score": 1.5, "probabilities": {"1": 0.5, "2": 0.5}}
            case _:
                levels = [
                    {"label": each["label"], "value": n, "probability": 1 / 3} for n, each in enumerate(one["levels"])
                ]
                given = {"type": "score", "score": 1.0, "confidence": 0.1, "probabilities": levels}
        answers = {"question": given} if kind == "systemone" else [given]
        used = {"input_tokens": 50, "output_tokens": 0, "input_tokens_details": {"cached_tokens": 20}}
        return Sends(json.dumps({"model": "decider", "answers": answers, "usage": used}))

    door.otherwise = answer
    calls: list[Metered] = []
    async with Models.named({"default": f"{kind}:decider@{door.url}"}, on_call=calls.append) as models:
        wet, team, urgent = [await decide(models.of(""), question) for question in (WET, TEAM, URGENT)]
        with pytest.raises(ModelRefused, match="writes no text"):
            await ask(models.of(""), WET)
    assert wet["yes"] == pytest.approx(0.9, abs=0.001) and wet.basis == "distribution"
    assert team["technical"] == pytest.approx(0.3 if kind == "systemone" else 1 / 3, abs=0.001)
    assert urgent.expected == pytest.approx(1.5 if kind == "systemone" else 1.0, abs=0.001)
    assert calls[0].usage and calls[0].usage.cached_tokens == 20
    first = door.asked[0]
    assert first.path == f"/v1/{kind}" and first.body["model"] == "decider"
    assert "It is raining." in first.body["state" if kind == "systemone" else "input"]
    asked = first.body["questions"]["question"] if kind == "systemone" else first.body["questions"][0]
    assert "Is it wet?" in asked["instructions"] and "Answer with" not in asked["instructions"]


async def test_an_unexpected_reply_of_a_decision_endpoint_is_an_error(door: FakeEndpoint) -> None:
    door.otherwise = Sends('{"answers": {}}')
    async with Models.named({"default": f"systemone:any@{door.url}"}, retry=1) as models:
        with pytest.raises(Exception, match="does not follow the protocol"):
            await decide(models.of(""), WET)


# Weights of tokens and texts.


async def test_decisions_and_text_answers_are_cached_separately(door: FakeEndpoint, tmp_path: Path) -> None:
    door.otherwise = Says("Yes", logprobs=logs(("Yes", 0.6), ("No", 0.4)))
    async with Models.named({"default": f"{door.url}#any"}, cache_dir=tmp_path) as models:
        first = await decide(models.of(""), WET)
        assert await decide(models.of(""), WET) == first
        assert len(door.chats) == 1
        assert await ask(models.of(""), WET) == "yes"
    assert len(door.chats) == 2


@given(
    st.lists(st.tuples(st.text(max_size=6), st.floats(-40, 0)), max_size=30),
    st.lists(st.text(st.characters(categories=["L"]), min_size=1, max_size=8), min_size=2, max_size=6, unique=True),
)
def test_the_weights_never_exceed_the_token_probabilities(first: list[tuple[str, float]], answers: list[str]) -> None:
    marks = tuple("ABCDEF"[: len(answers)])
    weights = weigh(Logprobs(tuple(first)), answers, marks)
    assert all(weight >= 0 for weight in weights)
    assert sum(weights) <= sum(math.exp(logprob) for _, logprob in first) + 1e-9


def test_an_ambiguous_token_counts_for_no_answer() -> None:
    assert weigh(Logprobs(logs(("ap", 0.5), ("app", 0.3))), ("apple", "apricot"), ("A", "B")) == pytest.approx(
        [0.3, 0.0]
    )


@pytest.mark.parametrize("said", ["yes", " Yes.", '"yes"', "**Yes**", "<think>hm</think>yes"])
def test_an_answer_in_text_may_have_punctuation_around_it(said: str) -> None:
    assert WET.parse(said) == "yes"


@pytest.mark.parametrize("said", ["", "yes and no", "probably yes", "A"])
def test_an_answer_in_text_is_one_of_the_allowed_answers(said: str) -> None:
    with pytest.raises(ReplyInvalid):
        WET.parse(said)


# Quality of decisions.


def test_brier_score_and_calibration_error_of_known_outcomes() -> None:
    sure = [({"yes": 1.0, "no": 0.0}, "yes")] * 4
    assert brier_score(sure) == calibration_error(sure) == 0 and accuracy(sure) == 1
    wrong = [({"yes": 1.0, "no": 0.0}, "no")]
    assert brier_score(wrong) == 2 and calibration_error(wrong) == 1
    coins = [(coin(("yes", "no")), right) for right in ("yes", "no")]
    assert brier_score(coins) == 0.5 and calibration_error(coins) == 0 and accuracy(coins) == 0.5
    modest = [({"yes": 0.75, "no": 0.25}, right) for right in ("yes", "yes", "yes", "no")]
    assert calibration_error(modest) == pytest.approx(0)
    with pytest.raises(ValueError, match="at least one decision"):
        brier_score([])
