"""Open a life (an agent with a long-term goal) with a user's settings: models, tools, folders, limits, memory."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC
from pathlib import Path
from typing import TypeAlias

from mindstream.clock import MachineZone, Moment
from mindstream.errors import InputError
from mindstream.life import commands
from mindstream.life.life import Life, LifeConfig
from mindstream.life.permission import Permits
from mindstream.life.schedule import ActiveHours, Rhythm
from mindstream.life.state import LifeBudget, LifeSpent, read_state
from mindstream.life.steps import BilledModel
from mindstream.memory.memory import Memory
from mindstream.memory.policy import MemoryPolicy
from mindstream.memory.recall.rerank import second_stage
from mindstream.minds.calls import CallLog
from mindstream.models.model import Model
from mindstream.models.roles import Models
from mindstream.models.rules import Rules
from mindstream.models.wrappers.meter import Budget
from mindstream.planning.planner import planner_tool
from mindstream.service.opening import answering, unpriced
from mindstream.service.pools import open_member
from mindstream.service.solving import PLANNER, open_tools
from mindstream.settings import Settings
from mindstream.text.times import read_moment, read_spans
from mindstream.tools.mcp.pins import Approve
from mindstream.tools.named import Means
from mindstream.tools.tool import Tool
from mindstream.tools.write_file import write_file_tool, written_file_tools

USUAL = ("calculator",)
OWN = ("R", "U", "M0")
"""Names of tools that M1 (the role that does tasks) always has. All other tools of M1 come from the settings."""
PROMPT_TOKENS = 8_000
"""Default maximum tokens of a prompt of M2 (the role that decides)."""
MIN_PROMPT_TOKENS = 2_000
FOREVER_TOKENS = 200_000
"""Maximum tokens a day of a life with heartbeats (it looks for work by itself), unless another daily limit is set."""
LEAST_BEAT_S = 60.0
"""Minimum interval in seconds at which a life looks for work by itself (heartbeats)."""
ZONE = MachineZone()
USUAL_POLICY = MemoryPolicy()


@dataclass(frozen=True, kw_only=True)
class LifeSettings:
    """The goal of a life, its tools and its limits.

    Attributes:
        goal: the new goal; "": keep the current one.
        orders: new standing orders; (): keep the current ones.
        tools: names of tools (see `tools/named.py`). The name `planner` adds a tool that plans with the other tools.
            None: the calculator.
        docs: folders of documents that the life can search.
        mcp: MCP servers, as command lines or URLs. Requests to the hosts of these URLs are allowed.
        out: a folder in which the life may write and read files, and after an approval delete files.
        allow: tools with side effects that need no approval.
        dream_tools: tools that M1 (the role that does tasks) may call while it writes a dream. A dream is the summary
            of memories that a sleep archives.
        pool: the pool from which M1 is shown exemplars of similar tasks; "": none.
        offer: whether to offer finished tasks of M1 to the pool.
        hours: active hours by this machine's clock, such as "08:00-22:00"; at other times the life only reacts. "": all
            hours.
        beat: minimum interval of heartbeats, such as "1h". At a heartbeat the life looks for work by itself. "": none.
        without_model: whether the rule-based default may continue a life that was run with a model.
        command: the command line that continues the life, for messages.
        record: a file to which all model calls are written; None: they are not written to a file.
        hears: whether the life reads the user's messages in `mindstream chat`.
    """

    goal: str = ""
    orders: tuple[str, ...] = ()
    tools: tuple[str, ...] | None = None
    docs: tuple[Path, ...] = ()
    mcp: tuple[str, ...] = ()
    out: Path | None = None
    allow: tuple[str, ...] = ()
    dream_tools: tuple[str, ...] = ()
    pool: str = ""
    offer: bool = False
    hours: str = ""
    beat: str = ""
    usd_per_day: float | None = None
    tokens_per_day: int | None = None
    words_per_day: int | None = None
    prompt_tokens: int = PROMPT_TOKENS
    hears: bool = True
    without_model: bool = False
    command: str = ""
    record: Path | None = None


@asynccontextmanager
async def open_life(
    settings: Settings,
    wanted: LifeSettings,
    stream: Memory,
    *,
    approve: Approve | None = None,
    note: Callable[[str], None] = lambda _: None,
    models: Models | None = None,
    policy: MemoryPolicy = USUAL_POLICY,
) -> AsyncIterator[Life]:
    """Open models and tools, and start or continue a user's life; model calls are logged.

    Args:
        stream: the memory of the life's user.
        approve: asks the user to approve the tools of an MCP server; None: refuse tools that are not accepted yet.
        note: called with messages for the user, such as that a tool cannot be called.
        models: open models to use; None: open the models of the settings.
        policy: the memory policy for recalls by the tool R and for sleep.

    Raises:
        UserError: a setting, such as a model, tool, folder, server, order or time, is not valid, or the life has no
            goal.
        HeldElsewhere: another process runs this life.
        StorageError: the log cannot be read or written.
        ToolError: no tool of the MCP servers may be called.
    """
    if wanted.offer and not wanted.pool:
        raise InputError("--offer needs a pool: name it with --pool")
    config = replace(make_config(settings, wanted), returned=policy.returned, drawn=policy.drawn)
    if "retention" in policy.model_fields_set:  # chosen in the settings, or stored with the memory
        config = replace(config, retention=policy.retention)
    calls = CallLog()
    spent = (await read_state(stream)).spent
    async with AsyncExitStack() as opened:
        if models is None:
            left = _left(config.budget, spent)
            models = await opened.enter_async_context(
                answering(settings, on_call=calls.take, record=wanted.record, budget=left)
            )
        else:
            models = models.with_listener(calls.take)
        opened.push_async_callback(calls.flush, stream)
        billed: list[BilledModel] = []
        stream.second = second_stage(policy.reranker, policy.reranked, _bill(models, billed))
        tools = await _open_tools(settings, wanted, stream, _bill(models, billed), approve, note, opened)
        _check_named("--allow", wanted.allow, tools)
        _check_named("--dream-tools", [name for name in wanted.dream_tools if name not in OWN], tools)
        scorer = _bill(models, billed).of("scorer") if wanted.offer else None
        name = models.of("M1").name
        member = await opened.enter_async_context(open_member(settings, wanted.pool, scorer=scorer, model=name))
        life = await opened.enter_async_context(
            Life.open(
                stream,
                models,
                goal=wanted.goal,
                orders=wanted.orders,
                tools=tools,
                config=config,
                exemplars=member,
                without_model=wanted.without_model,
                command=wanted.command,
            )
        )
        for model in billed:
            model.steps = life.steps
        limits_money = not (config.budget.usd is None and config.budget.usd_per_day is None)
        if limits_money and (why := unpriced(settings)):
            note(why)
        async with calls.writing(stream):
            yield life


def _check_named(flag: str, names: Sequence[str], tools: Sequence[Tool]) -> None:
    there = [tool.spec.name for tool in tools]
    if wrong := next((name for name in names if name not in there), ""):
        raise InputError(f"{flag} {wrong!r}: this life has no such tool; its tools are: {', '.join(there)}")


def _left(budget: LifeBudget, spent: LifeSpent) -> Budget:
    """Return the remaining budget of a life, for its models.

    The life checks its budget before each step. The models also check the budget before each further call of a step.
    """
    return Budget(
        None if budget.calls is None else max(0, budget.calls - spent.calls),
        None if budget.tokens is None else max(0, budget.tokens - spent.tokens),
        None if budget.usd is None else max(0.0, budget.usd - spent.usd),
    )


def make_config(settings: Settings, wanted: LifeSettings) -> LifeConfig:
    """Return the configuration of a life.

    Raises:
        InputError: the hours or the interval of heartbeats are not valid, or `prompt_tokens` is too small.
    """
    if wanted.prompt_tokens < MIN_PROMPT_TOKENS:
        raise InputError(
            f"--prompt-tokens must be at least {MIN_PROMPT_TOKENS:,}, not {wanted.prompt_tokens:,}: the prompt needs"
            " room for the tools and the task list"
        )
    return LifeConfig(
        budget=LifeBudget(
            calls=settings.budget_calls,
            tokens=settings.budget_tokens,
            usd=settings.budget_usd,
            usd_per_day=wanted.usd_per_day,
            tokens_per_day=_tokens_per_day(wanted),
            words_per_day=wanted.words_per_day,
        ),
        rhythm=Rhythm(
            ActiveHours(wanted.hours, ZONE) if wanted.hours else None,
            ZONE,
            read_beat(wanted.beat) if wanted.beat else None,
        ),
        permits=Permits(tools=wanted.allow, always=("write_file",) if wanted.out else ()),
        prompt_tokens=wanted.prompt_tokens,
        hears=wanted.hears,
        offers=wanted.offer,
        dream_tools=wanted.dream_tools,
    )


def _tokens_per_day(wanted: LifeSettings) -> int | None:
    """Return the maximum tokens a day, None for no maximum; a life with heartbeats and without a daily limit of tokens
    or cost gets FOREVER_TOKENS."""
    is_limited = not (wanted.tokens_per_day is None and wanted.usd_per_day is None)
    return wanted.tokens_per_day if is_limited or not wanted.beat else FOREVER_TOKENS


def read_beat(words: str) -> float:
    """Return the interval of heartbeats in seconds.

    Raises:
        InputError: the text is not a time span of at least a minute.
    """
    moment = read_moment(words, 0.0, UTC) if read_spans(words) else None
    if moment is None or moment < LEAST_BEAT_S:
        raise InputError(f"--beat {words!r} is not a time span of at least a minute, such as 30 min, 1h or 1 day")
    return moment


def read_end(words: str, now: Moment) -> Moment:
    """Return the time at which a run is to end.

    The text gives a duration ("2h", "1h 30m") or a time ("until 18:00", "tomorrow 9:00").

    Raises:
        InputError: the text is neither a duration nor a time, or the time has passed.
    """
    moment = read_moment(words.strip().removeprefix("until "), now, ZONE)
    if moment is not None:
        return moment
    raise InputError(f"--for {words!r} is not a time, such as 2h, 90 min, 3 days, until 18:00, or tomorrow at 9")


async def _open_tools(
    settings: Settings,
    wanted: LifeSettings,
    stream: Memory,
    models: Models,
    approve: Approve | None,
    note: Callable[[str], None],
    opened: AsyncExitStack,
) -> tuple[Tool, ...]:
    names = USUAL if wanted.tools is None else wanted.tools
    worker = models.of("worker", "M1", "reasoner")
    means = Means(None if worker.name == Rules.name else worker, stream, settings.data, embed=settings.embedder)
    found, refused = await open_tools(
        settings, [name for name in names if name != PLANNER], wanted.docs, wanted.mcp, means, approve, opened
    )
    for why in refused.values():
        note(why)
    planner = (planner_tool(found, models),) if PLANNER in names else ()
    files = (write_file_tool(wanted.out), *written_file_tools(wanted.out)) if wanted.out else ()
    return (*found, *planner, *files)


def _bill(models: Models, billed: list[BilledModel]) -> Models:
    """Return models for use by tools, whose calls are billed to the life. Add each of these models to `billed`.

    The rule-based default costs nothing, and is neither billed nor added.
    """

    def bill(model: Model) -> Model:
        if model.name == Rules.name:
            return model
        billed.append(BilledModel(model))
        return billed[-1]

    return models.each(bill)


POLL_S = 1.0
"""Poll interval of a watched folder, in seconds.

