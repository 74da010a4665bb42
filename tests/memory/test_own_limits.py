"""A mind's own text is limited, and never fails because of its length; removed parts stay in the history."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keys import key_of
from pydantic import BaseModel, ConfigDict, JsonValue
from world import World

from mindstream import Coach, FakeModel, Memory, Mind
from mindstream.coach.belief.plan import MOST_CLOSED, MOST_OPEN, CoachingPlan, NamedResource, StepEdit
from mindstream.errors import InputError
from mindstream.log.events import Remembered
from mindstream.memory.store.record import MAX_TEXT, RecordDraft, fitted_text
from mindstream.memory.store.store import Entry
from mindstream.memory.stream import LONGEST, MOST, Belief, merged


class Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    goals: list[str] = []
    trouble: str | None = None


@pytest.fixture
def stream(world: World) -> Memory:
    return world.stream


def wishes(first: int, count: int) -> list[JsonValue]:
    return [f"I would like to sit by the river number {n} and feel calm in my own home" for n in range(first, count)]


@settings(max_examples=10)
@given(st.lists(st.text(max_size=30) | st.just("長" * 2 * LONGEST) | st.just("x" * 2 * LONGEST + "y"), max_size=99))
def test_belief_lists_and_texts_are_limited(items: list[str]) -> None:
    value, _ = merged(
        Belief("b", 1, Shape.model_validate({"goals": wishes(0, 300)})), {"goals": list(items), "trouble": "t" * 9_999}
    )
    assert len(value.goals) <= MOST
    assert all(len(item) <= LONGEST for item in value.goals)
    assert len(value.trouble or "") <= LONGEST


def test_a_shortened_item_can_be_removed() -> None:
    long = "sleep " * 500
    value, _ = merged(Belief("b", 1, Shape()), {"goals": [long]})
    assert merged(Belief("b", 1, value), {"goals": [long]})[1] == {}
    assert merged(Belief("b", 1, value), {"goals": {"remove": [long]}})[0].goals == []


async def test_dropped_belief_items_are_found_by_as_of(stream: Memory) -> None:
    await stream.believe("b", {"goals": ["learn the oboe"]}, Shape)
    for n in range(0, 3 * MOST, MOST // 2):
        stream.clock.advance(60)  # type: ignore[attr-defined]
        await stream.believe("b", {"goals": wishes(n, n + MOST // 2)}, Shape)
    assert "learn the oboe" not in (await stream.belief("b", Shape)).value.goals
    began = (await stream.store.changes(key_of("ann"), 0)).records[0].created
    [found] = await stream.recall("oboe", k=1, kinds=["belief"], as_of=began)
    assert "learn the oboe" in found.record.text


async def test_a_belief_above_the_limits_can_still_change(folder: Path) -> None:
    async with Mind.open(folder, user="ann", responder=Coach.using()) as mind:
        (record,) = await mind.memory.build_records(
            [
                RecordDraft(
                    text="an old belief, from before there were limits", kind="belief", slot="sleep", version=1,
                    data={"value": {"phase": Coach.of(mind).pack.phases[0].name, "goals": wishes(0, 400)}},
                )
            ]
        )  # fmt: skip
        await mind.memory.commit(Entry(Remembered(count=1, kinds={}), "test", (record,)))
        for text in ("I want to sleep through the night.", "Noise keeps me awake.", "Make me a plan."):
            async for _ in mind.hear(text):
                pass
            await mind.settled()
        assert await mind.memory.store.events(key_of("ann"), kinds=["error"]) == []
        assert await mind.reasoners.work() == []
        assert Coach.of(mind).belief.version > 1
        assert Coach.of(mind).plan.now


BIG = "长 word " * 15_000


async def test_a_minds_own_text_is_shortened_and_a_users_text_is_refused(stream: Memory) -> None:
    (record,) = await stream.build_records([RecordDraft(text=BIG, kind="thought")])
    assert len(record.text) <= MAX_TEXT
    assert record.text.endswith("…")
    for refused in (stream.retain(BIG), stream.retain_all([RecordDraft(text=BIG, kind="note")])):
        with pytest.raises(InputError, match="too long"):
            await refused
    small = await stream.retain("small", "note")
    with pytest.raises(InputError, match="too long"):
        await stream.supersede(small.id, BIG)


@pytest.mark.parametrize("letter", ["q", "森", "🦊", "e\u0301"])
async def test_text_of_maximum_length_is_stored_and_longer_text_is_refused(stream: Memory, letter: str) -> None:
    longest = letter * (MAX_TEXT // len(letter))
    record = await stream.retain(longest, "note")
    assert record.text == unicodedata.normalize("NFC", longest)
    assert [found.record.id for found in await stream.recall(longest[:100], k=1)] == [record.id]
    with pytest.raises(InputError, match="100,000 are accepted"):
        await stream.retain(longest + "!", "note")


@given(st.text(alphabet=st.sampled_from("a长é🙂 \n"), min_size=1, max_size=50), st.integers(1, 6_000))
def test_shortening_never_splits_a_character(unit: str, times: int) -> None:
    text = f"x{unit * times}"
    fitted = fitted_text(text)
    assert len(fitted) <= MAX_TEXT
    assert fitted == text.strip() or fitted.endswith("…")


async def test_an_endless_dream_is_shortened(stream: Memory) -> None:
    await stream.retain("the trams squeal")
    stream.clock.advance(40 * 86_400)  # type: ignore[attr-defined]
    dream = await stream.sleep(FakeModel({"dream": [BIG]}))
    assert dream
    assert len(dream) <= MAX_TEXT


def test_a_plan_keeps_its_first_open_and_its_newest_closed_steps() -> None:
    plan = CoachingPlan()
    for n in range(300):
        plan = plan.edit([StepEdit(title=f"step {n}", state="now"), StepEdit(title=f"step {n}", state="done")])
    for n in range(100):
        plan = plan.edit([StepEdit(title=f"later {n}")])
    plan = plan.edit([StepEdit(title="the one now", state="now")])
    assert len([step for step in plan.steps if step.state == "done"]) == MOST_CLOSED
    assert plan.steps[0].title == f"step {300 - MOST_CLOSED}"
    assert len(plan.open) == MOST_OPEN
    assert plan.now
    assert plan.now.title == "the one now"
    assert "later 0" in {step.title for step in plan.open}


async def test_a_plan_of_maximum_length_can_be_stored(stream: Memory) -> None:
    long = "很长的话" * 4_000
    resources = [NamedResource(title=long, publisher=long, link="https://x.org/" + "a" * 9_999, why=long)] * 50
    plan = CoachingPlan()
    for n in range(60):
        edit = StepEdit(
            title=f"{n} " + "长" * 190, state="now", do=long, why=long, caution=long, evidence=long, resources=resources
        )
        plan = plan.edit([edit])
    assert plan.now
    assert plan.now.resources[0].link is None
    (record,) = await stream.build_records(
        [RecordDraft(text=plan.written(full=True), kind="plan", data={"plan": plan.model_dump()})]
    )
    assert len(record.text) <= MAX_TEXT
    assert CoachingPlan.model_validate(record.data["plan"]) == plan


@pytest.mark.parametrize(
    "link",
    [
        "javascript:alert(1)", "JavaScript:alert(1)", "data:text/html,<script>", "file:///etc/passwd", "vbscript:x",
        "https://x.org/\u202egro.live", "https://x.org/a b", "https://x.org/\x1b]8;;evil", "https://x.org/\u200b",
        'https://x.org/"onclick="', "x\u00a0y", "ssh://x.org", "",
    ],
)  # fmt: skip
def test_an_unsafe_link_becomes_none(link: str) -> None:
    assert NamedResource(title="On Rest", link=link).link is None


@pytest.mark.parametrize(
    "link",
    [
        "https://x.org/a?b=c#d",
        "www.x.org",
        "https://zh.org/失眠",
        "tel:116123",
    ],
)
def test_a_safe_link_is_kept(link: str) -> None:
    assert NamedResource(title="On Rest", link=link).link == link
