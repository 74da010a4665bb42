"""mindstream: a talker that answers at once, reasoners that think behind, one memory that joins them.

    async with Mind.open("data", pack="sleep", user="ann") as mind:
        async for logged in mind.hear("Noise keeps me awake. Can you make me a plan?"):
            print(logged.event)

Names are loaded when they are first used, so that importing the package is quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mindstream.clock import ManualClock, SystemClock
    from mindstream.coach.packs.load import load as load_pack
    from mindstream.errors import MindstreamError, ModelError, StorageError, UserError
    from mindstream.memory.record import Record
    from mindstream.memory.sqlite import SqliteStore
    from mindstream.memory.stream import Stream
    from mindstream.minds.mind import Mind
    from mindstream.minds.patience import Patience
    from mindstream.models.ask import act, ask, speak
    from mindstream.models.prompt import Prompt, rule
    from mindstream.models.roles import Models
    from mindstream.models.scripted import Scripted
    from mindstream.tools.tool import tool

__version__ = "0.1.0"

_HOMES = {
    "ManualClock": "clock", "SystemClock": "clock",
    "MindstreamError": "errors", "ModelError": "errors", "StorageError": "errors", "UserError": "errors",
    "Record": "memory.record", "SqliteStore": "memory.sqlite", "Stream": "memory.stream",
    "Mind": "minds.mind", "Patience": "minds.patience",
    "act": "models.ask", "ask": "models.ask", "speak": "models.ask",
    "Prompt": "models.prompt", "rule": "models.prompt", "Models": "models.roles", "Scripted": "models.scripted",
    "load_pack": "coach.packs.load", "tool": "tools.tool",
}  # fmt: skip

__all__ = [
    "ManualClock",
    "Mind",
    "MindstreamError",
    "ModelError",
    "Models",
    "Patience",
    "Prompt",
    "Record",
    "Scripted",
    "SqliteStore",
    "StorageError",
    "Stream",
    "SystemClock",
    "UserError",
    "act",
    "ask",
    "load_pack",
    "rule",
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
