"""U with `replaces` corrects an earlier memory of M2, and the old text stays in the history."""

from __future__ import annotations

from pathlib import Path

from keys import key_of
from lives import FINISH, call, living, results, rows, script


async def test_u_with_replaces_corrects_a_memory(tmp_path: Path) -> None:
    wrong, right = "The ferry leaves at 9, from the old pier.", "The ferry leaves at 10, from the old pier."
    model = script([
        [call("U", memory=wrong), call("U", memory="Bread is sold at 9.")],
        [call("U", memory=right, replaces="2023-11-14: the ferry leaves at 9")],
        [call("R", query="When does the ferry leave?")], FINISH, "ok",
    ])  # fmt: skip
    async with living(tmp_path, model) as life:
        await life.run()
        (recalled,) = [text for tool, text in await results(life.memory) if tool == "R"]
        assert right in recalled and wrong not in recalled and "Bread" in recalled
        (corrected,) = await rows(life.memory, "corrected")
        old, new = await life.memory.store.records(key_of("keeper"), [corrected.old, corrected.new])
    assert old.text == wrong and old.superseded_by == new.id and old.valid_until is not None, (
        "it is history, not deleted"
    )
    assert new.text == right and new.evidence == (old.id,)


async def test_replaces_must_match_exactly_one_memory(tmp_path: Path) -> None:
    model = script([
        [call("U", memory=f"The ferry leaves at 9 {more}.") for more in ("from the pier", "on Sundays")],
        [call("U", memory="x y", replaces="the ferry leaves at 9"), call("U", memory="x y", replaces="a zeppelin")],
        FINISH, "ok",
    ])  # fmt: skip
    async with living(tmp_path, model) as life:
        await life.run()
        given = [text for tool, text in await results(life.memory) if tool == "U"]
        assert (
            "2 memories contain these words" in given[2]
            and "on Sundays" in given[2]
            and "no memory contains" in given[3]
        )
        assert await rows(life.memory, "corrected") == [] and len(await life.memory.latest("note", 9)) == 2


async def test_replaces_without_memory_retracts_a_memory(tmp_path: Path) -> None:
    model = script([
        [call("U", memory="The ferry leaves at 9."), call("U", memory="Bread is sold at 9.")],
        [call("U", replaces="the ferry leaves at 9"), call("U", memory="", replaces=""), call("U", memory=" ")],
        [call("R", query="When does the ferry leave?")], FINISH, "ok",
    ])  # fmt: skip
    async with living(tmp_path, model) as life:
        await life.run()
        given = await results(life.memory)
        (corrected,) = await rows(life.memory, "corrected")
        (old,) = await life.memory.store.records(key_of("keeper"), [corrected.old])
    assert corrected.new == "" and old.valid_until is not None and old.forgotten is None
    assert all("ferry" not in text for tool, text in given if tool == "R")
    assert [text for tool, text in given if tool == "U"][3:] == ["U lacks the required arguments: memory"] * 2
