"""The experiment: recall beats the controls, and an interrupted run resumes."""

from __future__ import annotations

from pathlib import Path

import pytest
from mindstream_evals.runs.sharing import Experiment, ExperimentSettings, Report, run_experiment
from mindstream_evals.sharing.agents import load_cast
from mindstream_evals.sharing.studies import Design, Ledger, cells, score_answers, token_match

from mindstream import InputError
from mindstream.errors import ModelUnavailable
from mindstream.models.embedders.embedder import embedder
from mindstream.models.model import Model
from mindstream.models.rules import FakeModel, Rules
from mindstream.settings import Settings

AGENTS = ("limerick", "wuyanlushi", "fitness")
SMALL = Design(studies=("pools", "controls"), shots=(0, 2), forms=("composed",), tests=2)


async def run(wish: ExperimentSettings) -> Report:
    return await run_experiment(Settings(), wish, lambda _done, _all: None)


def experiment(design: Design, ledger: Ledger, models: dict[str, Model] | None = None) -> Experiment:
    cast = load_cast(AGENTS)
    return Experiment(cast, design, models or dict.fromkeys(AGENTS, Rules()), Rules(), embedder(), ledger)


async def test_recalled_exemplars_beat_random_and_shuffled_ones() -> None:
    found = await run(
        ExperimentSettings(
            Design(studies=("controls",), forms=("bare",)), agents=(*AGENTS, "sonnet", "riddle", "study")
        )
    )
    whole = {row["control"]: row for row in found.rows if row["agent"] == "all"}
    for control in ("random", "shuffled"):
        assert whole[control]["rouge_l"] < 0.75 * whole["none"]["rouge_l"]
        assert whole[control]["rouge_2"] < 0.5 * whole["none"]["rouge_2"]
    assert whole["random"]["own_exemplars"] < whole["none"]["own_exemplars"]
    assert "copy the nearest" in found.how["rules"]


async def test_an_interrupted_experiment_resumes_after_the_stored_answers(tmp_path: Path) -> None:
    out = tmp_path / "cells.jsonl"
    whole = await run(ExperimentSettings(SMALL, AGENTS, out=out))
    kept = out.read_bytes().splitlines(keepends=True)
    assert len(kept) == 1 + len(cells(SMALL, load_cast(AGENTS).agents))
    out.write_bytes(b"".join(kept[:9]) + kept[9][:40])  # killed in the middle of a line
    shown = list[tuple[int, int]]()
    again = await run_experiment(
        Settings(), ExperimentSettings(SMALL, AGENTS, out=out), lambda done, of: shown.append((done, of))
    )
    assert shown == [(at, len(kept) - 1) for at in range(9, len(kept))]
    assert again.rows == whole.rows
    assert out.read_bytes().splitlines(keepends=True)[:9] == kept[:9]
    assert sorted(out.read_bytes().splitlines()) == sorted(b"".join(kept).splitlines())
    third = await run(ExperimentSettings(SMALL, AGENTS, out=out))
    assert third.rows == whole.rows and third.how["offered"] == {"admitted": 0, "rejected": 0}  # nothing was left to do


async def test_a_failing_model_ends_the_run_and_answers_are_kept(tmp_path: Path) -> None:
    design = Design(studies=("shots",), shots=(0,), tests=2)
    broken = FakeModel({"answer_by_example": ["one", "two", ModelUnavailable("it is away")]}, "flaky")
    ledger = Ledger(tmp_path / "cells.jsonl", {"seed": 0})
    with pytest.raises(ModelUnavailable, match="it is away"):
        await experiment(design, ledger, dict.fromkeys(AGENTS, broken)).run(tmp_path / "one")
    kept = Ledger(tmp_path / "cells.jsonl", {"seed": 0})
    assert sorted(each.text for each in kept.answers.values()) == ["one", "two"]
    back = FakeModel(
        {"answer_by_example": ["three", "", "five", "six"]}, "back"
    )  # "" is not an answer, and not a failure
    await experiment(design, kept, dict.fromkeys(AGENTS, back)).run(tmp_path / "two")
    assert sorted(each.text for each in kept.answers.values()) == ["", "five", "one", "six", "three", "two"]


async def test_a_file_of_another_experiment_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "cells.jsonl"
    design = Design(studies=("shots",), shots=(0,), tests=1)
    await run(ExperimentSettings(design, AGENTS, out=out))
    before = out.read_bytes()
    with pytest.raises(InputError, match="its setting `seed` is 0, but this experiment has 3"):
        await run(ExperimentSettings(Design(studies=("shots",), shots=(0,), seed=3), AGENTS, out=out))
    out.write_text("# Notes\nmy own\n")
    with pytest.raises(InputError, match="is not an evaluation cache"):
        await run(ExperimentSettings(design, AGENTS, out=out))
    assert out.read_text() == "# Notes\nmy own\n" and before


def test_chinese_is_scored_by_characters() -> None:
    found = score_answers(
        [("露冷虫声细", "露冷虫声稀"), ("a cat sat", "a cat sat"), ("", "a cat"), ("red", "blue green")]
    )
    assert [each["rouge_l"] for each in found] == [pytest.approx(0.8), 1.0, 0.0, 0.0]
    assert token_match("a small cat", "a small cat") == pytest.approx(1, abs=1e-5)
    assert 0 <= token_match("stock prices fell", "a kitten") < token_match("a tiny cat", "a small kitten") < 1
