"""Flags of the commands that solve tasks and look at plans."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

import typer

Way = Literal["rewoo", "react", "plan-execute"]
How = Annotated[Way, typer.Option("--how", metavar="WAY", help="rewoo, react or plan-execute.", show_default=True)]
Tools = Annotated[
    list[str] | None,
    typer.Option(
        "--tools", metavar="A,B", help="Its tools: calculator, web, wikipedia, wolfram, read_page, llm, recall"
        " [calculator; llm with a model, else recall without --docs].",
    ),
]  # fmt: skip
Docs = Annotated[
    list[Path] | None, typer.Option("--docs", metavar="DIR", help="A folder of documents to search; repeatable.")
]
Mcp = Annotated[
    list[str] | None,
    typer.Option("--mcp", metavar="SERVER", help="An MCP server: a command line in quotes, or a URL; repeatable."),
]
Trust = Annotated[bool, typer.Option("--trust", help="Accept what MCP servers say of their tools; it is shown.")]
Model = Annotated[
    str | None, typer.Option("--model", metavar="NAME", help="Who plans, works and answers, as for chat [nobody].")
]
Role = Annotated[
    list[str] | None,
    typer.Option(
        "--role", metavar="ROLE=NAME", help="Who answers in one role: planner, worker, solver, replanner; repeatable."
    ),
]
Approve = Annotated[bool, typer.Option("--approve", help="Show the plan, and ask before anything of it runs.")]
WithoutAsking = Annotated[bool, typer.Option("--yes", help="Do not ask, however much it will cost.")]
Allow = Annotated[
    list[str] | None,
    typer.Option(
        "--allow", metavar="TOOL", help="This tool may change things without a question, except with strangers'"
        " words; repeatable.",
    ),
]  # fmt: skip
Replans = Annotated[
    int,
    typer.Option("--replans", min=0, max=100, metavar="N", help="Mend the plan so often.", show_default=True),
]
BudgetTokens = Annotated[
    int | None, typer.Option("--budget-tokens", metavar="N", help="Stop asking models after so many tokens.")
]
BudgetUsd = Annotated[
    float | None, typer.Option("--budget-usd", metavar="X", help="Stop asking models after so many US dollars.")
]
ToolCalls = Annotated[int | None, typer.Option("--tool-calls", min=0, metavar="N", help="Call tools so often at most.")]
Seconds = Annotated[float | None, typer.Option("--seconds", min=0, metavar="S", help="Stop after so many seconds.")]
Save = Annotated[Path | None, typer.Option("--save", metavar="FILE", help="Keep the plan there, as JSON.")]
Run = Annotated[
    str | None, typer.Option("--run", metavar="NAME", help="The run's name; one that was stopped goes on [a new one].")
]
Exemplars = Annotated[
    Path | None,
    typer.Option(
        "--exemplars", metavar="FILE", help="Solved tasks to show the planner: texts with --- between them, or what"
        " `plan export` writes.",
    ),
]  # fmt: skip
PlanFile = Annotated[Path, typer.Argument(metavar="FILE", help="A plan: JSON, or text in one of three forms.")]
TaskText = Annotated[str, typer.Option("--task", metavar="WORDS", help="What is to be solved [as the file says].")]


def split_names(tools: list[str] | None) -> tuple[str, ...] | None:
    """Return the names that stand in `--tools`; None where nothing was said."""
    if tools is None or not tools:
        return None
    return tuple(name.strip() for each in tools for name in each.split(",") if name.strip())


def flags_for(tools: Iterable[str]) -> str:
    """Say which flags bring the tools that a plan names."""
    folder = {"search_documents", "list_documents", "read_document"}
    called = {"web_search": "web", "LLM": "llm"} | {
        name: name for name in ("calculator", "wikipedia", "wolfram", "read_page", "recall")
    }
    wanted = dict.fromkeys(tools)
    named = [called[tool] for tool in wanted if tool in called]
    others = [tool for tool in wanted if tool not in called and tool not in folder]
    parts = ("--docs DIR" * bool(folder & wanted.keys()), f"--tools {','.join(named)}" * bool(named))
    return " ".join(filter(None, (*parts, f"--mcp SERVER ({', '.join(others)})" * bool(others))))
