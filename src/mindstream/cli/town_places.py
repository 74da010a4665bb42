"""`mindstream town places`: who and what there is in a town."""

from __future__ import annotations

import asyncio

from mindstream.cli.clean import say
from mindstream.cli.json_lines import print_json
from mindstream.service import town as towns
from mindstream.settings import Settings
from mindstream.town.journal import TownState
from mindstream.town.lookup import find_place
from mindstream.town.setting import Setting
from mindstream.town.world.address import ARENA, SECTOR


def show_places(settings: Settings, typed: str, at: str, json: bool) -> int:
    """Print each place, what is in it, what is not as it should be, and who is there."""

    async def run() -> tuple[Setting, TownState, int]:
        async with towns.look_in(settings) as look:
            step = towns.find_past_step(look.setting, at, look.now) if at else look.now
            return look.setting, await look.state(step if at else None), max(step, 0)

    setting, state, step = asyncio.run(run())
    within = setting.addresses[find_place(setting, typed)] if typed else None
    there: dict[str, list[str]] = {}
    for name, each in sorted(state.states.items()):
        spot = setting.world.address_at(each.spot(step))
        there.setdefault(str(spot.upto(ARENA)), []).append(name)
    sector = ""
    for text, place in setting.addresses.items():
        is_room = place.level == ARENA or (place.level == SECTOR and not _has_rooms(setting, text))
        if not is_room or (within is not None and not (place.is_within(within) or within.is_within(place))):
            continue
        objects = setting.objects_in(text)
        conditions = {each: state.conditions[each].text for each in objects if each in state.conditions}
        if json:
            rows = [{"name": each.rpartition(":")[2], "address": each, "condition": conditions.get(each, "")}
                    for each in objects]  # fmt: skip
            print_json({"place": text, "objects": rows, "residents": there.get(text, [])})
            continue
        if sector != (sector := str(place.upto(SECTOR))):
            say(sector.partition(":")[2])
        things = [
            each.rpartition(":")[2] + (f" ({conditions[each]})" if each in conditions else "") for each in objects
        ]
        who = f"; there: {', '.join(there[text])}" if text in there else ""
        say(f"  {place.last}: {', '.join(things) or 'nothing'}{who}")
    return 0


def _has_rooms(setting: Setting, sector: str) -> bool:
    return any(each.startswith(f"{sector}:") for each in setting.addresses)
