"""Every fault of an endpoint, against a local server that speaks the protocol: the talk goes on, nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_endpoint import (
    EMPTY,
    GARBAGE,
    NO_SUCH_MODEL,
    NOT_JSON,
    WRONG_KEY,
    WRONG_SHAPE,
    Behaviour,
    Breaks,
    Fails,
    FakeEndpoint,
    Says,
    Stalls,
)

from mindstream import Mind, Models
from mindstream.clock import ManualClock
from mindstream.log.events import Failed, Heard, Said, Thought

HEARD = "The noise from the street wakes me."
AGAIN = "And I drink coffee at night."


@pytest.fixture
def door() -> Iterator[FakeEndpoint]:
    with FakeEndpoint() as open_door:
        yield open_door


FAULTS: dict[str, Behaviour] = {
    "no such model": NO_SUCH_MODEL,
    "wrong key": WRONG_KEY,
    "too many requests": Fails(429, "slow down", {"Retry-After": "1"}),
    "broken inside": Fails(500, "oops"),
    "cut in the middle": Breaks("I hear that the noi"),
    "not JSON": NOT_JSON,
    "another shape": WRONG_SHAPE,
    "garbage": GARBAGE,
    "empty": EMPTY,
    "sixty seconds of silence": Stalls(),
}


async def test_a_wait_that_is_asked_for_is_waited_and_the_answer_comes(folder: Path, door: FakeEndpoint) -> None:
    door.will(Fails(429, "slow down", {"Retry-After": "1"}))
    door.otherwise = Says("I hear you.")
    models = Models.named({"talker": f"{door.url}#m"})
    async with models, Mind.open(folder, user="ann", models=models) as mind:
        said = [row.event async for row in mind.hear(HEARD)][-1]
        assert isinstance(said, Said) and said.text == "I hear you."


@pytest.mark.parametrize("fault", list(FAULTS))
async def test_the_talk_goes_on_says_so_and_loses_nothing(folder: Path, door: FakeEndpoint, fault: str) -> None:
    door.otherwise = FAULTS[fault]
    name = f"{door.url}#m"
    models = Models.named({"default": name}, retry=2, repair=1, silence_s=0.3)
    async with models, Mind.open(folder, user="ann", models=models) as mind:
        said = [row.event async for row in mind.hear(HEARD)][-1]
        await mind.settled()
        assert isinstance(said, Said) and said.model == "rules" and "model" in said.text
        events = [row.event for row in await mind.stream.store.events("ann")]
        failed = {event.where: event.text for event in events if isinstance(event, Failed)}
        assert name in failed["talker"], "it is said once; while the model rests, nothing is"
        thoughts = {event.slot: event for event in events if isinstance(event, Thought)}
        assert {event.model for event in thoughts.values()} == {"rules"}, "rules stand in, and say so"
        assert thoughts.keys() == {"sleep", "facts"} and "noise" in mind.belief.value.model_dump()["sleep_concern"]
        heard = [event.text for event in events if isinstance(event, Heard)]
        assert heard == [HEARD]


async def test_an_endpoint_that_is_down_is_said_to_be_down(folder: Path) -> None:
    models = Models.named({"default": "http://127.0.0.1:9/v1#m"}, retry=1)
    async with models, Mind.open(folder, user="ann", models=models) as mind:
        said = [row.event async for row in mind.hear(HEARD)][-1]
        assert isinstance(said, Said) and said.model == "rules"


async def test_an_endpoint_that_comes_back_thinks_again(folder: Path, door: FakeEndpoint) -> None:
    door.otherwise = Fails(500, "oops")
    clock = ManualClock()
    models = Models.named({"default": f"{door.url}#m"}, clock=clock, retry=1, repair=0)
    async with models, Mind.open(folder, user="ann", models=models) as mind:
        first, *_ = [row.seq async for row in mind.hear(HEARD)]
        await mind.settled()
        door.otherwise = Says('{"phase": "understanding", "thought": "t", "facts": []}')
        clock.advance(10)  # it has rested
        second, *_ = [row.seq async for row in mind.hear(AGAIN)]
        await mind.settled()
        thoughts = [row.event for row in await mind.stream.store.events("ann", kinds=["thought"])]
        assert {
            (event.slot, event.about, event.model == "rules") for event in thoughts if isinstance(event, Thought)
        } == {
            ("facts", (first,), True),
            ("sleep", (first,), True),
            ("facts", (second,), False),
            ("sleep", (second,), False),
        }
