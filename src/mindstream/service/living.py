"""Opens a life with a user's settings: models, tools by name, folders, limits, hours, memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC
from pathlib import Path

from mindstream.clock import MachineZone, Moment
from mindstream.errors import InputError
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
from mindstream.models.wrappers.budget import Budget
from mindstream.planning.planner import planner_tool
from mindstream.service.opening import answering, unpriced
from mindstream.service.pools import open_member
from mindstream.service.solving import open_tools
from mindstream.settings import Settings
from mindstream.text.times import read_moment
from mindstream.tools.mcp.pins import Approve
from mindstream.tools.named import Means
from mindstream.tools.tool import Tool
from mindstream.tools.write_file import write_file_tool, written_file_tools

PLANNER = "planner"
"""The name of the tool that plans and solves a task of several steps with the other tools."""
USUAL = ("calculator",)
OWN = ("R", "U", "M0")
"""M1's own tools; all others come from the settings."""
PROMPT_TOKENS = 8_000
MIN_PROMPT_TOKENS = 2_000
FOREVER_TOKENS = 200_000
"""Maximum tokens a day of a life that looks for work of its own, if no other daily limit is set."""
LEAST_BEAT_S = 60.0
ZONE = MachineZone()
USUAL_POLICY = MemoryPolicy()


@dataclass(frozen=True, kw_only=True)
class LifeSettings:
    """The goal of a life, its tools and its limits.

    Attributes:
        goal, orders: "" and (): keep the current ones.
        tools: by name (`tools/named.py`), and `planner`; None: the calculator.
        docs: folders of documents to search.
        mcp: servers, as command lines or URLs; requests to the hosts of these URLs are allowed.
        out: a folder in which it may write files, read them, and delete them after approval.
        allow: tools with side effects that need no approval.
        dream_tools: tools that M1 may call while it makes a dream.
        pool: the pool whose exemplars of similar tasks M1 is shown.
        offer: offer finished tasks of M1 to that pool.
        without_model: rules may continue a life that was lived with a model.
        command: the command line that continues it.
        beat: minimum interval of heartbeats, at which it looks for work of its own: "1h"; "": none.
        hours: active hours, outside which it does not act by itself: "08:00-22:00", by this machine's clock.
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
    """Open models and tools, and start or continue the life of a stream; calls of models are logged.

    Args:
        note: called with messages for the user, such as a tool that may not be called.
        policy: the policy of R's recalls and of sleep.
        models: open models; None: those of the settings are opened here.

    Raises:
        UserError: a model, tool, folder, server, order or time cannot be used, or there is no goal.
        HeldElsewhere: another process runs this life.
        StorageError: the log cannot be used.
        ToolError: no tool of the MCP servers may be called.
    """
    if wanted.offer and not wanted.pool:
        raise InputError("--offer needs a pool: name it with --pool")
    config = replace(make_config(settings, wanted), returned=policy.returned, drawn=policy.drawn)
    if "retention" in policy.model_fields_set:  # the settings' choice, or recorded
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
        raise InputError(f"{flag} {wrong!r}: there is no such tool here; there are: {', '.join(there)}")


def _left(budget: LifeBudget, spent: LifeSpent) -> Budget:
    """Return the remaining budget; it also limits repeated calls within a step."""
    return Budget(
        None if budget.calls is None else max(0, budget.calls - spent.calls),
        None if budget.tokens is None else max(0, budget.tokens - spent.tokens),
        None if budget.usd is None else max(0.0, budget.usd - spent.usd),
    )


def make_config(settings: Settings, wanted: LifeSettings) -> LifeConfig:
    """Return the configuration of a life.

    Raises:
        InputError: the hours are invalid, or M2's prompt would be too small.
    """
    if wanted.prompt_tokens < MIN_PROMPT_TOKENS:
        raise InputError(f"--prompt-tokens: at least {MIN_PROMPT_TOKENS:,}, or M2 cannot see its tools and its ledger")
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
    """Return the maximum tokens a day; a life with a heartbeat always has a daily limit."""
    is_limited = not (wanted.tokens_per_day is None and wanted.usd_per_day is None)
    return wanted.tokens_per_day if is_limited or not wanted.beat else FOREVER_TOKENS


def read_beat(words: str) -> float:
    """Return the interval of heartbeats in seconds.

    Raises:
        InputError: it is not a time span, or under a minute.
    """
    moment = read_moment(words.strip(), 0.0, UTC)
    if moment is None or moment < LEAST_BEAT_S:
        raise InputError(f"--beat {words!r} is no time of at least a minute: use 30 min, 1h, 1 day")
    return moment


def read_end(words: str, now: Moment) -> Moment:
    """Return the end of a time: "2h", "1h 30m", "until 18:00", "tomorrow 9:00".

    Raises:
        InputError: it is not a time.
    """
    moment = read_moment(words.strip().removeprefix("until "), now, ZONE)
    if moment is not None:
        return moment
    raise InputError(f"--for {words!r} is no time: use 2h, 90 min, 3 days, until 18:00, or tomorrow at 9")


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
    """Return models whose calls by tools are billed to the life; rules cost nothing."""

    def bill(model: Model) -> Model:
        if model.name == Rules.name:
            return model
        billed.append(BilledModel(model))
        return billed[-1]

    return models.each(bill)
