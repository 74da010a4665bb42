"""A printed or saved plan parses to the same plan, and no text makes a parser fail."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plans import SCRAPS, TOOLS, plans

from mindstream.planning.formats.read import FORMATS, FormatName, open_reader, read
from mindstream.planning.formats.rewoo import LONGEST_LINE, write_plan
from mindstream.planning.plan import Plan, check

USUAL = settings().max_examples
often = settings(max_examples=3 * USUAL, suppress_health_check=list(HealthCheck), database=None)


@settings(often, max_examples=10 * USUAL)
@given(plans)
def test_a_printed_or_saved_plan_is_parsed_to_the_same_plan(plan: Plan) -> None:
    assert read(write_plan(plan)).plan == plan
    assert read(write_plan(plan, TOOLS), TOOLS).plan == plan
    assert Plan.load(plan.save()) == plan
    check(plan, TOOLS)
    plan.mermaid()


texts = (
    st.lists(st.sampled_from(SCRAPS), max_size=20).map("".join)
    | st.text(max_size=60)
    | st.binary(max_size=60).map(lambda some: some.decode("utf-8", "surrogateescape"))
)


@pytest.mark.parametrize("format", FORMATS)
@often
@given(text=texts, seed=st.integers(0, 10_000))
def test_incremental_parsing_gives_the_same_result(format: FormatName, text: str, seed: int) -> None:
    whole = read(text, TOOLS, format)
    chance, reader, steps, at = random.Random(seed), open_reader(format, TOOLS), [], 0
    while at < len(text):
        size = chance.randint(1, 7)
        steps += reader.feed(text[at : at + size])
        at += size
    steps += reader.close()
    assert (tuple(steps), reader.notes, reader.task) == (whole.plan.steps, whole.notes, whole.plan.task)
    assert Plan.load(whole.plan.save()) == whole.plan


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    "unit",
    ["#E1 = A[", '#E1 = A[{"a":[', "[", "1. a(", ",'a", '("', "Plan: ", "#E1 after #E1", "#E1, ", "#E1 = A[\n",
     '{"\n]', '1. f("\n', "*", "\n", "第一步："],
)  # fmt: skip
def test_parsing_takes_linear_time(format: FormatName, unit: str) -> None:
    begun = time.process_time()
    read(unit * (LONGEST_LINE // len(unit) + 1), TOOLS, format)
    assert time.process_time() - begun < 10  # each takes under two seconds; a quadratic reader took forty
