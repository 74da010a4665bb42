"""An evaluation: blind pairs in both orders, a control that loses, claims, a person's answers, no repeated calls."""

from __future__ import annotations

import asyncio
import csv
import json
from collections.abc import AsyncGenerator, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hamlet import hamlet, live
from mindstream_evals.town.evaluate import (
    SHUFFLED,
    CheckClaims,
    Design,
    Evaluation,
    Judged,
    JudgePair,
    Pair,
    count_asked,
    judged_by_people,
    pairs_of,
)
from mindstream_evals.town.questions import (
    Answer,
    draw_questions,
    load_questions,
    read_person,
    read_verdicts,
    write_questions,
)
from mindstream_evals.town.report import Findings, report
from mindstream_town.inspect.history import read_history
from mindstream_town.prompts.conduct import AnswerInterview
from mindstream_town.residents.interview import CONDITIONS, open_interview

from mindstream.errors import InputError, ModelUnavailable
from mindstream.evaluation_cache import EvaluationCache
from mindstream.models.model import Part, Piece, Request
from mindstream.models.roles import Models
from mindstream.text.words import terms

NOON = 8_640 + 12 * 360
DESIGN = Design(questions=5, claims=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hamlet")
    asyncio.run(live(folder, hamlet(), NOON))
    return folder


class Mind:
    """Answers with identity and memories; judges by the share of an answer that the facts support.

    Args:
        garbled: numbers of calls with an unreadable reply. dies: number of the call from which on it fails.
        loves_first: prefers the first answer.
    """

    name = "a mind"

    def __init__(self, garbled: Collection[int] = (), dies: int = 0, loves_first: bool = False) -> None:
        self.garbled, self.dies, self.loves_first = garbled, dies, loves_first
        self.asked: list[Any] = []

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        await asyncio.sleep(0)  # like a model that answers over a network
        self.asked.append(request.prompt)
        if len(self.asked) == self.dies:
            raise ModelUnavailable("it is gone")
        if len(self.asked) in self.garbled:
            yield Piece("no JSON")
            return
        match request.prompt:
            case AnswerInterview() as ask:
                said = (f"{ask.who} here, asked number {len(self.asked)}.", *ask.memories[:4], *ask.day[:6])
                yield Piece(" ".join(said))
            case JudgePair() as ask:
                yield Piece(json.dumps({"why": "so it is", "better": self._better(ask)}))
            case CheckClaims() as ask:
                named = ask.answer.startswith(ask.who)
                claims = [{"claim": "It has a name.", "fact": int(named)}, {"claim": "It can fly.", "fact": 999}]
                yield Piece(json.dumps({"claims": claims}))

    def _better(self, ask: JudgePair) -> str:
        if self.loves_first:
            return "first"
        known = set(terms(" ".join(ask.facts)))
        first, second = (len(known & set(terms(each))) for each in (ask.first, ask.second))
        mine = [each.startswith(ask.who) for each in (ask.first, ask.second)]
        if mine[0] != mine[1]:
            return "first" if mine[0] else "second"
        return "equal" if first == second else "first" if first > second else "second"


class Opened:
    """An evaluation of the hamlet with a scripted model."""

    def __init__(self, folder: Path, mind: Any, design: Design, ledger: Path | None, **more: Any) -> None:
        self.folder, self.models, self.design, self.ledger, self.more = folder, Models(mind), design, ledger, more

    async def __aenter__(self) -> Evaluation:
        history = await read_history(self.folder, NOON)
        self._interview = open_interview(self.folder, models=self.models)
        return Evaluation(
            await self._interview.__aenter__(), history, self.models, self.design, load_questions(),
            EvaluationCache(self.ledger), **self.more,
        )  # fmt: skip

    async def __aexit__(self, *error: Any) -> None:
        await self._interview.__aexit__(*error)


async def evaluated(
    folder: Path, mind: Any, design: Design = DESIGN, ledger: Path | None = None, **more: Any
) -> Findings:
    async with Opened(folder, mind, design, ledger, **more) as evaluation:
        comparisons = evaluation.comparisons()
        answers = await evaluation.answer(comparisons)
        judged = await evaluation.judge(pairs_of(comparisons, answers))
        checked = await evaluation.check(answers.values()) if design.claims else []
        return report(evaluation.conditions, judged, checked, design.seed)


def test_there_are_five_questions_per_category_and_draws_cover_all_categories() -> None:
    questions = load_questions()
    assert len(questions) == 25 and len({each.category for each in questions}) == 5
    for name in ("Ada Brook", "Ben Hale"):
        assert len({each.category for each in draw_questions(questions, 5, 0, name)}) == 5
    drawn = [draw_questions(questions, 5, 0, name) for name in ("Ada Brook", "Ben Hale", "Cleo Marsh")]
    assert len({tuple(each) for each in drawn}) > 1, "residents get different questions"


async def test_questions_are_filled_with_the_towns_own_names(folder: Path) -> None:
    async with Opened(folder, Mind(), Design(), None) as evaluation:
        text = {each.key: each.question.text for each in evaluation.items()}
    assert len(text) == 75 and not any("{" in each for each in text.values())
    assert "Cleo Marsh" in text["Ben Hale", "memory-1"], "his last conversation partner"
    assert "reading to each other" in text["Cleo Marsh", "plans-5"]
    assert "Tuesday, 12:00" in text["Ada Brook", "plans-1"]


async def test_more_memory_wins_and_the_shuffled_control_loses(folder: Path) -> None:
    found = await evaluated(folder, Mind(), replace(DESIGN, shuffled=True))
    order = [each.condition for each in found.standings]
    assert order[0] in ("full", "no_reflection") and order[-2:] == ["none", SHUFFLED] and found.control_lost
    assert found.agreed == 1.0 and found.first == 0.5
    assert found.kruskal is not None and found.kruskal.p < 0.001 and found.items == 15
    worst = next(each for each in found.dunn if (each.first, each.second) == ("full", SHUFFLED))
    assert worst.z > 0 and worst.adjusted < 0.01
    claims = {each.condition: (each.claims, each.unsupported) for each in found.standings}
    assert claims["full"] == (30, 15), "an unknown fact number supports nothing"
    assert claims[SHUFFLED] == (30, 30)


async def test_a_judge_with_position_bias_finds_no_difference(folder: Path) -> None:
    found = await evaluated(folder, Mind(loves_first=True), replace(DESIGN, shuffled=True))
    assert found.first == 1.0 and found.agreed == 0.0
    assert not any(each.won or each.lost for each in found.standings)
    assert found.kruskal is not None and found.kruskal.p == 1.0


async def test_judges_see_no_condition_and_both_orders_with_the_same_facts(folder: Path) -> None:
    mind = Mind()
    await evaluated(folder, mind, replace(DESIGN, pairs=12))
    asked = [each for each in mind.asked if isinstance(each, JudgePair)]
    turned = {(each.question, each.first, each.second, each.facts) for each in asked}
    assert asked and all((question, two, one, facts) in turned for question, one, two, facts in turned)
    shown = " ".join(message.text for each in asked for message in each.messages())
    assert not any(f"{condition}" in shown for condition in CONDITIONS[1:3])
    assert any("Remembers: " in line and "reading evening" in line for each in asked for line in each.facts)
    day = [line for line in asked[0].facts if "planned for today: " in line or "Planned for later today: " in line]
    hours = {kind: [line.partition(": ")[2][:5] for line in day if kind in line] for kind in ("Was", "later")}
    assert max(hours["Was"]) <= "12:00" < min(hours["later"]), "past and later plans are marked"


async def test_an_interrupted_evaluation_resumes_without_repeated_calls(folder: Path, tmp_path: Path) -> None:
    ledger, design = tmp_path / "kept.jsonl", replace(DESIGN, pairs=18, shuffled=True)
    whole = Mind()
    expected = await evaluated(folder, whole, design)
    calls = 0
    for dies in (2, 5, 12):
        mind = Mind(dies=dies)
        with pytest.raises(ModelUnavailable):
            await evaluated(folder, mind, design, ledger)
        calls += len(mind.asked) - 1
    with ledger.open("a") as out:
        out.write('{"key": "broken o')
    last = Mind()
    assert await evaluated(folder, last, design, ledger) == expected
    assert len(last.asked) + len(ledger.read_text().splitlines()) >= len(whole.asked)
    assert len(last.asked) < len(whole.asked) - 20, "earlier results are kept"
    nothing = Mind()
    assert await evaluated(folder, nothing, design, ledger) == expected and not nothing.asked
    assert calls > 0


async def test_unreadable_verdicts_are_left_out_and_counted(folder: Path) -> None:
    mind = Mind(garbled=range(9, 13))
    async with Opened(folder, mind, replace(DESIGN, pairs=12), None) as evaluation:
        comparisons = evaluation.comparisons()
        judged = await evaluation.judge(pairs_of(comparisons, await evaluation.answer(comparisons)))
        assert evaluation.asked.unreadable > 0 and len(judged) < len(comparisons)


async def test_the_estimate_equals_the_later_number_of_calls(folder: Path, tmp_path: Path) -> None:
    ledger = tmp_path / "kept.jsonl"
    for design in (replace(DESIGN, pairs=18, shuffled=True), replace(DESIGN, pairs=30, shuffled=True)):
        mind = Mind()
        async with Opened(folder, mind, design, ledger) as evaluation:
            counted = await count_asked(evaluation, evaluation.comparisons())
        assert not mind.asked
        await evaluated(folder, mind, design, ledger)
        expected = sum(each.calls for each in counted.by_kind.values())
        assert len(mind.asked) == expected


async def test_answers_of_a_person_are_read_from_a_file(folder: Path, tmp_path: Path) -> None:
    blank = tmp_path / "mine.csv"
    async with Opened(folder, Mind(), Design(), None) as evaluation:
        write_questions(blank, evaluation.items())
    with blank.open() as file:
        rows = list(csv.DictReader(file))
    for row in rows[:7]:
        row["answer"] = f"{row['resident']}, says a person."
    names, ids = ["Ada Brook", "Ben Hale", "Cleo Marsh"], [each.id for each in load_questions()]
    filled = tmp_path / "mine.json"
    filled.write_text(json.dumps(rows))
    person = read_person(filled, names, ids)
    assert len(person) == 7
    found = await evaluated(folder, Mind(), replace(Design(), pairs=20, claims=False), person=person)
    assert next(each for each in found.standings if each.condition == "person").rating, (
        "items that the person answered come first"
    )
    for text, words in (
        ("resident,question,answer\nNobody,self-1,x\n", "unknown resident"),
        ("resident,question,answer\nAda Brook,self-9,x\n", "unknown question 'self-9'"),
        ("resident,answer\nAda Brook,x\n", "field question is missing"),
        ("resident,question,answer\n", "no row has an answer"),
    ):
        filled.with_suffix(".csv").write_text(text)
        with pytest.raises(InputError, match=words):
            read_person(filled.with_suffix(".csv"), names, ids)
    filled.write_text(json.dumps([{"resident": "Ada Brook", "question": "self-1", "answer": 5}]))
    with pytest.raises(InputError, match="row 1: the field answer is missing or not text"):
        read_person(filled, names, ids)


async def test_verdicts_of_people_are_matched_by_pair_id(folder: Path, tmp_path: Path) -> None:
    async with Opened(folder, Mind(), replace(DESIGN, pairs=12), None) as evaluation:
        comparisons = evaluation.comparisons()
        pairs = pairs_of(comparisons, await evaluation.answer(comparisons))
    shown = [each for each in pairs if not each.is_same]
    file = tmp_path / "judged.csv"
    file.write_text("pair,verdict\n" + "".join(f"{each.id},{v}\n" for each, v in zip(shown, "12=", strict=False)))
    judged, others = judged_by_people(pairs, [*read_verdicts([file, file]), ("another", 1.0)])
    assert others == 1 and [each.won for each in judged[:6]] == [1, 0, 0.5] * 2
    turned = Pair(shown[0].second, shown[0].first)
    assert turned.id != shown[0].id and judged_by_people([turned], read_verdicts([file]))[0] == []
    file.write_text(f"pair,verdict\n{shown[0].id},3\n")
    with pytest.raises(InputError, match="row 1: a verdict is one of 1, 2, ="):
        read_verdicts([file])


async def test_an_evaluation_does_not_change_the_town(folder: Path, tmp_path: Path) -> None:
    def content() -> list[bytes]:
        return [each.read_bytes() for each in sorted(folder.rglob("*")) if each.is_file() and "-" not in each.name]

    before = content()
    await evaluated(folder, Mind(), replace(DESIGN, pairs=6), tmp_path / "kept.jsonl")
    assert content() == before


def test_an_unrelated_cache_file_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text('{"cell": 1}\n')
    with pytest.raises(InputError, match="not an evaluation cache"):
        EvaluationCache(other)


def test_a_draw_counts_half_and_missing_conditions_have_no_rating() -> None:
    questions = load_questions()

    def answer(condition: str, at: int) -> Answer:
        from mindstream_evals.town.questions import Item

        return Answer(Item("Ada Brook", questions[at]), condition, condition, condition)

    judged = [Judged(Pair(answer("full", at), answer("none", at)), 0.5 if at == 2 else 1.0) for at in range(3)]
    found = report(("none", "full", "person"), judged, (), 0)
    full, none, person = found.standings
    assert (full.condition, full.won, full.drawn, full.lost) == ("full", 2, 1, 0)
    assert (none.condition, none.won, none.drawn, none.lost) == ("none", 0, 1, 2)
    assert person.rating is None and person.claims is None and found.control_lost is None
