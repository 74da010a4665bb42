"""A plan is data: it is saved, ordered, edited and compared; references are structure."""

from __future__ import annotations

import pytest
from pydantic import JsonValue

from mindstream.errors import InputError
from mindstream.models.rules import FakeModel
from mindstream.planning.plan import Plan, PlannedStep, Reference, Text, bind
from mindstream.planning.planner import Planner

Json = dict[str, JsonValue]


def step(id: str, *needs: str, tool: str = "Search", after: tuple[str, ...] = ()) -> PlannedStep:
    arguments = {"input": Text(("about ", *(Reference(need) for need in needs))).as_json()}
    return PlannedStep(id=id, tool=tool, arguments=arguments, after=after)


DIAMOND = Plan(task="t", steps=(step("E1"), step("E2", "E1"), step("E3", "E1"), step("E4", "E2", after=("E3",))))


@pytest.mark.parametrize("text", ["", '{"steps": [{"id": "1", "tool": "a"}]}'])
def test_an_invalid_saved_plan_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="not a saved plan"):
        Plan.load(text)


def test_layers_group_steps_by_their_dependencies() -> None:
    assert DIAMOND.layers() == (("E1",), ("E2", "E3"), ("E4",))


def test_circular_steps_have_no_order() -> None:
    with pytest.raises(InputError, match="E1, E2 can never run"):
        Plan(steps=(step("E1", "E2"), step("E2", "E1"))).order()


def test_a_plan_is_edited_by_step_ids() -> None:
    plan = DIAMOND.without_step("E4").edited("E3", tool="LLM").with_step(step("E5"), before="E2")
    assert [(each.id, each.tool) for each in plan.steps] == [
        ("E1", "Search"), ("E5", "Search"), ("E2", "Search"), ("E3", "LLM"),
    ]  # fmt: skip
    with pytest.raises(InputError, match="E1 already"):
        plan.with_step(step("E1"))
    with pytest.raises(InputError, match="no step 'E4'"):
        plan.without_step("E4")
    with pytest.raises(InputError, match="is invalid"):
        plan.edited("E1", tool="two words")


def test_diff_lists_the_change_of_each_step() -> None:
    other = DIAMOND.without_step("E4").edited("E2", tool="LLM").with_step(step("E7"))
    assert [str(change) for change in DIAMOND.diff(other)] == [
        '- E4 = Search[{"input": {"$text": ["about ", {"$ref": "E2"}]}}]',
        '  E1 = Search[{"input": "about "}]',
        '~ E2: tool "Search" → "LLM"',
        '  E3 = Search[{"input": {"$text": ["about ", {"$ref": "E1"}]}}]',
        '+ E7 = Search[{"input": "about "}]',
    ]


def test_mermaid_output_escapes_the_texts_of_a_plan() -> None:
    plan = DIAMOND.edited("E1", why='"]; click E1 <script>')
    assert plan.mermaid().splitlines() == [
        "flowchart TD",
        '    E1["E1 · Search<br/>#quot;]; click E1 #lt;script#gt;"]',
        '    E2["E2 · Search"]',
        '    E3["E3 · Search"]',
        '    E4["E4 · Search"]',
        "    E1 --> E2",
        "    E1 --> E3",
        "    E2 --> E4",
        "    E3 -.-> E4",
    ]


# Evidence.


def test_a_reference_path_selects_from_json_evidence() -> None:
    arguments: Json = {
        "q": {"$ref": "E1", "path": ["hits", -1, "price"]},
        "t": {"$text": ["is ", {"$ref": "E1", "path": ["n"]}]},
    }
    assert bind(arguments, {"E1": '{"hits": [{}, {"price": 3}], "n": [1]}'}) == {"q": 3, "t": "is [1]"}


@pytest.mark.parametrize(
    ("evidence", "words"),
    [
        ({}, "no evidence of #E1 yet"),
        ({"E1": "plain words"}, "the evidence of #E1 is not JSON: 'plain words'"),
        ({"E1": {"price": []}}, r"#E1.price\[0\] does not exist: #E1.price is a list of 0"),
        ({"E1": "[" * 100_000}, "has a path, but"),
    ],
)
def test_an_invalid_reference_path_is_reported(evidence: Json, words: str) -> None:
    arguments: Json = {"q": {"$ref": "E1", "path": ["price", 0]}}
    with pytest.raises(InputError, match=words):
        bind(arguments, evidence)


@pytest.mark.parametrize("value", [float("nan"), 10**30, b"x", {1: "x"}])
def test_arguments_that_are_not_json_are_refused(value: object) -> None:
    with pytest.raises(ValueError, match="arguments"):
        PlannedStep(id="E1", tool="t", arguments={"x": value})


async def test_a_plan_and_a_solution_print_as_a_reader_expects() -> None:
    def first(city: str) -> str:
        """Return the first name."""
        return {"Lyon": "Ann"}[city]

    written = "Plan: Look it up.\n#E1 = first[Lyon]\nPlan: And the other.\n#E2 = first[Graz]"
    planner = Planner(model=FakeModel([written, "Ann, and an unknown name."]), tools=[first], replans=0)
    plan = await planner.plan("Who lives in Lyon and in Graz?")
    assert str(plan).splitlines()[1::2] == ["#E1 = first[Lyon]", "#E2 = first[Graz]"]
    shown = str(await planner.run(plan))
    assert shown.startswith("Ann, and an unknown name.\nfailed steps: E2: ")
