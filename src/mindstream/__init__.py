"""mindstream: a talker that answers at once, reasoners that think in the background, and one memory that they share.

    async with Mind.open("data", user="ann", responder=Coach.using(pack="sleep")) as mind:
        async for event in mind.stream("Noise keeps me awake. Can you make me a plan?"):
            match event:
                case Said(text=text):
                    print(text)

docs/python.md shows each name of this module in an example that runs. Names are loaded when they are first used, so
that importing the package is fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from mindstream import moved as moved

if TYPE_CHECKING:
    from mindstream_town.formats.town_file import Place, Resident
    from mindstream_town.town import Town

    from mindstream.clock import Clock, ManualClock, SystemClock
    from mindstream.coach.coach import Coach
    from mindstream.errors import (
        BudgetSpent,
        Conflict,
        HeldElsewhere,
        InputError,
        MindstreamError,
        ModelError,
        ModelRefused,
        ModelUnavailable,
        PackError,
        ReplyInvalid,
        SettingsError,
        StorageError,
        ToolError,
        UserError,
    )
    from mindstream.life.life import Life, LifeConfig
    from mindstream.log.events import (
        BeliefChanged,
        FollowUp,
        Heard,
        Logged,
        Piece,
        PlanChanged,
        Said,
        Timeline,
        Waiting,
    )
    from mindstream.memory.memory import Memory
    from mindstream.memory.store.record import Record, RecordDraft
    from mindstream.memory.store.sqlite import SqliteStore
    from mindstream.memory.store.store import Entry, Store
    from mindstream.minds.chat_bot import ChatBot
    from mindstream.minds.mind import Mind, TalkEvent
    from mindstream.minds.responder import Handling, Host, Responder, ResponderFactory, Timeouts, answer_with
    from mindstream.models.ask_in_words import ask
    from mindstream.models.embedders.embedder import Embedder
    from mindstream.models.model import Call, Model
    from mindstream.models.prompt import Prompt, act, rule, speak
    from mindstream.models.roles import Models
    from mindstream.models.rules import FakeModel
    from mindstream.models.wrappers.meter import Budget
    from mindstream.planning.plan import Plan, PlannedStep
    from mindstream.planning.planner import Planner
    from mindstream.planning.run import Solution
    from mindstream.reasoners.reasoner import BeliefPatch, Reasoner, RunContext, RunResult, Trigger
    from mindstream.sharing.member import Member
    from mindstream.sharing.pool import Pool
    from mindstream.tools.call import ToolLog, ToolRequest, run_tool_loop
    from mindstream.tools.tool import Tool, tool

__version__ = "0.1.0"

_HOMES = {
    "Clock": "clock", "ManualClock": "clock", "SystemClock": "clock",
    "Coach": "coach.coach",
    "BudgetSpent": "errors", "Conflict": "errors", "HeldElsewhere": "errors", "InputError": "errors",
    "MindstreamError": "errors", "ModelError": "errors", "ModelRefused": "errors", "ModelUnavailable": "errors",
    "PackError": "errors", "ReplyInvalid": "errors", "SettingsError": "errors", "StorageError": "errors",
    "ToolError": "errors", "UserError": "errors",
    "Life": "life.life", "LifeConfig": "life.life",
    "BeliefChanged": "log.events", "FollowUp": "log.events", "Heard": "log.events", "Logged": "log.events",
    "Piece": "log.events", "PlanChanged": "log.events", "Said": "log.events", "Waiting": "log.events",
    "Timeline": "log.events",
    "Memory": "memory.memory",
    "Record": "memory.store.record", "RecordDraft": "memory.store.record",
    "SqliteStore": "memory.store.sqlite",
    "Entry": "memory.store.store", "Store": "memory.store.store",
    "ChatBot": "minds.chat_bot",
    "Mind": "minds.mind", "TalkEvent": "minds.mind",
    "Attention": "minds.responder", "Handling": "minds.responder", "Host": "minds.responder",
    "Responder": "minds.responder",
    "ResponderFactory": "minds.responder", "answer_with": "minds.responder",
    "Timeouts": "minds.responder",
    "act": "models.prompt", "ask": "models.ask_in_words", "speak": "models.prompt",
    "Embedder": "models.embedders.embedder",
    "FakeModel": "models.rules",
    "Call": "models.model", "Model": "models.model",
    "Prompt": "models.prompt", "rule": "models.prompt",
    "Models": "models.roles",
    "Budget": "models.wrappers.meter",
    "Plan": "planning.plan", "PlannedStep": "planning.plan",
    "Planner": "planning.planner",
    "Solution": "planning.run",
    "BeliefPatch": "reasoners.reasoner", "Reasoner": "reasoners.reasoner", "RunContext": "reasoners.reasoner",
    "RunResult": "reasoners.reasoner",
    "Trigger": "reasoners.reasoner",
    "Member": "sharing.member",
    "Pool": "sharing.pool",
    "ToolRequest": "tools.call",
    "ToolLog": "tools.call", "run_tool_loop": "tools.call",
    "Tool": "tools.tool", "tool": "tools.tool",
}  # fmt: skip

__all__ = [
    "BeliefChanged",
    "BeliefPatch",
    "Budget",
    "BudgetSpent",
    "Call",
    "ChatBot",
    "Clock",
    "Coach",
    "Conflict",
    "Embedder",
    "Entry",
    "FakeModel",
    "FollowUp",
    "Handling",
    "Heard",
    "HeldElsewhere",
    "Host",
    "InputError",
    "Life",
    "LifeConfig",
    "Logged",
    "ManualClock",
    "Member",
    "Memory",
    "Mind",
    "MindstreamError",
    "Model",
    "ModelError",
    "ModelRefused",
    "ModelUnavailable",
    "Models",
    "PackError",
    "Piece",
    "Place",
    "Plan",
    "PlanChanged",
    "PlannedStep",
    "Planner",
    "Pool",
    "Prompt",
    "Reasoner",
    "Record",
    "RecordDraft",
    "ReplyInvalid",
    "Resident",
    "Responder",
    "ResponderFactory",
    "RunContext",
    "RunResult",
    "Said",
    "SettingsError",
    "Solution",
    "SqliteStore",
    "StorageError",
    "Store",
    "SystemClock",
    "TalkEvent",
    "Timeline",
    "Timeouts",
    "Tool",
    "ToolError",
    "ToolLog",
    "ToolRequest",
    "Town",
    "Trigger",
    "UserError",
    "Waiting",
    "act",
    "answer_with",
    "ask",
    "rule",
    "run_tool_loop",
    "speak",
    "tool",
]


def __getattr__(name: str) -> object:
    if name in ("Town", "Resident", "Place"):
        try:
            return getattr(importlib.import_module("mindstream_town"), name)
        except ModuleNotFoundError as error:
            if error.name != "mindstream_town":  # a package that it needs is missing
                raise
            raise ImportError(f"mindstream.{name} is in another distribution: pip install mindstream-town") from error
    if name == "sync":
        return importlib.import_module("mindstream.sync")
    if name not in _HOMES:
        near = {known.casefold(): known for known in __all__}.get(name.casefold())
        raise AttributeError(
            f"module 'mindstream' has no attribute {name!r}{f'; did you mean {near}?' if near else ''}"
        )
    return getattr(importlib.import_module(f"mindstream.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
