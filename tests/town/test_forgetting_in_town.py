"""What residents forget for good is in no row of their town any more, and the town goes on."""

from __future__ import annotations

from pathlib import Path

from villages import TAL, Mind

from mindstream.memory.curation.forgetting import ForgetRequest, find_removal, forget
from mindstream.models.roles import Models
from mindstream.town.events import Talked
from mindstream.town.journal import rows_after
from mindstream.town.town import Town

HOUR = 360


def whole_folder(folder: Path) -> str:
    return "".join(path.read_bytes().decode("utf-8", "replace") for path in folder.rglob("*") if path.is_file())


async def test_no_byte_stays_of_what_was_said_in_a_talk_and_is_forgotten(tmp_path: Path) -> None:
    words, lunch = "Kommst du um zwölf zum Essen", TAL.lunch
    async with Town.open(tmp_path, TAL.setting(), models=Models(Mind(TAL))) as town:
        await town.run(until=12 * HOUR + 60)
    assert words in whole_folder(tmp_path) and lunch in whole_folder(tmp_path)
    async with Town.open(tmp_path, models=Models(Mind(TAL))) as town:
        for resident in town.residents.values():
            for about in (words, lunch):
                await forget(resident.stream, await find_removal(resident.stream, ForgetRequest(about=about)))
        talks = [row.event async for row in rows_after(town.store) if isinstance(row.event, Talked)]
        assert talks and all(talk.lines and talk.lines[-1].text == TAL.says["end"] for talk in talks)
    assert words not in whole_folder(tmp_path)
    assert lunch not in whole_folder(tmp_path)
    async with Town.open(tmp_path, models=Models(Mind(TAL))) as town:
        await town.run(until=12 * HOUR + 120)
