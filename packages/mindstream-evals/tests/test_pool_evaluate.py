"""`pool evaluate`: workplaces whose conventions only corrections tell, and what lessons and accepted work are worth."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from fake_endpoint import Asked, FakeEndpoint, Says
from mindstream_evals.sharing.evaluate import (
    Evaluation,
    Person,
    Trial,
    curves,
    expected_cost,
    is_right,
    number_in,
    summary,
)
from mindstream_evals.sharing.experience import ARMS, Arm
from mindstream_evals.sharing.planting import plant, planting_summary
from mindstream_evals.sharing.workplaces import DEPARTMENTS, WORKPLACES, Bikes, Workplace, bike_rules
from running import mistaken
from running import run as run_command

from mindstream import InputError, ModelUnavailable
from mindstream.models.model import Call, Part, Piece, Request, Usage
from mindstream.models.roles import Models
from mindstream.models.rules import Rules
from mindstream.sharing.lessons import lessons_of
from mindstream.sharing.pool import Pool

EVERY = pytest.mark.parametrize("place", DEPARTMENTS)


class Obedient:
    """Answers right if its prompt holds every sentence that the question needs; notes down what a person said."""

    name = "obedient"

    def __init__(self, place: Workplace, fails_at: int = -1) -> None:
        self.place, self.fails_at, self.asked = place, fails_at, list[Request]()

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        self.asked.append(request)
        if len(self.asked) == self.fails_at:
            raise ModelUnavailable("the endpoint is down")
        text = "\n".join(message.text for message in request.messages)
        keeps = {"keep_lessons": self._lessons, "keep_notes": self._notes, "extract_work_facts": self._facts}
        yield Piece(keeps.get(request.prompt.label(), self._answer)(text))
        yield Usage(len(text) // 4, 10)

    def _answer(self, text: str) -> str:
        asked = text[text.rindex(self.place.about) :]
        task = next(each for each in (*self.place.training, *self.place.tests) if each.question in asked)
        knows = all(self.place.says[name] in text for name in task.needs)
        return f"ANSWER: {task.value if knows else -1}"

    def _said(self, text: str) -> list[str]:
        return [each for each in (*self.place.says.values(), *self.place.mistakes.values()) if each in text]

    def _lessons(self, text: str) -> str:
        lessons, _, work = text.partition("<task>")
        new = [each for each in dict.fromkeys(self._said(work)) if each not in lessons]
        return json.dumps({"edits": [{"action": "add", "text": each, "basis": "person"} for each in new]})

    def _notes(self, text: str) -> str:
        return "\n".join(dict.fromkeys(self._said(text))) or "UNCHANGED"

    def _facts(self, text: str) -> str:
        known, _, talk = text.partition("<conversation>")
        new = [each for each in dict.fromkeys(self._said(talk)) if each not in known]
        return json.dumps({"facts": [{"text": each} for each in new]})


def evaluation(folder: Path, place: str = "database", model: Obedient | None = None, **more: object) -> Evaluation:
    made = WORKPLACES[place](5, more.get("training", 8))
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


async def test_each_arm_is_shown_its_own_form_of_the_same_training(tmp_path: Path) -> None:
    model = Obedient(WORKPLACES["database"](5))
    found = await run(evaluation(tmp_path, model=model), *ARMS)
    assert [summary(found[arm])["right"] for arm in ARMS] == [0, 0, 12, 12, 12, 12]
    assert list(found) == ["training", *ARMS]
    texts = ["\n".join(message.text for message in each.messages) for each in model.asked]
    marks = ("confirmed by", "notes.md:", "Known facts:", "#E1 =")
    assert [sum(mark in text for text in texts[-72:]) for mark in marks] == [24, 12, 12, 0], "no tool was called"


async def test_in_a_company_the_ten_nearest_facts_lack_rules_that_the_lessons_have(tmp_path: Path) -> None:
    found = await run(evaluation(tmp_path, "company", training=24), "none", "lessons", "notes", "facts")
    right = {arm: summary(trials)["right"] for arm, trials in found.items()}
    assert (right["none"], right["lessons"], right["notes"]) == (0, 12, 12)
    assert 0 < right["facts"] <= 9
    assert summary(found["training"])["right_at_first"] > 8, "one correction serves all later tasks of the department"


async def test_tests_of_several_arms_are_asked_in_mixed_order(tmp_path: Path) -> None:
    model = Obedient(WORKPLACES["database"](5))
    await run(evaluation(tmp_path, model=model, at_once=1), "none", "notes")
    shows = ["notes.md:" in "".join(message.text for message in each.messages) for each in model.asked[-24:]]
    assert shows != sorted(shows) and shows != sorted(shows, reverse=True)


async def test_arms_that_train_alone_learn_from_their_own_attempts(tmp_path: Path) -> None:
    found = await run(evaluation(tmp_path, separate=True), "none", "lessons", "notes")
    corrected = {name: summary(trials)["corrections"] for name, trials in found.items()}
    assert corrected["training lessons"] == corrected["training notes"] < corrected["training none"]
    assert [summary(found[arm])["right"] for arm in ("none", "lessons", "notes")] == [0, 12, 12]
    drawn = curves(found, wrong=False)
    assert drawn["training none"][0] == drawn["training lessons"][0] and drawn["training lessons"][-1] == 0
    assert {name: curve[-1] for name, curve in curves(found, wrong=True).items()} == {
        "none": 1,
        "lessons": 0,
        "notes": 0,
    }


async def test_a_process_with_another_arm_and_model_uses_the_stored_training(tmp_path: Path) -> None:
    place = WORKPLACES["tool"](5)
    first = await evaluation(tmp_path, "tool").run(["training"], lambda done, total: None)
    assert list(first) == ["training"]
    other = Obedient(place)
    other.name = "another"
    found = await run(evaluation(tmp_path, "tool", model=other), "facts")
    assert summary(found["facts"])["right"] == 12
    assert len(other.asked) == 8 + 12, "one extraction for each training task, and the tests"


@pytest.mark.parametrize("fails_at", [7, 10, 20])
async def test_after_a_model_failed_the_same_call_continues_and_counts_nothing_twice(
    tmp_path: Path, fails_at: int
) -> None:
    place = WORKPLACES["database"](5)
    with pytest.raises((ModelUnavailable, ExceptionGroup)):
        await run(evaluation(tmp_path, model=Obedient(place, fails_at=fails_at)), "lessons", "notes")
    whole, rest = Obedient(place), Obedient(place)
    expected = await run(evaluation(tmp_path / "other", model=whole), "lessons", "notes")
    found = await run(evaluation(tmp_path, model=rest), "lessons", "notes")
    assert found == expected and len(rest.asked) < len(whole.asked)
    again = Obedient(place)
    assert await run(evaluation(tmp_path, model=again), "lessons", "notes") == found and not again.asked


async def test_a_task_that_was_learned_but_not_stored_is_not_learned_again(tmp_path: Path) -> None:
    one = evaluation(tmp_path)
    found = await run(one, "lessons")
    rows = (one.folder / "pool.jsonl").read_text().splitlines(keepends=True)
    (one.folder / "pool.jsonl").write_text("".join(rows[:-1]))  # as if the process had ended before the last row
    model = Obedient(WORKPLACES["database"](5))
    again = await run(evaluation(tmp_path, model=model), "lessons")
    assert not model.asked and again["training"][-1].noted == "learned before"
    async with Pool.open(one.folder / "pool-data", "work") as pool:
        lessons = await lessons_of(pool, "owner", retired=True)
    assert len(lessons) == len({each.text for each in lessons}) and again["lessons"] == found["lessons"]


async def test_an_earlier_attempt_is_shown_with_the_correction_and_calls_are_numbered_on(tmp_path: Path) -> None:
    class Looking(Obedient):
        async def reply(self, request: Request) -> AsyncGenerator[Part]:
            if request.prompt.label() == "act_on_task" and request.messages[-1].role != "tool":
                self.asked.append(request)
                yield Call("sql", '{"query": "SELECT 1"}')
                yield Usage(1, 1)
                return
            async for part in super().reply(request):
                yield part

    model = Looking(WORKPLACES["database"](5))
    await run(evaluation(tmp_path, model=model, training=1, tests=1), "exemplars")
    texts = ["\n".join(message.text for message in each.messages) for each in model.asked]
    again = next(text for text in texts if "Your earlier attempt was not right" in text)
    assert "#E1 = sql[SELECT 1]\nAnswer: ANSWER: -1" in again and "A person said:" in again
    assert "You can make 24 calls in all, at most 8 in one reply, in at most 11 replies" in again
    kept = next(text for text in texts if "You keep the lessons" in text)
    assert "call: E1 = sql" in kept and "call: E2 = sql" in kept and "After that, the result was accepted." in kept
    assert "= sql[SELECT 1]\nAnswer: ANSWER:" in texts[-2], "the test shows the accepted work"


def test_a_tenth_of_the_corrections_is_false_and_states_another_convention() -> None:
    place = WORKPLACES["database"](5)
    before, false = list[str](), list[bool]()
    person = Person(place, 0.1, 0.6)
    for task in place.training:
        told = list[str]()
        for _ in task.needs:
            correction, is_false = person.correct(task, told, before)
            false.append(is_false)
            told.append(correction)
            assert is_false == (correction not in place.says.values())
            if is_false:
                assert correction in place.mistakes.values()
                break
        before += told
    assert false.index(True) == 3 and 0.08 <= sum(false) / len(false) <= 0.15


async def test_a_false_lesson_is_retired_after_at_most_three_contradicting_verdicts(tmp_path: Path) -> None:
    """The state machine alone: a scripted model names the lessons that the person's words are against."""

    class Contradicting(Obedient):
        def _lessons(self, text: str) -> str:
            edits = json.loads(super()._lessons(text))["edits"]
            lessons, _, work = text.partition("<task>")
            for name, mistake in self.place.mistakes.items():
                is_against = self.place.says[name] in work and mistake not in work
                numbers = re.findall(rf"^L(\d+) [^\n]*{re.escape(mistake)}", lessons, re.MULTILINE)
                if is_against and mistake != self.place.says[name] and numbers:
                    edits.append({"action": "contradict", "lessons": list(map(int, numbers))})
            return json.dumps({"edits": edits[:8]})

        def _answer(self, text: str) -> str:
            asked = text[text.rindex(self.place.about) :]
            misled = any(each in text and each not in self.place.says.values() for each in self.place.mistakes.values())
            return "ANSWER: -1" if misled and "A person said" not in asked else super()._answer(text)

    place = WORKPLACES["database"](5)
    one = evaluation(tmp_path, model=Contradicting(place), mistaken=0.1)
    found = await run(one, "lessons")
    false = [each for trial in found["training"] for each in trial.told if each not in place.says.values()]
    assert [each for each in false if each in place.mistakes.values()]
    async with Pool.open(one.folder / "pool-data", "work") as pool:
        lessons = await lessons_of(pool, "owner", retired=True)
    wrong = [each for each in lessons if each.text in false]
    assert wrong and all(each.retired and len(each.contradicted_by) <= 3 for each in wrong)
    assert summary(found["lessons"])["right"] == 12


