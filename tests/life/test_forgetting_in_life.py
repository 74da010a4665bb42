"""Records forgotten from a life's memory are removed from its log too: calls, turns, folds."""

from __future__ import annotations

from pathlib import Path

from lives import call, living, script

from mindstream import Mind
from mindstream.clock import ManualClock
from mindstream.life.life import LifeConfig
from mindstream.life.state import read_state

SECRET = "The smuggler Ottoline hides her barrels under the third stair."


def whole_folder(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir() if path.is_file())


async def test_forgotten_text_is_in_no_file_of_a_life(tmp_path: Path) -> None:
    turns = 24
    model = script(
        [
            [call("U", memory=SECRET)], SECRET, [call("R", query="Ottoline")], "found",
            [call("M1", task=SECRET, context=SECRET)], "done", [call("add_task", text=SECRET)], "added",
            [call("finish_task", task=1, result=SECRET)], *["and so on " * 80] * turns,
        ],
        [SECRET], fold_turns=[SECRET] * turns,
    )  # fmt: skip
    clock = ManualClock()
    async with living(tmp_path, model, clock=clock, config=LifeConfig(prompt_tokens=2_500)) as life:
        await life.run(turns=turns)
        stream = life.memory
        notes = [record for record in await stream.latest("note", 50) if "Ottoline" in record.text]
        assert notes and b"Ottoline" in whole_folder(tmp_path)
        await stream.remove(await stream.find_removal(*[record.id for record in notes]))
        again = await read_state(stream)
    assert b"third stair" not in whole_folder(tmp_path)
    assert again.goal == "Keep the lighthouse." and again.turn == turns and "third stair" not in again.model_dump_json()


async def test_a_forgotten_message_is_not_unread(tmp_path: Path) -> None:
    async with Mind.open(tmp_path, user="ann", responder=None) as mind:
        async for _ in mind.hear("My bicycle is blue."):
            pass
        records = await mind.memory.latest("chat", 1)
        await mind.memory.remove(await mind.memory.find_removal(records[0].id))
        assert (await read_state(mind.memory)).unread == []
