"""Sets of questions: read in their published formats, scored like their own scorers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mindstream_evals.planning.questions import Kind, Score, draw, find_numbers, read_questions, score, words_of
from question_sets import SETS, write_set

from mindstream.errors import InputError
from mindstream.significance import mcnemar, wilson

DATA = Path(__file__).parents[4] / "shared" / "data" / "rewoo"


@pytest.mark.parametrize("form", SETS)
def test_the_format_is_detected_from_the_file(form: str, tmp_path: Path) -> None:
    questions, found = read_questions(write_set(tmp_path, form))
    assert found == ("plain" if form.startswith("plain") else form)
    assert len(questions) >= 2 and len({each.id for each in questions}) == len(questions)
    assert all(score(each.kind, each.answers, each.answers[0]).exact for each in questions)


def test_answers_and_contexts_of_each_format_are_kept(tmp_path: Path) -> None:
    sets = {form: read_questions(write_set(tmp_path, form))[0] for form in SETS}
    assert [title for title, _ in sets["hotpotqa"][0].context] == [
        "Tornby Lighthouse",
        "Skarv Lighthouse",
        "Halm/Bridge",
    ]
    assert sets["hotpotqa"][0].context[0][1] == ("Tornby Lighthouse was lit in 1893.", "It is 31 metres high.")
    assert [each.answers for each in sets["gsm8k"]] == [("52",), ("1,200",)]
    assert [each.answers for each in sets["strategyqa"]] == [("no",), ("yes",)]
    assert sets["triviaqa"][0].answers == ("Peru", "Republic of Peru", "Perú", "republic of peru", "perú", "peru")
    assert [each.kind for each in sets["plain_lines"]] == ["words", "number", "yes_no"]


def test_an_unknown_format_is_refused_with_the_expected_ones(tmp_path: Path) -> None:
    file = tmp_path / "notes.json"
    for text in ('[{"text": "Who?"}]', "Who? Ada.", "[", "", '{"Data": 3}', "[1, 2]"):
        file.write_text(text)
        with pytest.raises(InputError) as error:
            read_questions(file)
        assert "hotpotqa: a JSON list of {_id, question, answer" in str(error.value) and "plain: CSV" in str(
            error.value
        )
    file.write_text(
        json.dumps([{"qid": "a", "question": "Is it?", "answer": True}, {"qid": "b", "question": "Is it?"}])
    )
    with pytest.raises(InputError, match=r"row 2 is not in the form strategyqa.*answer"):
        read_questions(file)
    with pytest.raises(InputError, match=r"row 1 is not in the form gsm8k \(JSON Lines"):
        read_questions(file, "gsm8k")
    with pytest.raises(InputError, match="cannot be read"):
        read_questions(tmp_path / "nowhere.json")


def test_a_given_format_overrides_detection(tmp_path: Path) -> None:
    (question, *_), found = read_questions(write_set(tmp_path, "gsm8k"), "plain")
    assert found == "plain" and question.kind == "words" and question.answers[0].endswith("#### 52")


def test_duplicate_ids_stay_separate_and_larger_draws_contain_smaller_ones(tmp_path: Path) -> None:
    file = tmp_path / "many.jsonl"
    rows = ({"id": str(n // 2), "question": f"How much is {n}?", "answer": n} for n in range(40))
    file.write_text("\n".join(map(json.dumps, rows)))
    questions, _ = read_questions(file)
    assert len({each.id for each in questions}) == 40
    small, large = (draw(questions, n, 3) for n in (7, 20))
    assert len(small) == 7 and {each.id for each in small} < {each.id for each in large}
    assert small == [each for each in questions if each in small] and draw(questions, 0, 3) == questions
    assert draw(questions, 7, 4) != small


@pytest.mark.parametrize(
    ("kind", "expected", "answer", "exact", "contained"),
    [
        ("words", "the Osk", "Osk.", True, True),
        ("words", "Osk", "It lies on the Osk, in the north.", False, True),
        ("words", "US", "Russia", False, False),
        ("words", "Paris", "It may be Rome.\nParis", True, True),
        ("words", "Paris", "Paris is the capital.\nSo: Rome", False, False),
        ("words", "yes", "Yes, it is.", False, True),
        ("words", "no", "There is yes and no.", False, False),
        ("words", "yes", "", False, False),
        ("words", "U.S.A.", "usa", True, True),
        ("trivia", "´", "", False, False),
        ("trivia", "Jean-Luc Picard", "jean luc picard", True, True),
        ("words", "Jean-Luc Picard", "jean luc picard", False, False),
        ("number", "1,200", "It costs $1200.", True, True),
        ("number", "52", "60 - 8 = 52 apples", True, True),
        ("number", "52", "52, of 60", False, True),
        ("number", "52", "fifty", False, False),
        ("number", "-3.5", "#### -3.50", True, True),
        ("yes_no", "no", "False.", True, True),
        ("yes_no", "no", "No, it cannot: yes is wrong.", False, True),
        ("yes_no", "yes", "I do not know", False, False),
    ],
)
def test_answers_are_scored_like_the_published_scorers(
    kind: Kind, expected: str, answer: str, exact: bool, contained: bool
) -> None:
    found = score(kind, (expected,), answer)
    assert (found.exact, found.contained) == (exact, contained)


def test_the_best_of_several_expected_answers_counts() -> None:
    assert score("trivia", ("Rhine", "Rhein"), "the Rhein").exact
    partly = score("words", ("Ada Holm the painter",), "painter Ada")
    assert partly == Score(False, False, partly.f1) and partly.f1 == pytest.approx(0.8)
    assert words_of("The  cat's, a_hat") == ["cats", "ahat"] and words_of("The cat’s a_hat", spaced=True) == [
        "cat", "s", "hat"
    ]  # fmt: skip
    assert [*map(str, find_numbers("-1,000.50 and .5, 7."))] == ["-1000.50", "0.5", "7"]


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_text_can_be_compared(answer: str, expected: str) -> None:
    kinds: tuple[Kind, ...] = ("words", "trivia")
    for kind in kinds:
        found = score(kind, (expected,), answer)
        assert 0 <= found.f1 <= 1 and (found.contained or not found.exact)
    assert score("number", ("5",), answer).exact in (True, False)


def test_intervals_and_paired_tests_have_known_values() -> None:
    assert wilson(3, 4) == pytest.approx((0.3006, 0.9544), abs=1e-4)
    assert wilson(0, 10) == pytest.approx((0.0, 0.2775), abs=1e-4) and wilson(0, 0) == (0.0, 1.0)
    assert mcnemar(1, 8) == pytest.approx(0.0390625) and mcnemar(8, 1) == mcnemar(1, 8)
    assert mcnemar(0, 0) == mcnemar(5, 5) == 1.0 and 0 < mcnemar(900, 1100) < 0.001


@pytest.mark.skipif(not DATA.is_dir(), reason="the questions of ReWOO's authors are not here")
@pytest.mark.parametrize(
    ("name", "count", "kind"),
    [("SOTU_QA.csv", 74, "words"), ("strategy_qa.csv", 2290, "yes_no"), ("physics_question.csv", 53, "words")],
)
def test_files_of_the_authors_are_read(name: str, count: int, kind: str) -> None:
    questions, form = read_questions(DATA / name)
    assert form == "plain" and len(questions) == count
    assert sum(each.kind == kind for each in questions) >= count * 0.9
