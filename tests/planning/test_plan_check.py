"""Faults of a plan are reported before anything runs."""

from __future__ import annotations

import pytest
from pydantic import JsonValue

from mindstream.models.model import ToolSpec
from mindstream.planning.plan import LONGEST, Plan, PlannedStep, check

Json = dict[str, JsonValue]


def spec(name: str, required: list[str] | None = None, **properties: Json) -> ToolSpec:
    shape = {"type": "object", "properties": properties, "additionalProperties": False}
    return ToolSpec(name, "", {**shape, "required": list(properties) if required is None else required})


TOOLS = (
    spec("Wikipedia", query={"type": "string", "minLength": 3}),
    spec("Round", number={"type": "number"}, unit={"enum": ["m", "km"]}),
    spec("Rank", rows={"type": "array", "maxItems": 2, "items": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}),
)


def planned(*steps: tuple[str, str, Json] | PlannedStep) -> Plan:
    return Plan(
        steps=tuple(
            each if isinstance(each, PlannedStep) else PlannedStep(id=each[0], tool=each[1], arguments=each[2])
            for each in steps
        )
    )


def wiki(id: str, need: str = "", after: tuple[str, ...] = ()) -> PlannedStep:
    query: JsonValue = {"$ref": need} if need else "Oslo"
    return PlannedStep(id=id, tool="Wikipedia", arguments={"query": query}, after=after)


def kinds(plan: Plan) -> list[tuple[str, str]]:
    return [(fault.kind, fault.step) for fault in check(plan, TOOLS)]


def test_a_valid_plan_has_no_faults() -> None:
    assert kinds(planned(wiki("E1"), wiki("E2", "E1"), wiki("E10", "E2", ("E1",)))) == []


@pytest.mark.parametrize("name", ["wikipeda", "wiki", "Wikipedia_search", "WIKIPEDIA"])
def test_an_unknown_tool_is_reported_with_similar_names(name: str) -> None:
    (fault,) = check(planned(("E1", name, {"query": "Oslo"})), TOOLS)
    said = f"expected one of the tools Wikipedia, Round, Rank, found {name!r}; did you mean Wikipedia?"
    assert (fault.text, str(fault)) == (said, f"E1: {said}")


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("Wikipedia", {}, "query is missing"),
        ("Wikipedia", {"query": "Oslo", "lang": "no"}, "lang is not known"),
        ("Wikipedia", {"query": "a"}, "does not fit minLength"),
        ("Round", {"number": {"$text": ["about ", {"$ref": "E1"}]}, "unit": "m"}, 'not "about #E1"'),
        ("Round", {"number": {"$ref": "E1"}, "unit": "mile"}, "unit should be one of"),
        ("Rank", {"rows": [{"$ref": "E1"}, "x"]}, "rows"),
    ],
)
def test_invalid_arguments_are_faults(tool: str, arguments: Json, words: str) -> None:
    faults = check(planned(wiki("E1"), ("E2", tool, arguments)), TOOLS)
    assert [(fault.kind, fault.step) for fault in faults] == [("arguments", "E2")]
    assert words in str(faults[0])


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Round", {"number": {"$ref": "E1", "path": ["n"]}, "unit": {"$ref": "E1"}}),
        ("Round", {"number": 1, "unit": {"$text": ["k", {"$ref": "E1"}]}}),
        ("Rank", {"rows": [{"$ref": "E1"}, 2]}),
    ],
)
def test_a_reference_is_accepted_for_any_parameter_type(tool: str, arguments: Json) -> None:
    assert kinds(planned(wiki("E1"), ("E2", tool, arguments))) == []


@pytest.mark.parametrize("value", [{"$ref": "step 1"}, {"$text": [3]}])
def test_a_malformed_reference_is_a_fault(value: Json) -> None:
    assert ("reference", "E2") in kinds(planned(wiki("E1"), ("E2", "Wikipedia", {"query": value})))


def test_unresolvable_references_are_faults() -> None:
    assert kinds(planned(wiki("E1", "E7"), wiki("E2", "E2"), wiki("E3", "E4"), wiki("E4", after=("E9",)))) == [
        ("missing", "E1"), ("self", "E2"), ("forward", "E3"), ("missing", "E4"),
    ]  # fmt: skip


def test_circular_steps_are_one_fault() -> None:
    (fault,) = check(planned(wiki("E1"), wiki("E2", "E4"), wiki("E3", "E2"), wiki("E4", "E3"), wiki("E5", "E4")), TOOLS)
    assert (fault.kind, fault.came) == ("circular", "E2 → E4 → E3 → E2")


def test_duplicate_step_ids_are_a_fault() -> None:
    assert kinds(planned(wiki("E1"), wiki("E1"))) == [("double", "E1")]


def test_the_size_of_a_plan_is_limited() -> None:
    assert kinds(planned()) == [("size", "")]
    assert kinds(planned(*(wiki(f"E{n}") for n in range(1, 66)))) == [("size", "")]
    assert kinds(planned(("E1", "Wikipedia", {"query": "x" * LONGEST}))) == [("size", "")]
    assert [fault.kind for fault in check(planned(wiki("E1"), wiki("E2")), TOOLS, most_steps=1)] == ["size"]
