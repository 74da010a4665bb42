"""Messages of a server name no folder or user of the machine that it runs on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from running import run

from mindstream.guidance import next_step


@pytest.mark.parametrize(
    ("words", "serving"),
    [(["serve"], "mindstream.server.run.serve"), (["mcp"], "mindstream.server.mcp.stdio.serve_stdio")],
)
def test_commands_in_messages_to_clients_have_no_flags(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], serving: str
) -> None:
    said: list[str] = []

    async def serve(*_: Any, **__: Any) -> None:
        said.append(next_step("live"))

    monkeypatch.setattr(serving, serve)
    assert run(*words, "--data", str(tmp_path / "secret-folder")).code == 0
    assert said == ["`mindstream live`"]
