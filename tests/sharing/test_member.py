"""Agents on different models share a pool: each is shown the others' pairs, the most helpful first."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pools import CITIES, city_pair, city_pool

from mindstream import InputError
from mindstream.errors import SettingsError
from mindstream.memory.recall.exemplars import Example
from mindstream.models.roles import AnyModels, Models
from mindstream.models.rules import Rules
from mindstream.sharing.admission import Pair, lay_in
from mindstream.sharing.member import Member
from mindstream.sharing.ranking import WEIGHT, Helped, values


async def test_a_member_is_shown_pairs_of_others_and_cites_them(folder: Path) -> None:
    async with city_pool(folder) as pool:
        ann, ben = Member(pool, "ann", "small", Rules()), Member(pool, "ben", "large", Rules())
        first = await ann.offer(city_pair(CITIES[0]).query, city_pair(CITIES[0]).answer, ())
        shown = await ben.examples("Which river flows through Rome?", 2)
        words = "Question: Which river flows through Paris?\nAnswer: The Seine flows through Paris."
        assert shown == [Example(words, first.id)]
        second = await ben.offer("Which river flows through Rome?", "The Tiber flows through Rome.", shown)
        standing = (await pool.state()).standings[second.id]
        assert standing.exemplar.examples == (first.id,) and standing.writers == {"ann", "ben"}
        assert (standing.exemplar.model, standing.exemplar.writer) == ("large", "ben")


SCORERS = ["rules", Rules(), {"scorer": "rules"}, Models(Rules())]


@pytest.mark.parametrize("scorer", SCORERS, ids=["name", "model", "table", "models"])
async def test_a_scorer_is_a_model_a_name_or_a_role_table(scorer: AnyModels, folder: Path) -> None:
    async with city_pool(folder) as pool:
        judged = await Member(pool, "ann", scorer=scorer).offer(
            city_pair(CITIES[0]).query, city_pair(CITIES[0]).answer, ()
        )
        assert judged.model == "rules"


@pytest.mark.parametrize(
    "scorer", ["no such model", 3, object(), {"talker": "rules"}], ids=["name", "3", "object", "role"]
)
async def test_an_invalid_scorer_is_refused(scorer: AnyModels, folder: Path) -> None:
    async with city_pool(folder) as pool:
        with pytest.raises(SettingsError, match="model"):
            await Member(pool, "ann", scorer=scorer).offer("Which river?", "The Seine.", ())


async def test_pairs_requested_by_outsiders_and_derived_pairs_are_marked_untrusted(folder: Path) -> None:
    async with city_pool(folder, seeds=3) as pool:
        await pool.set_members(["ann", "ben"], "olga")
        ann, ben = Member(pool, "ann", scorer=Rules()), Member(pool, "ben", scorer=Rules())
        asked = await ann.offer("Which river flows through Lyon?", "The Rhone flows there.", (), asked_by="a guest")
        await pool.trust("asked by a guest", True, "olga")
        shown = [each for each in await ben.examples("Which river flows through Lyon?", 1) if each.id == asked.id]
        drawn = await ben.offer("Which river flows through Avignon?", "The Rhone flows there, too.", shown)
        found = {each.id: each.foreign for each in await ann.examples("Which river flows through Avignon?", 9)}
        assert found.pop(asked.id) and found.pop(drawn.id) and not any(found.values()) and found


async def test_helpful_exemplars_rank_first_among_similar_ones(folder: Path) -> None:
    async with city_pool(folder) as pool:
        alike = [Pair(f"Write a couplet on tea, number {n}", f"Tea in cup {n}.") for n in range(4)]
        laid = await lay_in(pool, alike, "olga")
        for number, each in enumerate(laid):
            for _ in range(6):
                await pool.helped([each.id], 1.0 if number == 2 else 0.0, "ann")
        assert (await pool.recall("Write a couplet on tea", 1, reader="ann"))[0].id == laid[2].id
        with pytest.raises(InputError, match="0 to 1"):
            await pool.helped([laid[0].id], 2.0, "ann")
        with pytest.raises(InputError, match="does not serve the exemplar"):
            await pool.helped(["nothing"], 1.0, "ann")


async def test_negative_feedback_affects_only_similar_questions(folder: Path) -> None:
    async with city_pool(folder) as pool:
        laid = await lay_in(pool, [city_pair(line) for line in CITIES], "olga")
        ann, asked = Member(pool, "ann"), [f"Which river is in {line.split()[0]} town?" for line in CITIES[:5]]
        before = [(await pool.recall(each, 1, reader="ann"))[0].id for each in asked]
        for _ in range(8):
            for at, question in enumerate(asked):
                shown = await ann.examples(question, 1)
                worse = at == 0 and [each.id for each in shown] == [before[0]]
                await ann.helped(shown, 0.0 if worse else 1.0, question)
        after = [(await pool.recall(each, 1, reader="ann"))[0].id for each in asked]
        assert after[0] != before[0] and after[1:] == before[1:] and laid[0].id == before[0]


@pytest.mark.parametrize("seed", range(5))
def test_informative_feedback_helps_and_noise_does_no_harm(seed: int) -> None:
    """40 topics with a good and a bad exemplar of nearly equal similarity; feedback is flipped one time in five."""
    gained = {}
    for kind in ("telling", "noise"):
        draw = np.random.default_rng(seed)
        similarity = draw.normal(0.7, 0.01, (40, 2))
        helped: dict[str, Helped] = {}
        for n in range(200):
            topic, shown = n % 40, int(draw.integers(2))
            told = (shown == 0) != (draw.random() < 0.2) if kind == "telling" else draw.random() < 0.5
            helped.setdefault(f"{topic}.{shown}", Helped()).add(float(told))
        value = np.array([values(helped, [f"{topic}.0", f"{topic}.1"]) for topic in range(40)])
        by_similarity = np.mean(similarity.argmax(axis=1) == 0)
        gained[kind] = np.mean((similarity + WEIGHT * value).argmax(axis=1) == 0) - by_similarity
    assert gained["telling"] >= 0.05 and gained["noise"] >= -0.05
