"""Flags of the commands that solve tasks and look at plans."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal

from mindstream.cli.flags import flag, flag_name, switch, word

Way = Literal["rewoo", "react", "plan-execute"]
How = Annotated[Way, flag("WAY", "rewoo, react or plan-execute.", "--how")]
TOOLS = (
    "Its tools: calculator, web, wikipedia, wolfram, read_page, llm, recall [calculator; llm with a model, else recall"
    " without --docs]."
)
Tools = Annotated[list[str] | None, flag("A,B", TOOLS, "--tools")]
Docs = Annotated[list[Path] | None, flag("DIR", "A folder of documents to search; repeatable.", "--docs")]
Mcp = Annotated[
    list[str] | None, flag("SERVER", "An MCP server: a command line in quotes, or a URL; repeatable.", "--mcp")
]
Trust = Annotated[bool, switch("--trust", "Accept what MCP servers say of their tools; it is shown.")]
MODEL = "Who plans, works and answers, as for chat [nobody]."
ROLE = "Who answers in one role: planner, worker, solver, replanner; repeatable."
Approve = Annotated[bool, switch("--approve", "Show the plan, and ask before anything of it runs.")]
WithoutAsking = Annotated[bool, switch("--yes", "Do not ask, however much it will cost.")]
ALLOW = "This tool may change things without a question, except with strangers' words; repeatable."
Allow = Annotated[list[str] | None, flag("TOOL", ALLOW, "--allow")]
Replans = Annotated[int, flag("N", "Mend the plan so often.", "--replans", min=0, max=100)]
ToolCalls = Annotated[int | None, flag("N", "Call tools so often at most.", "--tool-calls", min=0)]
Seconds = Annotated[float | None, flag("S", "Stop after so many seconds.", "--seconds", min=0)]
Save = Annotated[Path | None, flag("FILE", "Keep the plan there, as JSON.", "--save")]
Run = Annotated[str, flag("NAME", "The run's name; one that was stopped goes on [a new one].", "--run")]
PlanFile = Annotated[Path, word("FILE", "A plan: JSON, or text in one of three forms.")]
TaskText = Annotated[str, flag("WORDS", "What is to be solved [as the file says].", "--task")]


def write_flags(values: Mapping[str, object]) -> Iterator[str]:
    """Write flags as they are typed; what says nothing is left out, though 0 is a limit."""
    for name, value in values.items():
        for each in value if isinstance(value, list | tuple) else [value]:
            if each is True:
                yield flag_name(name)
            elif not (each is None or each is False or each == ""):
                yield from (flag_name(name), str(each))


def split_names(tools: list[str] | None) -> tuple[str, ...] | None:
    """Return the names that stand in `--tools`; None where nothing was said."""
    if not tools:
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
