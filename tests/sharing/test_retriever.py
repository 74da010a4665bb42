"""A retriever learns from admissions, in versions that are plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from mindstream.errors import InputError, ModelUnavailable
from mindstream.memory.policies import Candidates, Floats, Rows, Signals
from mindstream.models.embedders.embedder import unit
from mindstream.sharing.retriever.corpus import Corpus, Pair
from mindstream.sharing.retriever.head import Head, multiply
from mindstream.sharing.retriever.learned import LearnedRetriever, Recipe
from mindstream.sharing.retriever.learner import Drawn, Learner
from mindstream.sharing.retriever.lessons import Checked, Lessons
from mindstream.sharing.retriever.ranking import ByHead
from mindstream.sharing.retriever.unlikely import Basis, rouge_l
from mindstream.sharing.retriever.version import Version

WIDTH = 16
KINDS = 4


@dataclass(frozen=True)
class Example:
    id: str
    query: str
    answer: str


class Places:
    """An embedder whose first numbers are loud noise and whose last ones, quiet, say of which kind a text is."""

    name = "places"
    width = WIDTH

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.zeros((len(texts), WIDTH), np.float32)
        for row, text in zip(rows, texts, strict=True):
            kind, number = (int(word.removeprefix("word")) for word in text.split()[-2:] if word != "of")
            row[: WIDTH - KINDS] = np.random.default_rng(number).standard_normal(WIDTH - KINDS)
            row[WIDTH - KINDS + kind] = 1.5
        return unit(rows)


class SameKindHelps:
    basis: Basis = "stated"

    async def p_not(self, pair: Pair, candidates: Sequence[Pair]) -> NDArray[np.float64]:
        kind = pair.query.split()[-2]
        return np.array([0.1 if each.query.split()[-2] == kind else 0.8 for each in candidates])


class Silent:
    basis: Basis = "logprobs"

    async def p_not(self, pair: Pair, candidates: Sequence[Pair]) -> NDArray[np.float64]:
        raise ModelUnavailable("nobody is there")


def examples(n: int, start: int = 0) -> list[Example]:
    return [
        Example(f"e{i}", f"ask word{i} {i % KINDS} {i}", f"answer word{i} {i % KINDS} {i}")
        for i in range(start, start + n)
    ]


def kind_of(pair: Pair) -> str:
    return pair.query.split()[-2]


async def hits(retriever: LearnedRetriever) -> float:
    pool, asked = examples(40), examples(60, 1000)
    head = retriever.version.head
    near = (
        head.project(await Places().embed([e.query for e in asked]))
        @ head.project(await Places().embed([e.query for e in pool])).T
    )
    first = [pool[at] for at in near.argmax(1)]
    return float(np.mean([kind_of(one) == kind_of(other) for one, other in zip(first, asked, strict=True)]))


async def test_admissions_teach_what_helps() -> None:
    retriever = LearnedRetriever(Places(), WIDTH, SameKindHelps(), recipe=Recipe(steps=5))
    before = await hits(retriever)
    await retriever.seed_with(examples(40))
    for each in examples(40, 40):
        await retriever.admitted(each)
    assert await hits(retriever) > before + 0.15
    assert retriever.version.basis == "stated"
    assert retriever.version.held_out >= retriever.version.before


async def test_nothing_is_learned_in_the_place_of_a_model_that_is_silent() -> None:
    retriever = LearnedRetriever(Places(), WIDTH, Silent())
    await retriever.seed_with(examples(40))
    assert retriever.version.number == 0
    without = LearnedRetriever(Places(), WIDTH)
    await without.seed_with(examples(40))
    assert without.version.number > 0 and without.version.basis == "stand-in"


async def test_a_version_is_plain_data_and_ranks_alike_when_it_is_read() -> None:
    made: list[Version] = []
    retriever = LearnedRetriever(Places(), WIDTH, SameKindHelps(), on_version=made.append)
    await retriever.seed_with(examples(40))
    again = Version.from_data(made[-1].as_data())
    assert [each.number for each in made] == list(range(1, len(made) + 1))
    assert (again.number, again.parent, again.admitted) == (made[-1].number, made[-1].parent, made[-1].admitted)
    assert np.array_equal(again.head.matrix, retriever.version.head.matrix)
    other = LearnedRetriever(Places(), WIDTH)
    other.adopt(again)
    assert other.version.number == again.number


@pytest.mark.parametrize("change", [{"matrix": "!"}, {"width": 0}, {"scale": float("nan")}, {"embedder": 7}])
def test_what_is_no_version_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(InputError):
        Version.from_data(Version.untrained("places", WIDTH).as_data() | change)


def test_a_version_of_another_embedder_is_refused() -> None:
    with pytest.raises(InputError, match="is for other"):
        LearnedRetriever(Places(), WIDTH).adopt(Version.untrained("other", WIDTH))


async def test_an_update_that_does_worse_on_what_was_held_out_is_no_version() -> None:
    retriever = LearnedRetriever(Places(), WIDTH, SameKindHelps(), recipe=Recipe(steps=10))
    await retriever.seed_with(examples(60))
    good = retriever.version

    def draw_wrong(chance: np.random.Generator) -> Drawn:
        drawn = type(retriever._lessons).draw(retriever._lessons, chance)
        return drawn._replace(helps=1 - drawn.helps)

    retriever._lessons.draw = draw_wrong  # type: ignore[method-assign]
    for each in examples(30, 100):
        await retriever.admitted(each)
    assert retriever.version is good, "of thirty updates with labels the wrong way round"


async def test_no_version_has_learned_from_what_its_successor_is_checked_by() -> None:
    learned: list[set[int]] = []
    checked: list[set[int]] = []
    retriever = LearnedRetriever(Places(), WIDTH, SameKindHelps(), recipe=Recipe(steps=10))
    lessons = retriever._lessons
    draw, check = lessons.draw, lessons.check

    def watch_draw(chance: np.random.Generator) -> Drawn:
        drawn = draw(chance)
        learned.append(set(drawn.asked.tolist()))
        return drawn

    def watch_check(head: Head, vectors: NDArray[np.float32]) -> Checked:
        checked.append(set(list(lessons._known)[len(lessons) :]))
        return check(head, vectors)

    lessons.draw, lessons.check = watch_draw, watch_check  # type: ignore[method-assign]
    await retriever.seed_with(examples(40))
    for each in examples(40, 40):
        await retriever.admitted(each)
    assert len(checked) == 2 * 41  # an update: of the version that stands, and of the new one
    for at, trial in enumerate(checked):
        assert trial and not any(trial & before for before in learned[: 10 * (at // 2 + 1)])
    assert set(range(40)) <= learned[-1], "in the end everything is learned from"


def test_of_a_pair_that_is_withdrawn_nothing_is_learned_and_other_lessons_stay() -> None:
    lessons, chance = Lessons(6, 0.1), np.random.default_rng(0)
    for at in range(40):
        lessons.add(at, np.delete(np.arange(40), at), chance.random(39))
    lessons.withdraw([7])
    drawn = lessons.draw(chance)
    assert 7 not in drawn.asked and 7 not in drawn.candidates
    assert len(set(drawn.asked.tolist())) == len(lessons) > 20


async def test_withdrawn_pairs_and_pairs_without_an_answer_are_no_candidates() -> None:
    corpus = Corpus(WIDTH)
    pairs = [*examples(6), Example("blank", "ask word1 2 77", " ")]
    for pair, vector in zip(pairs, await Places().embed([each.query for each in pairs]), strict=True):
        corpus.add(pair, vector)
    corpus.withdraw(["e3"])
    assert sorted(corpus.candidates(0, 10)) == [1, 2, 4, 5]


async def test_a_pair_of_the_same_problem_is_no_candidate() -> None:
    corpus = Corpus(WIDTH)
    pairs = [*examples(4), Example("same", "ask word0 3 99", "answer word0 0 0")]
    for pair, vector in zip(pairs, await Places().embed([each.query for each in pairs]), strict=True):
        corpus.add(pair, vector)
    assert 4 not in corpus.candidates(0, 10)


def test_a_head_ranks_all_candidates_and_an_untrained_one_is_the_cosine() -> None:
    chance = np.random.default_rng(1)
    vectors = unit(chance.standard_normal((50, WIDTH)).astype(np.float32))
    question = vectors[7]

    def cosines(rows: Rows) -> Floats:
        found: Floats = (vectors[rows] @ question).astype(np.float64)
        return found

    def signals(rows: Rows) -> Signals:
        raise AssertionError("not asked for")

    candidates = Candidates(np.zeros(50, np.float32), 0.0, signals, cosines, question, lambda rows: vectors[rows])
    policy = ByHead(Head.untrained(WIDTH))
    assert policy.rank(candidates, 50).rows.tolist() == np.argsort(-cosines(np.arange(50)), kind="stable").tolist()
    flipped = np.eye(WIDTH, dtype=np.float32)
    flipped[0, 0] = 0
    assert set(ByHead(Head(flipped)).rank(candidates, 50).rows.tolist()) == set(range(50))


def test_the_slope_is_the_losses() -> None:
    chance = np.random.default_rng(0)
    asked, candidates = (unit(chance.standard_normal((12, WIDTH)).astype(np.float32)) for _ in range(2))
    helps = (np.arange(12) % 2).astype(np.float32)

    def loss(head: Head) -> float:
        scores = head.scale * np.vecdot(head.project(asked), head.project(candidates)) + head.bias
        return float(-np.mean(helps * -np.log1p(np.exp(-scores)) + (1 - helps) * -np.log1p(np.exp(scores))))

    learner, drawn = Learner(WIDTH), Drawn(np.arange(12), np.arange(12, 24), helps)
    before = loss(learner.head())
    for _ in range(40):
        learner.step(np.concatenate([asked, candidates]), drawn)
    assert loss(learner.head()) < 0.5 * before


def test_products_in_portions_are_products() -> None:
    chance = np.random.default_rng(0)
    left, right = (chance.standard_normal(shape).astype(np.float32) for shape in ((37, 300), (300, 128)))
    assert np.allclose(multiply(left, right), left @ right, atol=1e-3)


def test_rouge_counts_words_and_chinese_characters() -> None:
    assert rouge_l("the cat sat", "the cat ran") == pytest.approx(2 / 3)
    assert rouge_l("好雨知时节", "好雨当时节") == pytest.approx(4 / 5)
    assert rouge_l("", "word") == 0
