"""Records that residents forget are removed from every row of their town, and the town continues."""

from __future__ import annotations

from pathlib import Path

from keys import key_of_resident
from mindstream_town.events import Talked
from mindstream_town.journal import rows_after
from mindstream_town.town import Town
from villages import TAL, Mind

from mindstream.memory.curation.forgetting import ForgetRequest, find_removal, remove
from mindstream.models.roles import Models
from mindstream.service.calling import open_user_memory
from mindstream.service.privacy import erase as erasing
from mindstream.settings import Settings

HOUR = 360


def whole_folder(folder: Path) -> str:
    return "".join(path.read_bytes().decode("utf-8", "replace") for path in folder.rglob("*") if path.is_file())


async def test_a_forgotten_conversation_leaves_no_byte_in_the_town(tmp_path: Path) -> None:
    words, lunch = "Kommst du um zwölf zum Essen", TAL.lunch
    async with Town.open(tmp_path, TAL.setting(), model=Models(Mind(TAL))) as town:
        await town.run(until=12 * HOUR + 60)
    assert words in whole_folder(tmp_path) and lunch in whole_folder(tmp_path)
    async with Town.open(tmp_path, model=Models(Mind(TAL))) as town:
        for resident in town.residents.values():
            for about in (words, lunch):
                await remove(resident.memory, await find_removal(resident.memory, ForgetRequest(about=about)))
        talks = [row.event async for row in rows_after(town.store) if isinstance(row.event, Talked)]
        assert talks and all(talk.lines and talk.lines[-1].text == TAL.says["end"] for talk in talks)
    assert words not in whole_folder(tmp_path)
    assert lunch not in whole_folder(tmp_path)
    async with Town.open(tmp_path, model=Models(Mind(TAL))) as town:
        await town.run(until=12 * HOUR + 120)


async def test_an_erased_residents_words_are_removed_from_conversations_of_others(tmp_path: Path) -> None:
    words, end = "Kommst du um zwölf zum Essen", TAL.says["end"]
    async with Town.open(tmp_path, TAL.setting(), model=Models(Mind(TAL))) as town:
        await town.run(until=10 * HOUR)
        talks = [row.event async for row in rows_after(town.store) if isinstance(row.event, Talked)]
    who = talks[0].lines[0].by
    assert all(talk.lines[0].by == who for talk in talks) and words in whole_folder(tmp_path)
    async with open_user_memory(Settings(data=tmp_path, user=who)) as opened:
        kept = await erasing.find_user_data(opened, tmp_path)
        await erasing.erase(opened, tmp_path, kept)
        others = [row async for row in rows_after(opened.store) if row.mind != key_of_resident(who)]
        talks = [row.event for row in others if isinstance(row.event, Talked)]
    assert words not in whole_folder(tmp_path)
    assert [talk.lines[-1].text for talk in talks] == [end], "the other resident's words are kept"
    assert any("town's file stays" in each for each in kept.stays)
