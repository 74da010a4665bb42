"""mindstream: a talker that answers at once, reasoners that think behind, one memory that joins them.

    async with Mind.open("data", pack="sleep", user="ann") as mind:
        async for logged in mind.hear("Noise keeps me awake. Can you make me a plan?"):
            print(logged.event)

Names are loaded when they are first used, so that importing the package is quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from mindstream import coach, life, planning, rooms, sharing, town

if TYPE_CHECKING:
    from mindstream.clock import ManualClock, SystemClock
    from mindstream.coach.coach import Coach
    from mindstream.coach.packs.load import load as load_pack
    from mindstream.errors import InputError, MindstreamError, ModelError, StorageError, UserError
    from mindstream.log.events import Remembered
    from mindstream.memory.record import New, Record
    from mindstream.memory.sqlite import SqliteStore
    from mindstream.memory.store import Entry, Store
    from mindstream.memory.stream import Stream
    from mindstream.minds.mind import Mind
    from mindstream.minds.timeouts import Timeouts
    from mindstream.models.ask import act, ask, speak
    from mindstream.models.model import Call
    from mindstream.models.prompt import Prompt, rule
    from mindstream.models.roles import Models
    from mindstream.models.scripted import Scripted
    from mindstream.reasoners.reasoner import Conclusion, Occasion, Reasoner
    from mindstream.reasoners.trigger import Trigger
    from mindstream.tools.loop import ToolLog, solve
    from mindstream.tools.tool import Tool, tool

__version__ = "0.1.0"

rooms.register(coach.ROOM, planning.ROOM, life.ROOM, sharing.ROOM, town.ROOM)

_HOMES = {
    "ManualClock": "clock", "SystemClock": "clock",
    "Coach": "coach.coach",
    "load_pack": "coach.packs.load",
    "InputError": "errors", "MindstreamError": "errors", "ModelError": "errors",
    "StorageError": "errors", "UserError": "errors",
    "Remembered": "log.events",
    "New": "memory.record", "Record": "memory.record",
    "SqliteStore": "memory.sqlite",
    "Entry": "memory.store", "Store": "memory.store",
    "Stream": "memory.stream",
    "Mind": "minds.mind",
    "Timeouts": "minds.timeouts",
    "act": "models.ask", "ask": "models.ask", "speak": "models.ask",
    "Call": "models.model",
    "Prompt": "models.prompt", "rule": "models.prompt",
    "Models": "models.roles",
    "Scripted": "models.scripted",
    "Conclusion": "reasoners.reasoner", "Occasion": "reasoners.reasoner", "Reasoner": "reasoners.reasoner",
    "Trigger": "reasoners.trigger",
    "ToolLog": "tools.loop", "solve": "tools.loop",
    "Tool": "tools.tool", "tool": "tools.tool",
}  # fmt: skip

__all__ = [
    "Call",
    "Coach",
    "Conclusion",
    "Entry",
    "InputError",
    "ManualClock",
    "Mind",
    "MindstreamError",
    "ModelError",
    "Models",
    "New",
    "Occasion",
    "Prompt",
    "Reasoner",
    "Record",
    "Remembered",
    "Scripted",
    "SqliteStore",
    "StorageError",
    "Store",
    "Stream",
    "SystemClock",
    "Timeouts",
    "Tool",
    "ToolLog",
    "Trigger",
    "UserError",
    "act",
    "ask",
    "load_pack",
    "rule",
    "solve",
    "speak",
    "tool",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'mindstream' has no attribute {name!r}")
    module = importlib.import_module(f"mindstream.{_HOMES[name]}")
    return getattr(module, "load" if name == "load_pack" else name)


def __dir__() -> list[str]:
    return __all__
