"""`mindstream solve`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mindstream.cli import flags_solving as flags
from mindstream.cli.flags import AsJson, Data, Embedder, Fallback, Patience, PoolName, User, choose
from mindstream.cli.flags_solving import split_names

if TYPE_CHECKING:
    from mindstream.cli.solve import Wishes
    from mindstream.service.solving import Task

EPILOG = """A plan is written before anything of it runs (rewoo), mended on the way
(plan-execute), or there is none (react). Steps that do not need each other
run at once. Every step is in the log: a run that was stopped goes on with
--resume NAME, and the same tools.

The answer goes to standard output, all else to standard error. A tool that
changes something is called after you said yes to its very arguments; where
nobody can be asked, only with --allow.

Without a model a formula is calculated; for anything else the best passages
of the documents (--docs), or of the memory, are quoted, which is no answer.

Exit code: 0; 1 where there is no answer, or nothing was run; 130 after Ctrl-C.

\b
Examples:
  mindstream solve "17.5% of 2480 + 12"
  mindstream solve "Who wrote the report?" --docs ./reports
  mindstream solve "Who wrote the report?" --docs ./reports --model openai:gpt-5-mini
  mindstream solve "…" --tools web,calculator --model ollama:qwen3 --approve
  mindstream solve "…" --mcp "uvx mcp-server-time" --model openai:gpt-5-mini
  mindstream solve --list
  mindstream solve --resume 7h2k9q"""


def solve(
    words: Annotated[list[str] | None, typer.Argument(metavar="TASK", help="What is to be solved.")] = None,
    how: flags.How = "rewoo",
    tools: flags.Tools = None,
    docs: flags.Docs = None,
    mcp: flags.Mcp = None,
    trust: flags.Trust = False,
    model: flags.Model = None,
    role: flags.Role = None,
    fallback: Fallback = None,
    patience: Patience = None,
    approve: flags.Approve = False,
    yes: flags.WithoutAsking = False,
    allow: flags.Allow = None,
    replans: flags.Replans = 1,
    budget_tokens: flags.BudgetTokens = None,
    budget_usd: flags.BudgetUsd = None,
    tool_calls: flags.ToolCalls = None,
    seconds: flags.Seconds = None,
    exemplars: flags.Exemplars = None,
    pool: PoolName = "",
    save: flags.Save = None,
    run: flags.Run = None,
    resume: Annotated[str | None, typer.Option(metavar="NAME", help="Go on with a run that was stopped.")] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the runs.")] = False,
    data: Data = None,
    user: User = None,
    embedder: Embedder = None,
    json: AsJson = False,
) -> int:
    """Solve a task with tools: plan it, run the plan, answer."""
    from mindstream.cli import solve as command
    from mindstream.errors import InputError

    given = {
        "model": model, "roles": role, "fallback": fallback, "patience_s": patience, "data": data, "user": user,
        "embedder": embedder,
    }  # fmt: skip
    settings = choose({**given, "budget_tokens": budget_tokens, "budget_usd": budget_usd}).settings
    if list_:
        return command.list_runs(settings, json)
    task = make_task(
        " ".join(words or ()), tools, docs, mcp, how=how, exemplars=exemplars, pool=pool, replans=replans,
        tool_calls=tool_calls, seconds=seconds, run=resume or run or "",
    )  # fmt: skip
    wishes = make_wishes(given, task, approve, yes, allow, trust, save, json)
    if resume:
        if words:
            raise InputError("--resume goes on with its own task: say no other; --run NAME gives a new one a name")
        return command.resume(settings, task, wishes)
    if not task.text.strip():
        raise InputError('say what is to be solved: mindstream solve "17.5% of 2480"')
    return command.solve(settings, task, wishes)


def make_task(
    text: str, tools: list[str] | None, docs: list[Path] | None, mcp: list[str] | None, **more: object
) -> Task:
    """Make a task of the flags."""
    from mindstream.service.solving import Task

    return Task(text, tools=split_names(tools), docs=tuple(docs or ()), mcp=tuple(mcp or ()), **more)  # type: ignore[arg-type]


def make_wishes(
    given: Mapping[str, object],
    task: Task,
    approve: bool,
    yes: bool,
    allow: Sequence[str] | None,
    trust: bool,
    save: Path | None,
    json: bool,
) -> Wishes:
    """Say how a run is to be held, and what it needs to go on."""
    from mindstream.cli.solve import Wishes
    from mindstream.settings import flag_of

    again = {
        **given,
        "tools": ",".join(task.tools or ()),
        "docs": task.docs,
        "mcp": task.mcp,
        "allow": allow,
        "pool": task.pool,
    }
    words: list[str] = []
    for name, value in again.items():
        for each in value if isinstance(value, list | tuple) else [value] if value else []:
            words += [flag_of(name), str(each)]
    return Wishes(approve, yes, tuple(allow or ()), trust, save, json, tuple(words))
