"""A rubric is drafted, reviewed, frozen; a grade is a number for each criterion, or the pair is not admitted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pools import CITIES, city_pair, city_pool

from mindstream import InputError
from mindstream.models.ask import ask
from mindstream.models.rules import Rules
from mindstream.models.scripted import Scripted
from mindstream.models.wrappers.repair import Repair
from mindstream.sharing.admission import offer
from mindstream.sharing.draft_question import DraftQuestion
from mindstream.sharing.draft_rubric import DraftRubric
from mindstream.sharing.pool import Pool
from mindstream.sharing.rubric import Rubric, read_rubric


async def drafted() -> Rubric:
    return await ask(Rules(), DraftRubric(domain='verse, and "more"\\'))


def grades(rubric: Rubric, share: float) -> str:
    given = [{"criterion": c.name, "points": share * c.points, "reason": "so"} for c in rubric.criteria]
    return json.dumps({"grades": given})


async def test_a_rubric_goes_to_a_file_and_back() -> None:
    rubric = await drafted()
    assert read_rubric(rubric.text()) == rubric and sum(each.points for each in rubric.criteria) == 100


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("points = 30", "points = 31", "sum to 101"),
        ("others = true\n", "", "other agents"),
        ('name = "right"', 'name = "clear"', "same name"),
        ("threshold = 60", "threshold = 600", "threshold"),
        ("threshold = 60", "threshold = ", "no TOML"),
        ("threshold = 60", "treshold = 60", "treshold"),
    ],
)
async def test_a_bad_rubric_is_refused_with_the_reason(old: str, new: str, said: str) -> None:
    text = (await drafted()).text()
    assert old in text
    with pytest.raises(InputError, match=said):
        read_rubric(text.replace(old, new, 1))


async def test_a_frozen_rubric_changes_only_as_another_version(folder: Path) -> None:
    async with city_pool(folder) as pool:
        first = (await pool.state()).rubrics[0]
        assert await pool.freeze_rubric(first, "olga") == 1
        judged = await offer(pool, city_pair(CITIES[0]), "ann", Rules())
        strict = first.model_copy(update={"threshold": 90})
        with pytest.raises(InputError, match="cannot change it"):
            await pool.freeze_rubric(strict, "ann")
        assert await pool.freeze_rubric(strict, "olga") == 2
        later = await offer(pool, city_pair(CITIES[1]), "ann", Rules())
    assert (judged.rubric, judged.verdict, later.rubric, later.verdict) == (1, "admitted", 2, "rejected")
    assert later.reasons[0] == "70 points, and 90 are wanted" and "nobody has read" in later.reasons[1]


async def test_a_rubric_without_numbers_never_admits(folder: Path) -> None:
    async with city_pool(folder) as pool:
        prose = Repair(Scripted({"grade_pair": ["It is a wonderful pair, I would give it full marks."] * 3}))
        judged = await offer(pool, city_pair(CITIES[0]), "ann", prose)
        assert judged.verdict == "rejected" and "gave no grades" in judged.reasons[0]
        assert await pool.recall("Which river?", 1, reader="ann") == []


async def test_prose_is_mended_where_the_scorer_does_better_when_told(folder: Path) -> None:
    async with city_pool(folder) as pool:
        rubric = (await pool.state()).rubrics[0]
        scorer = Repair(Scripted({"grade_pair": ["Lovely!", grades(rubric, 0.9)]}))
        judged = await offer(pool, city_pair(CITIES[0]), "ann", scorer)
        assert (judged.verdict, judged.score, judged.model) == ("admitted", 90.0, "scripted")


@pytest.mark.parametrize(
    "broken", ["one is missing", "one is twice", "too many points", "a number in words", "infinite"]
)
async def test_grades_that_do_not_fit_the_rubric_are_none(folder: Path, broken: str) -> None:
    async with city_pool(folder) as pool:
        rubric = (await pool.state()).rubrics[0]
        given = json.loads(grades(rubric, 1))["grades"]
        match broken:
            case "one is missing":
                given.pop()
            case "one is twice":
                given[1] = given[0]
            case "too many points":
                given[0]["points"] = 100
            case "a number in words":
                given[0]["points"] = "ten or so"
            case _:
                given[0]["points"] = float("inf")
        judged = await offer(
            pool, city_pair(CITIES[0]), "ann", Scripted({"grade_pair": [json.dumps({"grades": given})]})
        )
        assert judged.verdict == "rejected" and "gave no grades" in judged.reasons[0]


async def test_a_question_is_drafted_and_is_not_the_answer() -> None:
    model = Repair(Scripted({"draft_question": ['{"question": "The Seine."}', '{"question": "Which river is it?"}']}))
    drafted = await ask(model, DraftQuestion(domain="rivers", answer="the seine"))
    assert drafted.question == "Which river is it?"


async def test_two_processes_freeze_one_after_another(folder: Path) -> None:
    async with city_pool(folder) as pool, Pool.open(folder, "cities") as other:
        first = (await pool.state()).rubrics[0]
        await pool.freeze_rubric(first.model_copy(update={"threshold": 50}), "olga")
        assert await other.freeze_rubric(first.model_copy(update={"threshold": 55}), "olga") == 3
        assert [each.threshold for each in (await pool.state()).rubrics] == [60, 50, 55]
