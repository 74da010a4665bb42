"""How interviews are scored: by what is right, whatever was hidden; what nothing says is made up."""

from __future__ import annotations

import asyncio

import pytest
from hamlet import hamlet
from town_ablation import interval, summarise
from town_scores import CATEGORIES, Truth, questions_for
from town_story import give_fact, measure

from mindstream.town.history import History, read_history
from mindstream.town.interview import CONDITIONS
from mindstream.town.town import Town

NOON, EVENING = 12 * 360, 8_640 + 20 * 360


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    folder = tmp_path_factory.mktemp("hamlet")

    async def lived() -> None:
        async with Town.open(folder, give_fact(hamlet(), "The old mill wheel is turning again", "Cleo Marsh")) as town:
            await town.run(until=EVENING)

    asyncio.run(lived())
    return asyncio.run(read_history(folder))


@pytest.fixture(scope="module")
def truth(history: History) -> Truth:
    return Truth(history, "Ben Hale", EVENING)


def test_there_are_five_questions_of_each_category(truth: Truth) -> None:
    asked = questions_for(truth)
    assert [each.category for each in asked] == [category for category in CATEGORIES for _ in range(5)]


def test_what_is_right_scores_and_what_is_not_does_not(truth: Truth) -> None:
    by_question = {each.question: each for each in questions_for(truth)}
    assert by_question["What is your occupation?"].score("I am a piano tuner.") == 1
    assert by_question["What is your occupation?"].score("I am a diver.") == 0
    lives_with = by_question["Who do you live with?"]
    assert lives_with.score("Ada Brook is my wife.") == 1 > lives_with.score("Ada Brook and Cleo Marsh.") > 0
    mayor = by_question["Who is running for mayor?"]
    assert mayor.score("I do not know.") == 1 and mayor.score("Ada Brook is running for mayor.") == 0
    night = by_question["What will you be doing at 6 am today?"]
    assert night.score("I will be sleeping.") == 1 and night.score("I do not know.") == 0
    unknown = next(each for each in by_question.values() if each.question == "Who is Dora Finch?")
    assert unknown.score("I do not know who Dora Finch is.") == 1 and unknown.score("Dora Finch is a baker.") == 0


def test_a_claim_that_nothing_says_is_made_up(truth: Truth) -> None:
    assert truth.made_up("I am a piano tuner. Ada Brook is my wife. I do not know. I would call for help.") == []
    assert truth.made_up("Yes. Ada Brook said: Ada Brook is planning a reading evening at Oak Cafe.") == []
    lie = "Ada Brook sold her submarine to a circus."
    assert truth.made_up(f"I am a piano tuner. {lie}") == [lie]


def test_a_given_fact_is_found(history: History) -> None:
    report = measure(history, {"fact": "the old mill wheel is turning again"})
    assert report["fact"]["knew_at_start"] == 1 and report["fact"]["heard"] >= 1
    assert report["density"]["start"] == pytest.approx(0.333) and "at_the_party" not in report
    assert report["picture"].startswith("<svg")


def test_an_interval_holds_its_mean_and_the_order_is_by_means() -> None:
    bounds = interval([0.2, 0.4, 0.9, 0.7])
    assert bounds["low"] < bounds["mean"] < bounds["high"]
    answers: list[dict[str, object]] = [
        {"seed": 1, "who": who, "category": category, "condition": condition, "score": 1 - n / 4, "made_up": []}
        for who in ("a", "b")
        for category in CATEGORIES
        for n, condition in enumerate(CONDITIONS)
    ]
    assert summarise(answers)["order_as_in_the_paper"] is True
