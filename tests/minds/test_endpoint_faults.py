"""Every fault of an endpoint, with a local server that speaks the protocol: the conversation continues, nothing is
lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_endpoint import (
    EMPTY,
    GARBAGE,
    NOT_JSON,
    WRONG_KEY,
    Behaviour,
    Breaks,
    Fails,
    FakeEndpoint,
    Says,
    Stalls,
)
from keys import key_of

from mindstream import Coach, Mind, Models, Timeouts
from mindstream.clock import ManualClock
from mindstream.errors import SettingsError
from mindstream.log.events import BeliefChanged, Event, Failed, Heard, Said, SetAside, Thought
from mindstream.reasoners import background

HEARD = "The noise from the street wakes me."
AGAIN = "And I drink coffee at night."
SLOTS = {"sleep"}
QUICKLY = Timeouts(retry_s=0.01)
THINKS = Says('{"phase": "understanding", "thought": "t"}')


class Passing(ManualClock):
    """A clock on which sleeping takes no time."""

    async def sleep(self, seconds: float) -> None:
        self.advance(seconds)


async def say(mind: Mind, text: str) -> int:
    """Send an utterance and wait for all its consequences; return its row."""
    heard, *_ = [row.seq async for row in mind.hear(text)]
    async with asyncio.timeout(100):
        await mind.settled()
    return heard


async def events_of(mind: Mind, *kinds: str) -> list[Event]:
    return [row.event for row in await mind.memory.store.events(key_of("ann"), kinds=kinds or None, limit=10_000)]


@pytest.fixture
def door() -> Iterator[FakeEndpoint]:
    with FakeEndpoint() as open_door:
        yield open_door


FAULTS: dict[str, Behaviour] = {
    "wrong key": WRONG_KEY,
    "cut in the middle": Breaks("I hear that the noi"),
    "not JSON": NOT_JSON,
    "garbage": GARBAGE,
    "empty": EMPTY,
    "sixty seconds of silence": Stalls(),
}


@pytest.mark.parametrize("reply", ["\x02\x03\x1b", "\u2060\u200d", "\x00", "\t \r\n", "\u3000"])
async def test_a_reply_without_visible_characters_ends_in_an_excuse(
    folder: Path, door: FakeEndpoint, reply: str
) -> None:
    door.otherwise = Says(reply)
    models = Models.named({"default": f"{door.url}#m"}, repair=0)
    async with models, Mind.open(folder, user="ann", model=models, timeouts=QUICKLY, responder=Coach.using()) as mind:
        for text in (HEARD, AGAIN):
            said = [row.event async for row in mind.hear(text)][-1]
            assert isinstance(said, Said) and said.model == "unavailable" and "kept" in said.text
        texts = [record.text for record in await mind.memory.latest("chat", 9)]
        assert texts == [HEARD, AGAIN]


UNREADABLE = {"empty"}
"""Faults of an endpoint that answers: the run fails, and its work is dead-lettered at the end."""


@pytest.mark.parametrize("fault", list(FAULTS))
async def test_a_conversation_survives_endpoint_faults_without_rule_based_reasoning(
    folder: Path, door: FakeEndpoint, fault: str
) -> None:
    door.otherwise = FAULTS[fault]
    name, patience_s = f"{door.url}#m", 0.3 if isinstance(FAULTS[fault], Stalls) else 60.0
    models = Models.named({"default": name}, retry=2, repair=1, patience_s=patience_s)
    async with models, Mind.open(folder, user="ann", model=models, timeouts=QUICKLY, responder=Coach.using()) as mind:
        (heard, *_, said) = [row async for row in mind.hear(HEARD)]
        async with asyncio.timeout(100):
            await mind.settled()
        assert isinstance(heard.event, Heard) and heard.event.text == HEARD
        assert isinstance(said.event, Said) and said.event.model == "unavailable" and "is kept" in said.event.text
        events = await events_of(mind)
        failed = {event.where: event.text for event in events if isinstance(event, Failed)}
        assert name in failed["talker"], "explained once; not while the model is unavailable"
        assert not any(isinstance(event, Thought | BeliefChanged) for event in events)
        assert await mind.memory.latest("note") == []
        aside = {event.slot for event in events if isinstance(event, SetAside)}
        rests = {work.slot for work in await mind.reasoners.work()}
        assert (aside, rests) == ((SLOTS, set()) if fault in UNREADABLE else (set(), SLOTS))


async def test_an_endpoint_outage_of_five_minutes_loses_nothing(
    folder: Path, door: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "MAX_REST_S", 0.05)
    clock, door.otherwise = Passing(), THINKS
    models = Models.named({"default": f"{door.url}#m"}, clock=clock, retry=2, repair=0)
    async with models, Mind.open(folder, user="ann", model=models, timeouts=QUICKLY, responder=Coach.using()) as mind:
        heard = [await say(mind, HEARD)]
        door.otherwise = Fails(503, "out of order")
        for text in ("It is loud at three.", AGAIN, "What do you think?"):
            heard.append(await say(mind, text))
            clock.advance(100)
        assert len(await mind.reasoners.work()) == 3
        door.otherwise = THINKS
        clock.advance(60)
        async with asyncio.timeout(100):
            while await mind.reasoners.work():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        events = await events_of(mind)
        thoughts = [event for event in events if isinstance(event, Thought)]
        assert {event.model for event in thoughts} == {f"{door.url}#m"}
        said = [event.model for event in events if isinstance(event, Said)]
        assert said == [f"{door.url}#m", *["unavailable"] * 3]
        for slot in SLOTS:
            about = [seq for event in thoughts if event.slot == slot for seq in event.about]
            assert about == heard, "each utterance once, in order"
            assert sum(isinstance(event, Failed) and event.where == slot for event in events) <= 1, "reported once"
        assert not any(isinstance(event, SetAside) for event in events)


async def test_postponed_work_is_done_by_the_next_process(folder: Path, door: FakeEndpoint) -> None:
    door.otherwise, table = WRONG_KEY, {"default": f"{door.url}#m"}
    for _ in range(25):  # more often than work may be resumed after crashes
        models = Models.named(table, retry=1)
        async with models, Mind.open(folder, user="ann", model=models, responder=Coach.using()) as mind:
            if not await events_of(mind, "heard"):
                await say(mind, HEARD)
            await mind.settled()
    door.otherwise = THINKS
    async with (
        Models.named(table) as models,
        Mind.open(folder, user="ann", model=models, responder=Coach.using()) as mind,
    ):
        await mind.settled()
        assert {event.slot for event in await events_of(mind, "thought") if isinstance(event, Thought)} == SLOTS
        assert await mind.reasoners.work() == [] == await events_of(mind, "set_aside")


@pytest.mark.parametrize("named", ["talker", "reasoner"])
async def test_a_mind_without_a_model_for_a_role_does_not_open(folder: Path, named: str) -> None:
    missing = {"talker": "reasoner", "reasoner": "talker"}[named]
    with pytest.raises(SettingsError, match=f"no model is configured for the role '{missing}'"):
        async with Mind.open(folder, user="ann", model={named: "http://127.0.0.1:9/v1#m"}, responder=Coach.using()):
            pytest.fail("it must not open")
