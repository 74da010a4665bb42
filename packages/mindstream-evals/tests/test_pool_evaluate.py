"""`pool evaluate`: workplaces whose conventions only corrections tell, and what lessons and accepted work are worth."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from mindstream_evals.sharing.evaluate import ARMS, Arm, Evaluation, Trial, is_right, number_in, summary
from mindstream_evals.sharing.workplaces import WORKPLACES, Bikes, Workplace, bike_rules

from mindstream import InputError, ModelUnavailable
from mindstream.models.model import Part, Piece, Request, Usage
from mindstream.models.roles import Models

EVERY = pytest.mark.parametrize("place", WORKPLACES)


class Obedient:
    """Answers right if its prompt holds every sentence that the question needs; notes down what a person said."""

    name = "obedient"

    def __init__(self, place: Workplace, fails_at: int = -1) -> None:
        self.place, self.fails_at, self.asked = place, fails_at, 0

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        self.asked += 1
        if self.asked == self.fails_at:
            raise ModelUnavailable("the endpoint is down")
        text = "\n".join(message.text for message in request.messages)
        yield Piece(self._notes(text) if request.prompt.label() == "keep_lessons" else self._answer(text))
        yield Usage(len(text) // 4, 10)

    def _answer(self, text: str) -> str:
        asked = text[text.rindex(self.place.about) :]
        task = next(each for each in (*self.place.training, *self.place.tests) if each.question in asked)
        knows = all(self.place.says[name] in text for name in task.needs)
        return f"ANSWER: {task.value if knows else -1}"

    def _notes(self, text: str) -> str:
        lessons = text.partition("<task>")[0]
        new = [each for each in self.place.says.values() if each in text and each not in lessons]
        return json.dumps({"edits": [{"action": "add", "text": each, "basis": "person"} for each in new]})


def evaluation(folder: Path, place: str = "database", model: Obedient | None = None, **more: object) -> Evaluation:
    made = WORKPLACES[place](5)
    return Evaluation(place, 5, Models(model or Obedient(made)), folder, **more)  # type: ignore[arg-type]


async def run(one: Evaluation, *arms: Arm) -> dict[str, list[Trial]]:
    return await one.run(arms, lambda done, total: None)


@EVERY
async def test_lessons_make_the_test_half_right_and_without_them_nothing_is(place: str, tmp_path: Path) -> None:
    found = {
        arm: summary(trials) for arm, trials in (await run(evaluation(tmp_path, place), "none", "lessons")).items()
    }
    assert (found["none"]["right"], found["lessons"]["right"]) == (0, 12)
    assert found["training"]["right"] == 8
    assert found["training"]["right_at_first"] >= 2, "later training tasks need no correction"


async def test_exemplars_alone_show_work_and_no_lesson(tmp_path: Path) -> None:
    found = await run(evaluation(tmp_path), *ARMS)
    assert [summary(found[arm])["right"] for arm in ARMS] == [0, 0, 12, 12]


async def test_after_a_model_failed_the_same_call_continues_and_asks_nothing_twice(tmp_path: Path) -> None:
    place = WORKPLACES["database"](5)
    with pytest.raises((ModelUnavailable, ExceptionGroup)):
        await run(evaluation(tmp_path, model=Obedient(place, fails_at=20)), "lessons")
    whole, rest = Obedient(place), Obedient(place)
    await run(evaluation(tmp_path / "other", model=whole), "lessons")
    found = await run(evaluation(tmp_path, model=rest), "lessons")
    assert summary(found["lessons"])["right"] == 12 and rest.asked < whole.asked
    again = Obedient(place)
    assert await run(evaluation(tmp_path, model=again), "lessons") == found and again.asked == 0


async def test_mistaken_corrections_are_told_and_then_put_right(tmp_path: Path) -> None:
    found = await run(evaluation(tmp_path, mistaken=1.0), "lessons")
    mistakes = set(WORKPLACES["database"](5).mistakes.values()) - set(WORKPLACES["database"](5).says.values())
    assert mistakes & {each for trial in found["training"] for each in trial.told}
    assert all(trial.right for trial in found["training"])


async def test_an_unknown_workplace_or_arm_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="workplaces: database, tool, archive"):
        await run(Evaluation("moon", 1, Models(Obedient(WORKPLACES["tool"](1))), tmp_path), "none")
    with pytest.raises(InputError, match="unknown 'all'"):
        await run(evaluation(tmp_path), "all")  # type: ignore[arg-type]


@EVERY
@pytest.mark.parametrize("seed", range(5))
def test_training_needs_every_convention_and_nothing_else_tells_them(place: str, seed: int) -> None:
    made = WORKPLACES[place](seed)
    assert {name for each in made.training for name in each.needs} == set(made.says)
    assert (len(made.training), len(made.tests)) == (8, 12)
    assert not {each.question for each in made.training} & {each.question for each in made.tests}
    shown = made.about + "".join(tool.spec.description for tool in made.tools)
    assert not any(says in shown for says in made.says.values())
    assert set(made.mistakes) == set(made.says) and made.mistakes != made.says


@EVERY
def test_a_seed_gives_the_same_workplace_and_another_seed_other_conventions(place: str) -> None:
    assert WORKPLACES[place](7).tests == WORKPLACES[place](7).tests
    assert len({tuple(WORKPLACES[place](seed).says.values()) for seed in range(6)}) == 6


OTHER = {"closed": 1, "units": 77, "tax": 33, "season": 1, "staff": "A", "old_town": ("a1", "zz"), "regular": 9}


@pytest.mark.parametrize("field", OTHER)
def test_each_convention_of_the_database_changes_an_answer(field: str) -> None:
    rules = bike_rules(2)
    bikes = Bikes(2, rules)
    right = {each.question: each.value for each in bikes.tasks()}
    bikes.rules = dataclasses.replace(rules, **{field: OTHER[field]})  # type: ignore[arg-type]
    wrong = {each.question: each for each in bikes.tasks()}
    name = {"old_town": "town"}.get(field, field)
    for question, value in right.items():
        assert is_right(wrong[question].value, value) == (name not in wrong[question].needs), question


@pytest.mark.parametrize(
    ("answer", "number"),
    [
        ("ANSWER: 12", 12),
        ("so…\nANSWER: **1,234.5** euros", 1234.5),
        ("ANSWER: -3", -3),
        ("ANSWER: .5", 0.5),
        ("12", None),
    ],
)
def test_the_last_number_after_the_mark_is_the_answer(answer: str, number: float | None) -> None:
    assert number_in(answer) == number
