"""The contest: both sides get the same lines on the same models; finished parts are kept; judges see no names."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from mindstream_evals.contest.contest import (
    COACH,
    OPPONENTS,
    PLAIN,
    RECENT,
    SUMMARY,
    Terms,
    by_people,
    estimate,
    interval,
    read_talks,
    run_contest,
    score,
)

from mindstream.coach.packs.load import load
from mindstream.errors import InputError, SettingsError
from mindstream.models.model import Part, Piece, Request, Usage
from mindstream.models.roles import Models
from mindstream.models.rules import Rules
from mindstream.models.wrappers.meter import Meter

TALKS = [
    {"id": "a", "who": "a <b>nurse</b>", "lines": [{"text": "I lie awake."}, {"text": "It went well.", "session": 2}]},
    {"id": "b", "lines": [{"text": "Hello!"}]},
]
RESULT = ("talks", "coach_preferred", "coach_worse", "preference")


class Scripted:
    """Answer as both sides, and as a judge that prefers the text "coach"; count the calls."""

    name = "scripted"

    def __init__(self, likes: str = "from the coach") -> None:
        self.asked: list[Request] = []
        self.likes = likes

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        self.asked.append(request)
        label, prompt = request.prompt.label(), request.prompt
        if label == "judge":
            liked = "A" if self.likes in prompt.a else "B" if self.likes in prompt.b else "same"  # type: ignore[attr-defined]
            yield Piece(json.dumps({"why": "so", "preferred": liked}))
        elif label == "grade_answer":
            yield Piece(json.dumps({"grade": "right" if prompt.key in prompt.answer else "wrong"}))  # type: ignore[attr-defined]
        else:
            told = {
                "summarise": "They lie awake.",
                "talk": "A word from the coach.",
                "plain_agent": "A word.",
                "think": '{"thought": "t"}',
            }
            yield Piece(told.get(label, "no"))
        yield Usage(100, 10, 0.0)


@pytest.fixture
def talks(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "talks.json"
    path.write_text(json.dumps(TALKS), "utf-8")
    return path


async def test_both_sides_get_the_same_lines_and_the_judge_sees_no_names(talks: Path, folder: Path) -> None:
    model, told = Scripted(), list[str]()
    terms = Terms(talks, folder / "out", judge="judge")
    metered = Models(Meter(model, lambda _: None), {"judge": model})
    found = await run_contest(metered, load("sleep"), terms, told.append)
    assert [found[PLAIN][name] for name in RESULT] == [2, 2, 0, 1.0]
    assert (found[PLAIN]["turns"], found[PLAIN]["tokens_a_turn"], found[PLAIN]["cached_at_a_tenth"]) == (3, 110, 110)
    assert found[COACH]["tokens_a_turn"] > 220, "reasoner and safety calls are counted"
    plain = [each for each in model.asked if each.prompt.label() == "plain_agent"]
    assert any("(the next day)" in message.text for each in plain for message in each.messages)
    for judged in (each.prompt for each in model.asked if each.prompt.label() == "judge"):
        assert "plain" not in judged.a + judged.b  # type: ignore[attr-defined]
    assert len(told) == 6

    model.asked.clear()
    assert await run_contest(Models(model, {"judge": model}), load("sleep"), terms, told.append) == found
    assert model.asked == [], "finished parts are not repeated"


async def test_opponents_see_all_a_window_or_a_summary_and_answers_are_graded(talks: Path, folder: Path) -> None:
    path, model = talks.with_name("weeks.json"), Scripted()
    lines: list[dict[str, object]] = [{"text": "It began in May."}]
    lines += [{"text": "sleep " * 650}] * 14
    lines.append({"text": "Still awake.", "session": 2, "days": 7})
    asked: dict[str, object] = {"text": "When did it begin?", "session": 3, "days": 7, "key": "coach"}
    path.write_text(json.dumps([{"id": "w", "lines": [*lines, asked]}]), "utf-8")
    terms = Terms(path, folder / "out", judge="judge", against=tuple(OPPONENTS))
    found = await run_contest(Models(model), load("sleep"), terms, lambda _: None)
    assert list(found) == [COACH, PLAIN, RECENT, SUMMARY]
    assert [found[side]["right"] for side in found] == [1.0, 0.0, 0.0, 0.0], "the key is graded for both sides"
    shown = [each.messages for each in model.asked if each.prompt.label() == "plain_agent"]
    last = [" ".join(m.text for m in messages) for messages in shown if messages[-1].text == asked["text"]]
    assert sorted(["May" in text for text in last]) == [False, False, True], (
        "only the opponent with the whole conversation sees the first day"
    )
    assert sum("summed up: They lie awake." in text for text in last) == 1
    assert not any("coach" in each.prompt.utterance for each in model.asked if each.prompt.label() == "plain_agent")  # type: ignore[attr-defined]


async def test_an_indifferent_judge_prefers_neither(talks: Path, folder: Path) -> None:
    model = Scripted(likes="something else")
    found = await run_contest(
        Models(model, {"judge": model}), load("sleep"), Terms(talks, folder / "out", judge="j"), lambda _: None
    )
    assert [found[PLAIN][name] for name in RESULT] == [2, 0, 0, 0.0]


async def test_the_page_for_human_judges_does_not_name_the_sides(talks: Path, folder: Path) -> None:
    out = folder / "out"
    found = await run_contest(Models(Scripted()), load("sleep"), Terms(talks, out), lambda _: None)
    page = (out / "judge.html").read_text("utf-8")
    assert "preference" not in found[PLAIN] and "plain" not in page and "&lt;b&gt;nurse" in page
    first = "A" if page.index("from the coach") < page.index("<h3>B</h3>") else "B"
    a, b = re.findall(r'name="([^"]+)" value="A"', page)
    (out / "people1.json").write_text(json.dumps({a: first, b: "same", "c/1": "A"}), "utf-8")
    found = await run_contest(Models(Scripted()), load("sleep"), Terms(talks, out), lambda _: None)
    assert found[PLAIN]["by_talk"] == {"a": 1.0, "b": 0.0}
    (out / "people2.json").write_text("[1]", "utf-8")
    with pytest.raises(InputError, match="not a result saved from judge"):
        by_people(out)
    (out / "people2.json").unlink()
    (out / "people2.json").mkdir()
    with pytest.raises(InputError, match=r"people2\.json cannot be read: Is a directory"):
        by_people(out)


@pytest.mark.parametrize(
    "broken", ["{", "{}", '[{"id": "a"}]', '[{"id": "../a", "lines": [{"text": "x"}]}]', "twice"], ids=str
)
def test_an_invalid_conversation_file_is_refused_by_name(folder: Path, broken: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "talks.json"
    path.write_text(json.dumps([TALKS[1], TALKS[1]]) if broken == "twice" else broken, "utf-8")
    with pytest.raises(InputError, match=r"talks\.json"):
        read_talks(path)


async def test_a_missing_file_and_a_missing_model_are_refused(talks: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.json: cannot be read"):
        read_talks(talks.with_name("nowhere.json"))
    with pytest.raises(SettingsError, match="needs a model"):
        await run_contest(Models(Rules()), load("sleep"), Terms(talks, talks.parent / "out"), lambda _: None)


def test_the_estimate_grows_with_the_conversation(talks: Path) -> None:
    found = estimate(read_talks(talks))
    assert found["turns"] == 3 and found[COACH] > found[PLAIN] > 1_000


def test_the_interval_contains_the_mean_and_votes_are_averaged() -> None:
    low, high = interval([1.0, 1.0, -1.0, 0.0])
    assert low <= 0.25 <= high and score([COACH, PLAIN]) == 0 and score([COACH, "same"]) == 0.5
