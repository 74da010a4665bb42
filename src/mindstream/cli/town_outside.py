"""`mindstream town`: change a town from outside."""

from __future__ import annotations

from typing import Annotated

from mindstream.cli.flags import AsJson, command, switch, word
from mindstream.cli.json_lines import tell
from mindstream.cli.town_group import Name, app
from mindstream.service import town as towns
from mindstream.settings import Settings
from mindstream.town.inspect.lookup import find_object, find_resident


@command(
    app, "town", 'mindstream town set "Isabella Rodriguez\'s apartment:bathroom:shower" leaking',
    'mindstream town set cafe:piano ""        it is as it should be',
    'mindstream town set kitchen:stove "on fire" --danger', name="set",
)  # fmt: skip
async def set_(
    settings: Settings,
    place: Annotated[str, word("OBJECT", "As house:room:object; its end is enough where only one fits.")],
    condition: Annotated[str, word("CONDITION", 'What is wrong with it, in words; "" puts it right again.')],
    danger: Annotated[
        bool | None,
        switch(
            "--danger/--no-danger",
            "It wakes who sleeps beside it and comes before everything; else the town's file or a model says.",
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Change an object: who sees it may do something about it."""
    condition = condition.strip()
    async with towns.open_town(settings) as town:
        address = find_object(town.setting, place)
        is_danger = await town.set_object(address, condition, danger=danger)
    row = {"place": address, "condition": condition, "danger": is_danger}
    tell(json, row, f"{address} is {condition or 'as it should be'}{', a danger' if is_danger else ''}")


@command(app, "town embedder", 'mindstream town whisper "Sam Moore" "The lake will be drained on Friday."')
async def whisper(
    settings: Settings,
    name: Name,
    text: Annotated[str, word("TEXT", "The thought, a whole sentence.")],
    json: AsJson = False,
) -> None:
    """Put a thought into somebody's memory.

    They may plan by it, and tell others.
    """
    async with towns.open_town(settings) as town:
        whom = find_resident(town.setting, name)
        id_ = (await town.whisper(whom, text)).id
    tell(json, {"resident": whom, "record": id_, "text": text.strip()}, f"{whom} has that in mind now")