def test_the_command_trains_once_tests_arms_by_other_models_and_draws_curves(
    door: FakeEndpoint, tmp_path: Path
) -> None:
    place = WORKPLACES["tool"](5)
    model = Obedient(place)

    def answer(asked: Asked) -> Says:
        text = "\n".join(str(each["content"]) for each in asked.body["messages"])
        keeps = "You keep the lessons" in text, "notes.md of a team" in text
        return Says(model._lessons(text) if keeps[0] else model._notes(text) if keeps[1] else model._answer(text))

    door.otherwise = answer
    few = ("pool", "evaluate", "--place", "tool", "--seed", "5", "--tests", "4", "--work", tmp_path / "runs")
    assert "--model" in mistaken(run_command(*few, "--arms", "none"))
    assert "conditions: none" in mistaken(run_command(*few, "--arms", "all", "--model", f"{door.url}#any"))
    (price,) = run_command(*few, "--arms", "none,lessons", "--price", "--json", "--model", f"{door.url}#any").rows
    assert price["calls"] > 8 and not door.asked
    (trained, *_) = run_command(*few, "--arms", "training", "--json", "--model", f"{door.url}#one").rows
    assert (trained["arm"], trained["right"]) == ("training", 8)
    asked = len(door.chats)
    rows = run_command(*few, "--arms", "notes", "--json", "--model", f"{door.url}#two").rows
    assert [each["right"] for each in rows if "right_at_first" in each and each["arm"] == "notes"] == [4]
    assert len(door.chats) == asked + 8 + 4, "the training is read from the folder"
    picture = tmp_path / "curves.svg"
    told = run_command(*few, "--arms", "none,lessons,notes", "--model", f"{door.url}#two", "--svg", picture)
    assert told.code == 0 and "corrections in training" in told.out and "2: lessons" in told.out
    assert "tool: wrong test answers, cumulative" in picture.read_text("utf-8")


