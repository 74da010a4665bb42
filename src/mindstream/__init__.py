"""mindstream: a talker that answers at once, reasoners that think behind, one memory that joins them.

    async with Mind.open("data", user="ann", responder=Coach.using(pack="sleep")) as mind:
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
    from mindstream.memory.memory import Memory
    from mindstream.memory.store.record import Record, RecordDraft
    from mindstream.memory.store.sqlite import SqliteStore
    from mindstream.memory.store.store import Entry, Store
    from mindstream.minds.mind import Mind
    from mindstream.minds.timeouts import Timeouts
    from mindstream.models.ask import act, ask, speak
    from mindstream.models.fake import FakeModel
    from mindstream.models.model import Call
    from mindstream.models.prompt import Prompt, rule
    from mindstream.models.roles import Models
    from mindstream.reasoners.reasoner import Reasoner, RunContext, RunResult
    from mindstream.reasoners.trigger import Trigger
    from mindstream.tools.loop import ToolLog, run_tool_loop
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
    "RecordDraft": "memory.store.record", "Record": "memory.store.record",
    "SqliteStore": "memory.store.sqlite",
    "Entry": "memory.store.store", "Store": "memory.store.store",
    "Memory": "memory.memory",
    "Mind": "minds.mind",
    "Timeouts": "minds.timeouts",
    "act": "models.ask", "ask": "models.ask", "speak": "models.ask",
    "Call": "models.model",
    "Prompt": "models.prompt", "rule": "models.prompt",
    "Models": "models.roles",
    "FakeModel": "models.fake",
    "RunResult": "reasoners.reasoner", "RunContext": "reasoners.reasoner", "Reasoner": "reasoners.reasoner",
    "Trigger": "reasoners.trigger",
    "ToolLog": "tools.loop", "run_tool_loop": "tools.loop",
    "Tool": "tools.tool", "tool": "tools.tool",
}  # fmt: skip

__all__ = [
    "Call",
    "Coach",
    "Entry",
    "FakeModel",
    "InputError",
    "ManualClock",
    "Memory",
    "Mind",
    "MindstreamError",
    "ModelError",
    "Models",
    "Prompt",
    "Reasoner",
    "Record",
    "RecordDraft",
    "Remembered",
    "RunContext",
    "RunResult",
    "SqliteStore",
    "StorageError",
    "Store",
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
    "run_tool_loop",
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
