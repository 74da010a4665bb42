"""The answer of a run in a form that the caller names, and approvals by the word that all share."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from mindstream import FakeModel, InputError, Plan, PlannedStep, Planner, tool


class Population(BaseModel):
    city: str
    people: int


@tool
def look(city: str) -> str:
    """Look a city up."""
    return f"{city} has 9,000 people."


async def test_the_solver_is_asked_once_more_for_the_form() -> None:
    model = FakeModel(
        {
            "make_plan": ["#E1 = look[Tornby]"],
            "answer_from_evidence": ["Tornby has nine thousand people."],
            "in_words": ['{"city": "Tornby", "people": 9000}'],
        }
    )
    solution = await Planner(model=model, tools=[look]).solve("How many people has Tornby?", output=Population)
    assert solution.output == Population(city="Tornby", people=9000)
    assert solution.answer == "Tornby has nine thousand people."
    assert "nine thousand" in model.asked[-1].messages[-1].text


async def test_an_answer_that_has_the_form_is_read_as_it_is() -> None:
    answer = 'It is {"city": "Tornby", "people": 9000}.'
    model = FakeModel({"make_plan": ["#E1 = look[Tornby]"], "answer_from_evidence": [answer]})
    solution = await Planner(model=model, tools=[look]).solve("How many people has Tornby?", output=Population)
    assert solution.output == Population(city="Tornby", people=9000)


async def test_without_an_answer_there_is_no_output() -> None:
    assert (await Planner(model={}, tools=[look]).solve("look[Tornby]", output=Population)).output is None


async def test_the_old_word_for_approval_still_works() -> None:
    with pytest.warns(DeprecationWarning, match="approve="):
        planner = Planner(model={}, leave=["send"])  # type: ignore[call-arg]
    assert planner.approve == ["send"]


async def test_a_plan_made_by_hand_needs_no_model_and_takes_plain_functions() -> None:
    def price(item: str) -> str:
        """Return a price."""
        return "7"

    plan = Plan(task="What is tea?", steps=(PlannedStep(id="E1", tool="price", arguments={"item": "tea"}),))
    assert (await Planner(tools=[price]).run(plan)).evidence["E1"].text == "7"
    with pytest.raises(InputError, match="'calculator' is a text, not a tool"):
        await Planner(tools=["calculator"]).run(plan)  # type: ignore[list-item]
