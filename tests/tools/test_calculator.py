"""The calculator computes everyday notation exactly; no text makes it run forever or executes code."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mindstream_evals.conformance import tool as promises
from mindstream_evals.conformance.samples import Promise

from mindstream.errors import ToolError
from mindstream.tools.calculator import calculator
from mindstream.tools.child import MAX_CHILDREN, run_child
from mindstream.tools.tool import tool


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("1/3 + 1/6", "0.5"),
        ("10/3", "10/3 ≈ 3.333333333"),
        ("1,200 × 3²", "10800"),
        ("15% of 80", "12"),
        ("80 + 15%", "92"),
        ("7 % 3", "1"),
        ("-5 % 3 + 2 * 7 mod 3", "3"),
        ("-3^2", "-9"),
        ("2½ * 4", "10"),
        ("sqrt(16/9)", "4/3 ≈ 1.333333333"),
        ("sin(30°)", "0.5"),
        ("log(1000) + log(8, 2)", "6"),
        ("$120 * 15%", "18"),
        ("5 km + 3 km", "8 km"),
        ("（２＋３）×４", "20"),
        ("2 + 2 = 5", "false: the sides differ by -1"),
    ],
)
async def test_arithmetic_in_everyday_notation_is_exact(text: str, result: str) -> None:
    assert await calculator(text) == result


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("2x + 3 = 11", "4"),
        ("Toby = 2*Thomas-10; Rebecca = Toby-8; Thomas + Toby + Rebecca = 157", "Toby = 64\nThomas = 37\nRebecca = 56"),
        ("x + y = 10, x - y = 2", "x = 6\ny = 4"),
        ("bat = ball + 1 and bat + ball = 1.1", "bat = 1.05\nball = 0.05"),
        ("30% of x = 45", "150"),
        ("小明 = 3*2; 小明 + 1", "小明 = 6\n7"),
        ("x + y = 3", "x = 3 - y\ny can be anything"),
        ("x = 1; x = 2", "no solution: the equations contradict one another"),
    ],
)  # fmt: skip
async def test_linear_equations_need_no_package(text: str, result: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    assert await calculator(text) == result


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("x^2 + y^2 = 25; y = x + 1", "x = -4, y = -3\nx = 3, y = 4"),
        ("1000*1.05^t = 2000", "t = -log(2)/(-log(21) + log(20)) ≈ 14.20669908"),
        ("cos(x) = x", "x ≈ 0.7390851332\nfound by approaching; there may be others"),
    ],
)
async def test_other_equations_are_solved_in_a_separate_process(text: str, result: str) -> None:
    pytest.importorskip("sympy")
    assert await calculator(text) == result


@given(st.lists(st.tuples(st.sampled_from("+-*/"), st.integers(1, 10**6)), min_size=1, max_size=8))
async def test_results_agree_with_fractions(steps: list[tuple[str, int]]) -> None:
    text, value = "1", Fraction(1)
    for sign, number in steps:
        text = f"({text}) {sign} {number}"
        value = {"+": value + number, "-": value - number, "*": value * number, "/": value / number}[sign]
    assert await calculator(f"{text} = {value.numerator}/{value.denominator}") == "true"


HOSTILE = {
    "a tower": ("9**9**9", "too large"),
    "a root of a giant": ("(10^3000)^(1/3) * 10^3500", "too large"),
    "a factorial": ("99999!", "factorial"),
    "brackets": ("(" * 900 + "1" + ")" * 900, "nested"),
    "powers": ("(1+" * 60 + "1" + ")" * 60, "deep"),
    "10 MB": ("1+" * 5_000_000, "characters"),
    "code": ("__import__('os').system('touch here')", "cannot be read"),
    "no number": ("10^308 * exp(700) * exp(700)", "too large"),
    "two meanings": ("6/2(1+2)", "can mean"),
    "words": ("how many sheep are left", "'many' is misplaced: words are not understood"),
    "two numbers": ("2 3", "'3' is misplaced: write an operator"),
    "a number after a name": ("x 3", "'3' is misplaced: write an operator"),
    "division by zero": ("1/(2-2)", "zero"),
    "equations": ("a=1;" * 100, "at most"),
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_hostile_expressions_are_refused_at_once(name: str) -> None:
    text, says = HOSTILE[name]
    with pytest.raises(ToolError, match=says):
        await calculator(text)


@given(st.text(alphabet="0123456789.,+-*/^%!()=; xyeé°½√\n", max_size=30))
async def test_any_text_gives_a_result_or_a_tool_error(text: str) -> None:
    from mindstream.tools.calculator import NotLinear, evaluate, read_formulas, written_sum

    try:
        for formula in read_formulas(text):
            for side in formula:
                written_sum(evaluate(side))
    except (ToolError, NotLinear):
        pass


async def test_endless_work_is_ended_with_its_process(tmp_path: Path) -> None:
    script = tmp_path / "spin.py"
    script.write_text("def work(given):\n    while True: pass")
    with pytest.raises(ToolError, match=r"longer than 3 seconds|over 1 CPU seconds"):
        await run_child(script, "work", None, seconds=1, megabytes=500)
    script.write_text("def work(given): bytearray(10**10)")
    with pytest.raises(ToolError, match=r"more memory|over 500 MB"):
        await run_child(script, "work", None, seconds=5, megabytes=500)


async def test_concurrent_child_processes_are_limited(tmp_path: Path) -> None:
    script = tmp_path / "count.py"
    script.write_text(
        "import os, pathlib, time\n"
        "def work(given):\n"
        "    folder = pathlib.Path(given); mine = folder / str(os.getpid()); mine.touch(); time.sleep(.1)\n"
        "    found = len(list(folder.iterdir())); mine.unlink(); return found"
    )
    (tmp_path / "working").mkdir()
    told = await asyncio.gather(
        *(
            run_child(script, "work", str(tmp_path / "working"), seconds=20, megabytes=500)
            for _ in range(3 * MAX_CHILDREN)
        )
    )
    assert 1 <= max(told) <= MAX_CHILDREN


async def test_the_child_process_gets_no_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    script = tmp_path / "show.py"
    script.write_text("import os\ndef work(given): return sorted(os.environ)")
    assert not {"OPENAI_API_KEY", "HOME"} & set(await run_child(script, "work", None, seconds=5, megabytes=500))
    assert "OPENAI_API_KEY" in os.environ


@pytest.mark.parametrize("promise", promises.PROMISES, ids=lambda each: each.__name__)
async def test_the_calculator_satisfies_the_tool_contract(promise: Promise[promises.Trial]) -> None:
    @asynccontextmanager
    async def opened() -> AsyncIterator[promises.Trial]:
        yield promises.Trial(tool(calculator), '{"expression": "1 + 1"}', '{"expression": 7}')

    await promise(opened)


@pytest.mark.parametrize(
    ("text", "found"),
    [("gcd(12345678901.5, 3)", "12345678901.5"), ("lcm(1/3, 2)", "1/3 ≈ 0.3333333333"), ("gcd(10^400/7, 2)", "≈ 14")],
)
async def test_a_number_that_should_be_whole_is_named_with_all_its_digits(text: str, found: str) -> None:
    with pytest.raises(ToolError, match=re.escape(f"expected a whole number, found {found}")):
        await calculator(text)
