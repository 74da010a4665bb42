"""A conversation with a thought and a tool call, for tests of spans."""

from __future__ import annotations

from pathlib import Path

from mindstream import Coach, FakeModel, Mind, Models
from mindstream.models.model import Call


async def a_talk(folder: Path) -> None:
    look = [Call("recall", '{"query": "rest"}')]
    reasoner = FakeModel({"think": [look, '{"thought": "nothing"}']}, name="thinker")
    named = Models.named({})
    models = Models(named.of("talker"), {"reasoner": reasoner, "facts": named.of("facts")})
    async with Mind.open(folder, user="ann", session="monday", model=models, responder=Coach.using()) as mind:
        async for _ in mind.hear("My secret is the noise at night."):
            pass
        await mind.settled()
