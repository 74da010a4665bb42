"""Without a model: what a small grammar reads is planned and answered, and the rest is refused in words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mindstream.errors import ToolError
from mindstream.models.rules import Rules
from mindstream.planning.make_plan import MakePlan
from mindstream.planning.rules.arithmetic import read_arithmetic
from mindstream.planning.rules.plan_by_rules import plan_by_rules
from mindstream.planning.rules.word_problem import read_word_problem
from mindstream.planning.rules.word_problem_zh import read_chinese_problem
from mindstream.planning.solve import solve
from mindstream.tools.calculator import calculator
from mindstream.tools.compare import compare
from mindstream.tools.extract import extract
from mindstream.tools.named import named_tools

DOCUMENTS = Path(__file__).parents[2] / "examples" / "documents"
QUESTIONS = json.loads(Path(__file__).with_name("rule_questions.json").read_text("utf-8"))


async def test_questions_over_a_folder_are_answered_or_refused_and_never_answered_wrongly() -> None:
    async with named_tools(["calculator", f"documents:{DOCUMENTS}", "extract", "compare"]) as tools:
        for each in QUESTIONS:
            solution = await solve(each["question"], tools=tools, models=Rules())
            said = "" if solution.stopped else solution.answer
            wanted = each["answer"] or ""
            assert (wanted in said) if wanted else not said, (each, said)


def test_a_chain_is_planned_as_a_search_and_an_extraction_for_each_link() -> None:
    tools = ("search_documents[query=…, count?=…]: Search.", "extract[what=…, of=…, text=…]: Find.")
    text = plan_by_rules(
        MakePlan(task="What is the hometown of the winner of the men's 2024 Australian Open?", tools=tools)
    )
    steps = [line for line in text.splitlines() if line.startswith("#")]
    assert steps[0] == "#E1 = search_documents[winner of men's 2024 Australian Open]"
    assert steps[2] == "#E3 = search_documents[hometown of #E2]"
    assert '"what": "hometown", "of": "#E2", "text": "#E3"' in steps[3] and len(steps) == 4


def test_what_is_missing_is_named() -> None:
    text = plan_by_rules(MakePlan(task="What is the capital of France?", tools=("calculator[expression]: Compute.",)))
    assert text.endswith("need a tool that searches (documents:DIR, web, wikipedia or recall) and the tool extract.")
    assert "none of them" in plan_by_rules(MakePlan(task="Write a poem. #E1 = search[x]", tools=()))


@pytest.mark.parametrize(
    "task",
    [
        "How old is Jannik Sinner?",
        "Which is not longer, the Danube or the Rhine?",
        "Is Mount Everest higher than K2 and Denali?",
        "What is the capital of France and its population?",
        "What is the capital of the country where the Loire flows?",
        "Is it true that K2 is higher than Everest?",
        "the a of " * 200 + "b",
    ],
)
def test_what_asks_for_more_than_the_grammar_reads_is_not_planned(task: str) -> None:
    tools = ("search_documents[query]: S.", "extract[what]: E.", "compare[which]: C.", "calculator[expression]: C.")
    assert "#E" not in plan_by_rules(MakePlan(task=task, tools=tools))


@pytest.mark.parametrize(
    ("task", "value"),
    [
        ("What is twelve times eight plus three?", "99"),
        ("(3+4)*5", "35"),
        ("12乘以8加3等于多少？", "99"),
        ("百分之十五的二百是多少", "30"),
        ("What's the difference between 100 and 37?", "63"),
        ("How much is two hundred and five minus 17?", "188"),
        ("solve 2x + 3 = 11", "4"),
    ],
)
async def test_formulas_in_words_are_formulas(task: str, value: str) -> None:
    formula = read_arithmetic(task)
    assert formula is not None and await calculator(formula) == value


@pytest.mark.parametrize(
    "task", ["What is 5?", "who is 3 + Ann", "2 apples plus 3 pears", "Norway times 2", "", "2024"]
)
def test_what_is_no_formula_is_none(task: str) -> None:
    assert read_arithmetic(task) is None


@pytest.mark.parametrize(
    ("task", "value"),
    [
        ("Ann has 12 apples. Ben has three times as many apples as Ann. How many apples do they have together?", "48"),
        ("Tom has 5 apples. He buys 3 more apples. He eats 2 of them. How many apples does Tom have now?", "6"),
        ("Sam has 20 coins and Joe has 4 coins. Sam gives 6 coins to Joe. How many coins does Joe have?", "10"),
        ("Mia and Leo earned 90 dollars together. Mia earned twice as much as Leo. How much did Leo earn?", "30"),
        ("Lucy is 7 years older than Mark. Mark is 12 years old. How old is Lucy?", "19"),
        ("小明有十二个苹果，小红的苹果是小明的三倍，他们一共有多少个苹果？", "48"),
        ("小华和小丽一共有30元，小华比小丽多4元。小丽有多少元？", "13"),
    ],
)
async def test_word_problems_with_explicit_quantities_are_equations(task: str, value: str) -> None:
    equations = read_word_problem(task) or read_chinese_problem(task)
    assert equations is not None and (await calculator(equations)).splitlines()[-1] == value


@pytest.mark.parametrize(
    "task",
    [
        "Tom has 5 apples and 3 pears. How many fruits does Tom have?",
        "Tom has 5 apples. Ann has 3 pears. How many apples does Tom have?",
        "Paul ran 5 miles. Kim ran some miles. How many miles did Kim run?",
        "Paul ran 5 miles. How many miles did Kim run?",
        "Ben is 14 years old. His sister is 5 years younger. How old is his sister?",
        "Tom has 5 apples. Ann has 3 apples fewer. How many apples does Ann have?",
        "Tom drinks 2 cups each morning. How many cups does Tom drink?",
        "He has 5 apples. How many apples does Tom have?",
        "A train travels at 60 km/h for 2.5 hours. How far does it go?",
        "小明有12个苹果，小红有一些，小红有几个？",
        "小明有12个苹果，吃了一些，还剩几个？",
    ],
)
def test_a_clause_that_is_not_understood_makes_a_problem_none(task: str) -> None:
    assert read_word_problem(task) is None and read_chinese_problem(task) is None


@pytest.mark.parametrize(
    ("what", "of", "text", "value"),
    [
        ("capital", "Peru", "Lima, the capital of Peru, lies on the coast.", "Lima"),
        ("author", "Dune", "Frank Herbert is the author of Dune, a novel.", "Frank Herbert"),
        ("when founded", "Rome", "Rome was founded in 753 BC.", "753 BC"),
        ("mother", "Mary Shelley", "Mary Shelley was born in 1797; her mother was Mary Jane.", "Mary Jane"),
        ("population", "Oslo", "Oslo was founded around 1040 and has 717,000 inhabitants.", "717,000"),
        ("首都", "中国", "中国的首都是北京。", "北京"),
        ("capital", "France", "The capital of France is not Lyon.", ""),
        ("capital", "France", "The old capital of France was Bourges.", ""),
        ("where born", "Ann Lee", "The sister of Ann Lee was born in Rome.", ""),
        ("where born", "Ann Lee", "Ann Lee's brother was born in Rome.", ""),
        ("length", "the Rhine", "The Rhine valley has a length of 10 km.", ""),
        ("who wrote", "Frankenstein", "Ann Lee wrote a parody of Frankenstein.", ""),
        ("population", "Paris", "Greater Paris has a population of 12 million.", ""),
        ("length", "the pier", "The north pier is 340 metres long.", ""),
        ("lighthouse", "Lindvik", "The lighthouse of Lindvik is 31 metres high.", ""),
        ("oven", "the bakery", "The oven of the bakery was made by Sveba.", ""),
        ("weight", "the Aurora", "The Aurora is 24 metres long and weighs 60 tonnes.", "60 tonnes"),
        ("price", "a bun", "A bun costs 2.80 euros.", "2.80 euros"),
        ("价格", "红茶", "绿茶的价格是18元,红茶的价格是22元。", "22元"),
        ("capital", "France", "The capital of " * 2_000, ""),
    ],
)
def test_only_what_a_sentence_states_of_the_thing_itself_is_extracted(
    what: str, of: str, text: str, value: str
) -> None:
    if value:
        assert extract(what, of, text) == value
    else:
        with pytest.raises(ToolError, match="do not say"):
            extract(what, of, text)


async def test_quantities_are_compared_in_one_unit_and_different_kinds_not_at_all() -> None:
    names = ["A", "B"]
    assert (await compare("more", names, ["2 km", "1,500 metres"])).startswith("A (2 km")
    assert (await compare("less", names, ["6 August 1881", "1797"])).startswith("B")
    assert (await compare("more", names, ["2180万", "5.5 million"])).startswith("A")
    assert (await compare("more", names, ["3 m", "300 cm"])).startswith("neither")
    assert (await compare("difference", names, ["2 km", "1,500 metres"])).startswith("0.5 km (")
    assert (await compare("difference", names, ["3 m", "4 m"])).startswith("it is not")
    with pytest.raises(ToolError, match="two dates"):
        await compare("difference", names, ["1797", "1881"])
    with pytest.raises(ToolError, match="different kinds"):
        await compare("more", names, ["3 m", "3 kg"])
    with pytest.raises(ToolError, match="no number"):
        await compare("more", names, ["high", "3 m"])
