"""A town whose residents perceive, remember, plan, react, talk and reflect (Park 2023), and its world."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from mindstream.plugins import Plugin, Role

if TYPE_CHECKING:
    from mindstream_town.formats.town_file import Place, Resident
    from mindstream_town.town import Town

__all__ = ["PLUGIN", "Place", "Resident", "Town"]
_HOMES = {"Place": "formats.town_file", "Resident": "formats.town_file", "Town": "town"}


def _events() -> Iterable[type]:
    from mindstream_town.events import EVENTS

    return EVENTS


PLUGIN = Plugin(
    "town",
    roles=(
        Role("planner", "plans a resident's day"),
        Role("decider", "decides whether to act on what was seen"),
        Role("talker", "says what residents say"),
        Role("reasoner", "reflects"),
        Role("importance", "rates how much a memory matters"),
        Role("judge", "says whose answer is more believable, in an evaluation"),
    ),
    events=_events,
    operations=("mindstream_town.operations.towns", "mindstream_town.operations.towns_seen"),
    commands={
        "town": (
            "A town of residents who perceive, remember, plan, talk and reflect: run it, look into it.",
            *(
                f"mindstream_town.commands.{name}"
                for name in ("group", "run", "embody", "look", "cause", "metrics", "saves")
            ),
        )
    },
)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'mindstream_town' has no attribute {name!r}")
    return getattr(importlib.import_module(f"mindstream_town.{_HOMES[name]}"), name)  # loaded at first use