def test_the_command_makes_planting_attempts(tmp_path: Path) -> None:
    total, *attempts = run_command("pool", "evaluate", "--plant", "12", "--work", tmp_path, "--json").rows
    assert (total["attempts"], total["reached"]) == (12, 0) and len({each["way"] for each in attempts}) == 12
    assert not list(tmp_path.iterdir()), "the data of the attempts are removed"


async def test_planting_attempts_by_users_reach_nobody_and_by_a_member_many(tmp_path: Path) -> None:
    found = planting_summary(await plant(tmp_path / "eve", 60))
    assert (found["attempts"], found["lost"]) == (60, 0) and found["reached"] <= 1
    control = planting_summary(await plant(tmp_path / "member", 24, trusted=True))
    assert control["reached"] >= 12, "the attempts themselves work"


def test_the_expected_cost_grows_with_the_arms() -> None:
    names = {"worker": "openai:gpt-5-mini", "scorer": "openai:gpt-5-mini"}
    few, many = (expected_cost(1, arms, 8, 8, False, names) for arms in (("none",), ARMS))
    assert 0 < few.calls < many.calls and few.tokens < many.tokens
    assert expected_cost(3, ARMS, 8, 8, True, names).calls > 3 * many.calls


async def test_an_unknown_workplace_or_arm_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="workplaces: database, tool, archive"):
        await run(Evaluation("moon", 1, Models(Obedient(WORKPLACES["tool"](1))), tmp_path), "none")
    with pytest.raises(InputError, match="unknown 'all'"):
        await run(evaluation(tmp_path), "all")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="--model"):
        await run(Evaluation("tool", 1, Models(Rules()), tmp_path), "none")


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
