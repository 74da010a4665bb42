"""Reasoning text shown because its closing mark came late, without an opening mark, is not stored."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_endpoint import FakeEndpoint, Says

from mindstream import Coach, Mind
from mindstream.log.events import Said
from mindstream.minds.chat_bot import ChatResponder as Companion
from mindstream.minds.responder import ResponderFactory
from mindstream.models.providers import provider

THOUGHT = "They sound tired and must not hear of this. </think> Try one fixed hour."


@pytest.mark.parametrize("responder", [Coach.using(pack="sleep"), Companion], ids=["coach", "companion"])
async def test_reasoning_text_shown_by_mistake_is_not_stored(
    folder: Path, door: FakeEndpoint, monkeypatch: pytest.MonkeyPatch, responder: ResponderFactory
) -> None:
    monkeypatch.setattr(provider, "HOLD_S", 0.0)
    door.otherwise = lambda asked: (
        Says('{"facts": []}') if asked.body.get("response_format") or "tools" in asked.body
        else Says(THOUGHT, pause_s=0.03)
    )  # fmt: skip
    models = {"talker": f"{door.url}#m", "default": "rules"}
    async with Mind.open(folder, user="ann", model=models, responder=responder) as mind:
        for text in ("I sleep badly.", "And now?"):
            rows = [row.event async for row in mind.hear(text)]
            said = rows[-1]
            assert isinstance(said, Said) and said.text.strip() == "Try one fixed hour."
            (line,) = await mind.memory.latest("chat", 1)
            assert line.text == "Try one fixed hour."
        shown = "".join(getattr(each, "text", "") for each in rows)
        assert "tired" not in shown, "after the first time no reasoning text is shown"
