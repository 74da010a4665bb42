"""`mindstream town places`: who and what there is in a town."""

from __future__ import annotations

from typing import Annotated

from mindstream.cli.clean import say
from mindstream.cli.flags import AsJson, command, word
from mindstream.cli.json_lines import print_json
from mindstream.cli.town_group import At, app
from mindstream.service import town as towns
from mindstream.settings import Settings
from mindstream.town.inspect.lookup import find_place
from mindstream.town.setting import Setting
from mindstream.town.world.address import ARENA, SECTOR


@command(app, "town", "mindstream town places --data ./ville", "mindstream town places cafe --data ./ville --json")
async def places(
    settings: Settings,
    place: Annotated[str, word("PLACE", "Only this place; the end of its address.")] = "",
    at: At = "",
    json: AsJson = False,
) -> None:
    """List places, what is in them, and who is there."""
    async with towns.look_in(settings) as look:
        setting = look.setting
        state, step = await look.at(at)
    within = setting.addresses[find_place(setting, place)] if place else None
    there: dict[str, list[str]] = {}
    for name, each in sorted(state.states.items()):
        spot = setting.world.address_at(each.spot(max(step, 0)))
        there.setdefault(str(spot.upto(ARENA)), []).append(name)
    sector = ""
    for text, address in setting.addresses.items():
        is_room = address.level == ARENA or (address.level == SECTOR and not _has_rooms(setting, text))
        if not is_room or (within is not None and not (address.is_within(within) or within.is_within(address))):
            continue
        objects = setting.objects_in(text)
        conditions = {each: state.conditions[each].text for each in objects if each in state.conditions}
        if json:
            rows = [{"name": each.rpartition(":")[2], "address": each, "condition": conditions.get(each, "")}
                    for each in objects]  # fmt: skip
            print_json({"place": text, "objects": rows, "residents": there.get(text, [])})
            continue
        if sector != (sector := str(address.upto(SECTOR))):
            say(sector.partition(":")[2])
        things = [
            each.rpartition(":")[2] + (f" ({conditions[each]})" if each in conditions else "") for each in objects
        ]
        who = f"; there: {', '.join(there[text])}" if text in there else ""
        say(f"  {address.last}: {', '.join(things) or 'nothing'}{who}")


def _has_rooms(setting: Setting, sector: str) -> bool:
    return any(each.startswith(f"{sector}:") for each in setting.addresses)
