"""Questions answered from memory alone: published formats, token limits, the report."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from mindstream_evals.memory.evaluate import draw_questions, open_arms, word_overlap
from mindstream_evals.memory.forms import AskedTalk, draw, read_talks
from published_forms import BEAM, LOCOMO, LONGMEMEVAL

from mindstream.errors import InputError
from mindstream.models.embedders.embedder import shared_embedder
from mindstream.significance import wilson


def read(folder: Path, content: Any) -> tuple[str, list[AskedTalk]]:
    file = folder / "talks.json"
    file.write_text(json.dumps(content))
    return read_talks(file)


def day(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M")


def test_locomo_is_read_with_evidence_and_without_picture_searches(tmp_path: Path) -> None:
    form, [talk] = read(tmp_path, LOCOMO)
    assert form == "LoCoMo" and talk.id == "boats"
    assert [each.id for each in talk.messages] == ["D1:1", "D1:2", "D2:1", "D2:2"]
    assert day(talk.messages[0].at) == "2023-05-08 13:56" and "[shares a loaf on a table]" in talk.messages[1].text
    assert not any("never to be read" in each.text for each in talk.messages)
    painted, leaks, sold = talk.questions
    assert (painted.type, painted.expected) == ("temporal", "7 May 2023")
    assert leaks.evidence == {"D2:1", "D2:2"}, "several ids in one text, zero-padded numbers, and missing ids"
    assert (sold.type, sold.expected) == ("adversarial", ""), "the conversation does not answer it"


def test_longmemeval_gives_a_conversation_for_each_question(tmp_path: Path) -> None:
    form, [car, dog] = read(tmp_path, LONGMEMEVAL)
    (asked,) = car.questions
    assert form == "LongMemEval" and [each.by_user for each in car.messages] == [True, False, True, False]
    assert asked.evidence == {"1:0"} and asked.at is not None and day(asked.at) == "2023-05-22 09:00"
    assert dog.questions[0].expected == "" and not dog.questions[0].evidence, (
        "_abs: the conversation does not answer it"
    )
    del LONGMEMEVAL[0]["haystack_sessions"][1][0]["has_answer"]
    assert read(tmp_path, LONGMEMEVAL)[1][0].questions[0].evidence == {"s_b"}, "otherwise the session is the evidence"


def test_beam_questions_in_text_form_are_parsed(tmp_path: Path) -> None:
    form, [talk] = read(tmp_path, BEAM)
    assert form == "BEAM" and [day(each.at)[:10] for each in talk.messages] == [
        "2024-03-15",
        "2024-03-15",
        "2024-03-18",
    ]
    moved, host = talk.questions
    assert moved.evidence == {"0", "2"} and moved.points == ("says April 2",) and moved.expected == "April 2"
    assert host.type == "abstention" and host.expected == "The chat does not say."
    rows = {"rows": [{"row": BEAM[0] | {"probing_questions": json.dumps({"a": [{"question": "?", "answer": "x"}]})}}]}
    assert read(tmp_path, rows)[1][0].questions[0].type == "a"


@pytest.mark.parametrize("content", [{}, [], [{"conversation": {}}], [LOCOMO[0] | {"qa": [{}]}], "text"])
def test_an_unknown_format_is_refused(tmp_path: Path, content: Any) -> None:
    with pytest.raises(InputError, match=r"talks\.json"):
        read(tmp_path, content)


async def test_arms_show_messages_within_the_token_limit_in_order(tmp_path: Path) -> None:
    _, [talk] = read(tmp_path, LOCOMO)
    async with open_arms(talk, shared_embedder(), tokens=40, whole_tokens=75) as arms:
        leaks = talk.questions[1]
        shown = {arm: await arms.show(leaks, arm) for arm in ("memory", "bm25", "whole")}
    assert all(each.tokens <= 40 for name, each in shown.items() if name != "whole") and shown["whole"].tokens <= 75
    assert [each.id for each in shown["whole"].messages] == ["D1:2", "D2:1", "D2:2"], "the oldest message is left out"
    assert shown["whole"].share_of(leaks.evidence) == 1 and shown["whole"].left == 1
    assert shown["bm25"].lines[0].startswith("2023-0") and "D2:1" in {each.id for each in shown["bm25"].messages}
    places = [each.id for each in shown["memory"].messages]
    assert places == sorted(places) and shown["memory"].share_of(frozenset()) is None


def test_questions_are_drawn_equally_from_all_types(tmp_path: Path) -> None:
    _, talks = read(tmp_path, LOCOMO)
    drawn = draw_questions(talks, 2, seed=1)
    assert drawn == draw_questions(talks, 2, seed=1) and len(set(drawn)) == 2
    assert len(draw_questions(talks, 0, 1)) == 3 and draw_questions(talks, 0, 1, ["temporal"]) == [("boats", "1")]
    assert [each.id for each in draw(talks, [("boats", "3")])[0].questions] == ["3"]


def test_intervals_and_word_overlap_have_known_values() -> None:
    low, high = wilson(8, 10)
    assert (round(low, 3), round(high, 3)) == (0.490, 0.943) and wilson(0, 0) == (0.0, 1.0)
    assert word_overlap("On 7 May 2023.", "7 May 2023") == 1 and word_overlap("Nobody knows.", "7 May") == 0
    assert word_overlap("7 May", "7 May 2023") == pytest.approx(0.8)
