"""`mindstream plan`."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from mindstream.cli import flags_solving as flags
from mindstream.cli.flags import AsJson, Data, Embedder, User, choose, group
from mindstream.cli.groups.solving import make_task, make_wishes

plan = group("Look at plans in files, change them, run them.")


@plan.command(
    epilog="\b\nExamples:\n  mindstream plan check plan.json\n  mindstream plan check plan.txt --tools web,llm"
)
def check(
    file: flags.PlanFile,
    tools: flags.Tools = None,
    docs: flags.Docs = None,
    mcp: flags.Mcp = None,
    data: Data = None,
    json: AsJson = False,
) -> int:
    """Say what is wrong with a plan, and what to do about it.

    Exit code 1 where something is. Tools and their arguments are looked at where they are named.
    """
    from mindstream.cli.plans import check_plan

    return check_plan(choose({"data": data}).settings, file, make_task("", tools, docs, mcp), json)


@plan.command(epilog="\b\nExamples:\n  mindstream plan draw plan.json\n  mindstream plan draw plan.json > plan.mmd")
def draw(
    file: flags.PlanFile,
    form: Annotated[
        Literal["text", "mermaid"] | None,
        typer.Option("--as", help="As what [text in a terminal, else mermaid]."),
    ] = None,
) -> int:
    """Draw a plan: who waits for whom."""
    from mindstream.cli.plans import draw_plan

    return draw_plan(file, form)


@plan.command(epilog="\b\nExample:\n  mindstream plan run plan.json --tools web,calculator --model openai:gpt-5-mini")
def run(
    file: flags.PlanFile,
    task: flags.TaskText = "",
    how: flags.How = "rewoo",
    tools: flags.Tools = None,
    docs: flags.Docs = None,
    mcp: flags.Mcp = None,
    trust: flags.Trust = False,
    model: flags.Model = None,
    role: flags.Role = None,
    approve: flags.Approve = False,
    yes: flags.WithoutAsking = False,
    allow: flags.Allow = None,
    replans: flags.Replans = 0,
    budget_tokens: flags.BudgetTokens = None,
    budget_usd: flags.BudgetUsd = None,
    tool_calls: flags.ToolCalls = None,
    seconds: flags.Seconds = None,
    save: flags.Save = None,
    run: flags.Run = None,
    data: Data = None,
    user: User = None,
    embedder: Embedder = None,
    json: AsJson = False,
) -> int:
    """Run a plan as it stands: as `solve`, and no planner is asked.

    Nothing runs where `plan check` would find something wrong.
    """
    from mindstream.cli.plans import run_plan

    given = {"model": model, "roles": role, "data": data, "user": user, "embedder": embedder}
    settings = choose({**given, "budget_tokens": budget_tokens, "budget_usd": budget_usd}).settings
    wanted = make_task(
        task, tools, docs, mcp, how=how, replans=replans, tool_calls=tool_calls, seconds=seconds, run=run or ""
    )
    return run_plan(settings, file, wanted, make_wishes(given, wanted, approve, yes, allow, trust, save, json))


@plan.command(
    epilog="""\b
Examples:
  mindstream plan edit plan.json                  in your editor
  mindstream plan edit plan.json --step E2 --input "people in #E1"
  mindstream plan edit plan.json --step E4 --tool calculator --input "#E2 / 2"
  mindstream plan edit plan.json --remove E3"""
)
def edit(
    file: flags.PlanFile,
    step: Annotated[str, typer.Option(metavar="ID", help="Change this step; one that is not there is added.")] = "",
    tool: Annotated[str, typer.Option(metavar="TOOL", help="Its tool.")] = "",
    input: Annotated[str | None, typer.Option(metavar="INPUT", help="Its input; #E1 is what E1 finds.")] = None,
    why: Annotated[str | None, typer.Option(metavar="WORDS", help="What it is for.")] = None,
    remove: Annotated[list[str] | None, typer.Option(metavar="ID", help="Take this step away; repeatable.")] = None,
) -> int:
    """Change a plan in its file, and say what is changed.

    Without flags it is opened in $VISUAL or $EDITOR. The file is replaced when all is well. Exit code 1 where something
    is wrong with the plan then.
    """
    from mindstream.cli.plans import Edits, edit_plan

    return edit_plan(file, Edits(step, tool, input, why, tuple(remove or ())))


@plan.command(epilog="\b\nExample:\n  mindstream plan export plan.json --tools web,llm >> exemplars.jsonl")
def export(
    file: flags.PlanFile,
    task: flags.TaskText = "",
    form: Annotated[
        Literal["chat", "instruction"], typer.Option("--form", help="As whom it is trained with.", show_default=True)
    ] = "chat",
    tools: flags.Tools = None,
    docs: flags.Docs = None,
    mcp: flags.Mcp = None,
    data: Data = None,
) -> int:
    """Write a plan as a line to train a planner on.

    The line holds its task, its tools and the plan.
    """
    from mindstream.cli.plans import export_plan

    return export_plan(choose({"data": data}).settings, file, make_task(task, tools, docs, mcp), form)
