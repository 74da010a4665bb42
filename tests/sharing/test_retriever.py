"""A retriever learns from admissions, in versions that are plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mindstream.models.embedders.embedder import unit
from mindstream.sharing.retriever import (
    Basis,
    Batch,
    Checked,
    Head,
    Labels,
    LearnedRetriever,
    Pair,
    Recipe,
    Vectors,
)

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
        head.ask(await Places().embed([e.query for e in asked]))
        @ head.project(await Places().embed([e.query for e in pool])).T
    )
    first = [pool[at] for at in near.argmax(1)]
    return float(np.mean([kind_of(one) == kind_of(other) for one, other in zip(first, asked, strict=True)]))


async def test_training_on_admissions_improves_ranking() -> None:
    retriever = LearnedRetriever(Places(), WIDTH, SameKindHelps(), recipe=Recipe(steps=5))
    before = await hits(retriever)
    await retriever.seed_with(examples(40))
    for each in examples(40, 40):
        await retriever.admitted(each)
    assert await hits(retriever) > before + 0.15
    assert retriever.version.basis == "stated"
    assert retriever.version.held_out >= retriever.version.before


async def test_pairs_without_labels_train_nothing() -> None:
    silent = LearnedRetriever(Places(), WIDTH, labels=Labels("logprobs", "a model", lambda _: {}))
    await silent.seed_with(examples(80))
    assert silent.version.number == 0


async def test_labels_of_a_model_are_learned_and_the_version_names_their_basis() -> None:
    pool = examples(80)
    said = {
        one.id: {other.id: 0.1 if kind_of(one) == kind_of(other) else 0.8 for other in pool if other != one}
        for one in pool
    }
    taught = LearnedRetriever(Places(), WIDTH, labels=Labels("stated", "a model", lambda id_: said[id_]))
    before = await hits(taught)
    await taught.seed_with(pool)
    assert await hits(taught) > before + 0.2 and taught.version.basis == "stated"


async def test_an_update_that_is_worse_on_the_held_out_set_is_discarded() -> None:
    retriever = LearnedRetriever(Places(), WIDTH, SameKindHelps(), recipe=Recipe(steps=10))
    await retriever.seed_with(examples(60))
    good = retriever.version

    def draw_wrong(chance: np.random.Generator) -> Batch:
        drawn = type(retriever._lessons).draw(retriever._lessons, chance)
        return drawn._replace(helps=1 - drawn.helps)

    retriever._lessons.draw = draw_wrong  # type: ignore[method-assign]
    for each in examples(30, 100):
        await retriever.admitted(each)
    assert retriever.version is good, "after thirty updates with inverted labels"


async def test_a_version_never_trained_on_the_check_set_of_its_successor() -> None:
    learned: list[set[int]] = []
    checked: list[set[int]] = []
    retriever = LearnedRetriever(Places(), WIDTH, SameKindHelps(), recipe=Recipe(steps=10))
    lessons = retriever._lessons
    draw, check = lessons.draw, lessons.check

    def watch_draw(chance: np.random.Generator) -> Batch:
        drawn = draw(chance)
        learned.append(set(drawn.asked.tolist()))
        return drawn

    def watch_check(head: Head, vectors: Vectors) -> Checked:
        checked.append(set(list(lessons._known)[len(lessons) :]))
        return check(head, vectors)

    lessons.draw, lessons.check = watch_draw, watch_check  # type: ignore[method-assign]
    await retriever.seed_with(examples(40))
    for each in examples(40, 40):
        await retriever.admitted(each)
    assert len(checked) == 2 * 41  # an update: of the version that stands, and of the new one
    for at, trial in enumerate(checked):
        assert trial and not any(trial & before for before in learned[: 10 * (at // 2 + 1)])
    assert set(range(40)) <= learned[-1], "at the end everything was trained on"
