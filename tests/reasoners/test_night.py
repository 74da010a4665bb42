"""Sleep as a reasoner: when idle, and during a conversation."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from mindstream import Coach, FakeModel, Mind
from mindstream.clock import ManualClock
from mindstream.models.rules import Rules
from mindstream.reasoners.night import SleepReasoner
from mindstream.reasoners.reasoner import Trigger
from mindstream.reasoners.reflect.reflect import Found, Insight, Questions, ReflectReasoner


async def test_an_idle_mind_sleeps_and_dreams_of_archived_records(folder: Path) -> None:
    clock = ManualClock()
    sleeping = SleepReasoner(Rules(), trigger=Trigger(every=0, idle_s=0.5))
    async with Mind.open(
        folder, user="ann", clock=clock, policy="decay", reasoners=[sleeping], responder=Coach.using()
    ) as mind:
        async for _ in mind.hear("Hello!"):
            pass
        await mind.memory.retain("a red boat on the river")
        clock.advance(15 * 86_400)
        for _ in range(5_000):
            if await mind.memory.latest("dream"):
                break
            await asyncio.sleep(0.02)
        assert [dream.text for dream in await mind.memory.latest("dream")] == ["I dreamt: a red boat on the river."]


async def test_a_mind_reflects_during_a_conversation(folder: Path) -> None:
    model = FakeModel({
        "rate_importance": [lambda request: json.dumps({"ratings": [6] * len(request.prompt.memories)})] * 9,  # type: ignore[attr-defined]
        "salient_questions": [Questions(questions=["What about coffee?"])],
        "insights": [Found(insights=[Insight(text="Coffee keeps Ann from sleeping.", because=[1, 2])])],
    })  # fmt: skip
    reflecting = ReflectReasoner(model, start=12, trigger=Trigger(every=2))
    async with Mind.open(folder, user="ann", reasoners=[reflecting], responder=Coach.using()) as mind:
        for text in ("Coffee keeps me awake.", "I drink coffee at night.", "I love coffee.", "Is coffee bad at night?"):
            async for _ in mind.hear(text):
                pass
            await mind.settled()
        thoughts = [thought.text for thought in await mind.memory.latest("thought", 9)]
        assert "Coffee keeps Ann from sleeping." in thoughts
