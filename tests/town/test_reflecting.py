"""What residents think of themselves stays with them: it is no news for others."""

from __future__ import annotations

from pathlib import Path

from hamlet import hamlet
from thinking import reflecting

from mindstream.log.events import Reflected
from mindstream.reasoners.reflect.reflect import OWN
from mindstream.town.events import Talked
from mindstream.town.history import read_history
from mindstream.town.town import Town

FOUR_DAYS = 4 * 8_640 - 1


async def test_what_one_thinks_of_oneself_is_not_passed_on(folder: Path) -> None:
    async with Town.open(folder, hamlet(reflect_at=20.0), models=reflecting()) as town:
        await town.run(until=FOUR_DAYS)
    history = await read_history(folder)
    own = 0
    for name in history.names:
        thoughts = [each for each in history.by_id[name].values() if each.by == "reflect"]
        assert all((name in each.text) == bool(each.data.get(OWN)) for each in thoughts)
        kept = {each.id for each in thoughts if each.data.get(OWN)}
        assert not kept & {id_ for _, talk in history.events(name, Talked) for line in talk.lines for id_ in line.told}
        own += len(kept)
    assert own


async def test_without_a_model_nobody_reflects(folder: Path) -> None:
    async with Town.open(folder, hamlet(reflect_at=20.0)) as town:
        await town.run(until=FOUR_DAYS // 4)
    history = await read_history(folder)
    assert not any(event for name in history.names for event in history.events(name, Reflected))