Changes are reported only after nothing has changed for one interval. Therefore a file is not reported while it is still
being written.
"""
MAX_FILES, MAX_NAMED = 20_000, 10
"""Maximum number of files that are watched, and of files per kind of change that one notice names."""
Files: TypeAlias = Mapping[str, tuple[int, int]]
"""Each file's modification time and size, by its path within the folder."""


async def watch_folder(stream: Memory, folder: Path, skip: Path | None = None) -> None:
    """Notify a life of new, changed and deleted files, until cancelled.

    Args:
        stream: the memory of the life's user.
        skip: a subfolder that is ignored, such as the subfolder in which the life itself writes.
    """
    reported = before = await asyncio.to_thread(list_files, folder, skip)
    while True:
        await asyncio.sleep(POLL_S)
        now = await asyncio.to_thread(list_files, folder, skip)
        if now == before and now != reported:
            await commands.notice(stream, f"in the folder {folder.name}: {describe_changes(reported, now)}")
            reported = now
        before = now


def list_files(folder: Path, skip: Path | None = None) -> Files:
    """Return the modification times and sizes of the files in a folder and its subfolders.

    The folder `skip` is left out, and so are files and subfolders whose names begin with a dot. The search ends after
    the subfolder in which the total number of files exceeds MAX_FILES.
    """
    found: dict[str, tuple[int, int]] = {}
    left_out = skip.resolve() if skip else None
    for place, folders, names in os.walk(folder):
        here = Path(place)
        folders[:] = [each for each in folders if not each.startswith(".") and (here / each).resolve() != left_out]
        if here.resolve() == left_out:
            continue
        for name in names:
            try:
                state = (here / name).stat()
            except OSError:  # the file was deleted in the meantime
                continue
            if not name.startswith("."):
                found[str((here / name).relative_to(folder))] = (state.st_mtime_ns, state.st_size)
        if len(found) > MAX_FILES:
            break
    return found


def describe_changes(before: Files, now: Files) -> str:
    """Return a description of the new, changed and deleted files."""
    kinds = {
        "new": [name for name in now if name not in before],
        "changed": [name for name in now if name in before and now[name] != before[name]],
        "deleted": [name for name in before if name not in now],
    }
    return "; ".join(f"{kind}: {_names(names)}" for kind, names in kinds.items() if names)


def _names(names: list[str]) -> str:
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return ", ".join(sorted(names)[:MAX_NAMED]) + more
