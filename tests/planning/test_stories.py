"""A story of what one person or place has is a formula by its units; what could mean two things is refused."""

from __future__ import annotations

import pytest

from mindstream.planning.rules.arithmetic import read_arithmetic
from mindstream.planning.rules.story import read_story
from mindstream.planning.rules.story_zh import read_chinese_story
from mindstream.tools.calculator import calculator


@pytest.mark.parametrize(
    ("task", "value"),
    [
        ("A hen lays 5 eggs a week. How many eggs does it lay in 4 weeks?", "20"),
        ("There are 6 rows of 15 chairs. 20 chairs are removed. How many chairs are left?", "70"),
        ("Lea has $20. She buys 3 pens at $2.50 each. How much money does she have left?", "12.5"),
        (
            "A shop sells 40 kilos of apples on Monday and 25 kilos on Tuesday. How many kilos does it sell in total?",
            "65",
        ),
        ("A baker had 40 rolls. He sold a quarter of them and ate 2 rolls. How many rolls are left?", "28"),
        ("A pool contains 900 litres. 40 litres leak out each day. How many litres are left after 5 days?", "700"),
        ("Eva packs 48 eggs into boxes of 6. How many boxes does she need?", "8"),
        ("Four sisters share 30 euros equally. How much does each get?", "7.5"),
        ("A lamp costs 60 euros. It is reduced by 15%. What does it cost now?", "51"),
        ("Jon earns 10 euros per hour and works 6 hours a day. How much does he earn in 5 days?", "300"),
        ("果园里有8行树，每行15棵，一共有多少棵？", "120"),
        ("公交车上有20人，下了5人，上了8人，现在有多少人？", "23"),
        ("有3盒鸡蛋，每盒12个，吃了5个，还剩几个？", "31"),
    ],
)
async def test_a_story_is_worked_out_by_its_units(task: str, value: str) -> None:
    formula = read_story(task) or read_chinese_story(task)
    assert formula is not None and await calculator(formula) == value


@pytest.mark.parametrize(
    "task",
    [
        "Jan has 12 apples. He gives 4 apples to Ann. How many apples does Ann have?",
        "A shop has 50 loaves. It sells 20 in May and 15 in June. How many did it sell in June?",
        "There are 30 birds. 5 birds fly away. How many birds are there?",
        "Lena weighed 60 kg. She weighs 55 kg. How much does Lena weigh?",
        "A hall has 12 rows of 20 seats. 15 seats are broken. How many rows are left?",
        "A cyclist rides 15 km per hour for 40 minutes. How far does she ride?",
        "There are 8 boys and 7 girls in a class. How many children are there?",
        "Eva packs 50 eggs into boxes of 6. How many boxes does she need?",
        "Tom has 5 coins. He spends 8 coins. How many coins are left?",
        "Sara bought 3 shirts for 60 euros. How much does each shirt cost?",
        "Ben had 10 coins. He lost 3 coins and found 2 coins. How many coins did he lose?",
        "小明有12支铅笔，给了小红4支，还剩几支？",
        "小明有10本书，小红有5本书，还剩几本？",
    ],
)
def test_a_story_that_could_mean_something_else_is_refused(task: str) -> None:
    assert read_story(task) is None and read_chinese_story(task) is None


@pytest.mark.parametrize(
    ("task", "value"),
    [
        ("How many grams are there in 2.5 kg?", "2500 grams"),
        ("5 miles in kilometres", "8.04672 kilometres"),
        ("2 hours - 30 minutes", "90 minutes"),
        ("3.5公里是多少米?", "3500 米"),
        ("What is 20 plus 4, divided by 3?", "8"),
        ("50减去8再乘以2等于多少?", "84"),
        ("Subtract 9 from 40", "31"),
        ("What is three quarters of 88?", "66"),
    ],
)
async def test_units_and_further_steps_are_formulas(task: str, value: str) -> None:
    formula = read_arithmetic(task)
    assert formula is not None and await calculator(formula) == value


def test_units_of_two_kinds_are_not_converted() -> None:
    assert read_arithmetic("Convert 20 kg to litres") is None and read_arithmetic("3 km + 2 hours") is None
