"""A life with a model is not continued without one by mistake, and its log contains the command to continue it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mindstream.errors import InputError
from mindstream.life.life import Life
from mindstream.life.opened import command_of, read_opened, without_credentials
from mindstream.memory.memory import Memory
from mindstream.models.rules import Rules


class Silent(Rules):
    """A model with a given name."""

    def __init__(self, name: str) -> None:
        self.name = name


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("openai:gpt-5-mini", "openai:gpt-5-mini"),
        ("openai:m@https://ann:secret@host.example/v1", "openai:m@https://host.example/v1"),
        ("openai:m@https://host/v1?api-key=secret", "openai:m@https://host/v1"),
        ("openai:m@http://secret@127.0.0.1:80/v1#secret", "openai:m@http://127.0.0.1:80/v1"),
        ("http://ann:secret@127.0.0.1:80/v1#org%2Fm", "http://127.0.0.1:80/v1#org%2Fm"),
        ("https://host/v1?token=secret#qwen3:8b", "https://host/v1#qwen3:8b"),
        (
            "openai:m@https://host/openai/deployments/d?api-version=2024-10-21&token=secret",
            "openai:m@https://host/openai/deployments/d?api-version=2024-10-21",
        ),
    ],
)
async def test_a_life_with_a_model_is_not_continued_without_one(tmp_path: Path, name: str, kept: str) -> None:
    assert without_credentials(name) == kept and "secret" not in command_of(["mindstream", "--mcp", name])
    async with Memory.open(tmp_path, "ann") as memory:
        async with Life.open(memory, Silent(name), goal="Count the boats.", command="mindstream live --model x"):
            opened = await read_opened(memory)
        assert set(opened.models.values()) == {kept} and set(opened.models) == {"M2", "M1", "M0"}
        with pytest.raises(InputError, match=r"(?s)was run with .*--without-model.*mindstream live --model x"):
            async with Life.open(memory, Rules(), goal="Another goal."):
                raise AssertionError
        async with Life.open(memory, Silent("openai:other")) as life:
            assert life.state.goal == "Count the boats.", "the refused call changed nothing"
        assert (await read_opened(memory)).command == "mindstream live --model x"
        async with Life.open(memory, Rules(), without_model=True):
            pass
        async with Life.open(memory, Rules()):
            pass


async def test_a_life_with_rules_is_continued_without_a_model(tmp_path: Path) -> None:
    async with Memory.open(tmp_path, "ann") as memory:
        for _ in range(2):
            async with Life.open(memory, Rules(), goal="Count the boats."):
                pass
        assert await memory.store.last(memory.key, "life_opened") is None
