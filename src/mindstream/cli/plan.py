"""`mindstream plan`: check, draw, run, edit and export plans in files."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.text import Text

from mindstream.cli import permission
from mindstream.cli.screens.run import show_changes
from mindstream.cli.shell.files import write_text
from mindstream.cli.shell.flags import AsJson, Docs, Mcp, command, flag, group, split_names, switch, word
from mindstream.cli.shell.output import clean, complain, is_answerable, print_json, say, say_lines
from mindstream.cli.solve import MODEL, ROLE, Replans, SolveOptions, Tools, complain_of_tools, solve_task
from mindstream.errors import InputError
from mindstream.models.model import ToolSpec
from mindstream.planning.exemplars import solved_plans, to_example, to_instruction
from mindstream.planning.formats.read import read, read_named, read_plan
from mindstream.planning.formats.rewoo import write_plan
from mindstream.planning.plan import Plan, PlannedStep, check, outline
from mindstream.service.calling import calling
from mindstream.service.solving import SolveSettings, find_faults, find_specs
from mindstream.settings import Chosen, Settings
from mindstream.text.words import count_of

FAULTY = 1
PlanFile = Annotated[
    Path, word("FILE", "A plan: JSON, or text in the form of ReWOO or LLMCompiler, or a numbered list.")
]
TaskText = Annotated[str, flag("WORDS", "The task [the one in the file].", "--task")]
app = group("Check, draw, edit and run plans in files; compare strategies on sets of questions.")


@command(
    app,
    "model roles data user embedder",
    "mindstream plan check plan.json",
    "mindstream plan check plan.txt --tools web,llm",
    name="check",
    model=MODEL,
    roles=ROLE,
)
def check_plan(
    settings: Settings,
    file: PlanFile,
    task: TaskText = "",
    tools: Tools = None,
    docs: Docs = None,
    mcp: Mcp = None,
    json: AsJson = False,
) -> int:
    """List the faults for which `plan run` with the same flags would refuse a plan, and how to fix them.

    Exit code 1 if the plan has a fault.
    """
    named = SolveSettings(task, tools=split_names(tools), docs=tuple(docs or ()), mcp=tuple(mcp or ()), file=file)
    plan, faults = asyncio.run(find_faults(settings, named))
    if json:
        names = ("kind", "step", "wanted", "came", "advice")
        print_json(*({name: getattr(fault, name) for name in names} for fault in faults))
        return FAULTY if faults else 0
    for note in read_plan(file).notes:
        complain(f"not read: {note}")
    say_lines(map(str, faults))
    complain_of_tools(plan, faults)
    if not faults:
        say(f"{count_of(len(plan.steps), 'step')}, and nothing is wrong")
    return FAULTY if faults else 0


@command(app, "", "mindstream plan draw plan.json", "mindstream plan draw plan.json > plan.mmd")
def draw(
    file: PlanFile,
    form: Annotated[
        Literal["text", "mermaid"] | None, typer.Option("--as", help="The format [text in a terminal, else mermaid].")
    ] = None,
) -> None:
    """Draw a plan: which step waits for which."""
    plan = read_plan(file).plan
    if (form or ("text" if sys.stdout.isatty() else "mermaid")) == "mermaid":
        print(clean(plan.mermaid()), end="")
    else:
        say("\n".join(filter(None, (plan.task, outline(plan)))))


@dataclass(frozen=True)
class PlanOptions(SolveOptions):
    """The flags of `plan run`: a given plan is not revised unless --replans says so."""

    replans: Replans = 0


@command(
    app,
    "model roles budget_calls budget_tokens budget_usd data user embedder",
    "mindstream plan run plan.json --tools web,calculator --model openai:gpt-5-mini",
    name="run",
    model=MODEL,
    roles=ROLE,
)
def run_plan(chosen: Chosen, options: PlanOptions, file: PlanFile, task: TaskText = "") -> int:
    """Run a given plan, as `solve` does, but without a planner.

    Nothing runs if `plan check` finds a fault.
    """
    return solve_task(chosen, options.task(task, file=file), options)


def _changed(plan: Plan, id: str, tool: str, text: str | None, why: str | None) -> Plan:
    """Return a plan with a changed or an added step.

    - If the plan has a step with this id, the step is changed.
    - If it has none, and a tool is given, a new step is added.
    - Without an id and changes, the plan is returned as it is.

    Raises:
        InputError: the plan has no step with this id, and no tool is given; or changes are given without an id.
    """
    if not id:
        if tool or text is not None or why is not None:
            raise InputError("name the step to change, such as --step E2")
        return plan
    if tool and all(step.id != id for step in plan.steps):
        new = _written_step(id, tool, text or "", _names(plan, tool))
        return plan.with_step(new.model_copy(update={"why": why or ""}))
    old = plan.step(id)
    tool = tool or old.tool
    names = tuple(old.arguments) if tool == old.tool else _names(plan, tool)
    arguments = old.arguments if text is None else _written_step(id, tool, text, names).arguments
    return plan.edited(id, tool=tool, arguments=arguments, why=old.why if why is None else why)


def _names(plan: Plan, tool: str) -> tuple[str, ...]:
    """Return the names of a tool's arguments, as in the first step that uses the tool; () if no step uses it."""
    return next((tuple(step.arguments) for step in plan.steps if step.tool == tool), ())


@command(
    app,
    "",
    "mindstream plan edit plan.json                  in your editor",
    'mindstream plan edit plan.json --step E2 --input "people in #E1"',
    'mindstream plan edit plan.json --step E4 --tool calculator --input "#E2 / 2"',
    "mindstream plan edit plan.json --remove E3",
)
def edit(
    file: PlanFile,
    step: Annotated[str, flag("ID", "The id of the step to change; a new id adds a step.")] = "",
    tool: Annotated[str, flag("TOOL", "The tool of the step named by --step.")] = "",
    input: Annotated[
        str | None, flag("INPUT", "The input of the step named by --step; #E1 stands for the result of step E1.")
    ] = None,
    why: Annotated[str | None, flag("WORDS", "The purpose of the step named by --step.")] = None,
    remove: Annotated[list[str] | None, flag("ID", "Remove this step; repeatable.")] = None,
) -> int:
    """Change a plan in its file, and show the changes.

    Without flags, the plan is opened in $VISUAL or $EDITOR. The file is replaced only if the new plan can be read. Exit
    code 1 if `plan check` would find a fault in the new plan.
    """
    is_json = read_named(file).lstrip().startswith("{")
    plan = read_plan(file).plan
    if step or tool or remove or input is not None or why is not None:
        changed = plan
        for id in remove or ():
            changed = changed.without_step(id)
        changed = _changed(changed, step, tool, input, why)
    elif is_answerable():
        changed = permission.edit(plan, _own_specs(plan))
    else:
        raise InputError("without a terminal, name the change: --step E2 --input …, or --remove E3")
    write_text(file, changed.save() if is_json else write_plan(changed, _own_specs(changed)))
    console = Console(highlight=False)
    show_changes(lambda text, style="": console.print(Text(clean(text), style), soft_wrap=True), plan.diff(changed), "")
    for fault in (faults := check(changed, _own_specs(changed))):
        complain(str(fault))
    return FAULTY if faults else 0


@command(
    app,
    "data user",
    "mindstream plan export plan.json --tools web,llm >> exemplars.jsonl",
    "mindstream plan export --solved --docs ./reports > train.jsonl",
)
def export(
    settings: Settings,
    file: Annotated[
        Path | None, word("FILE", "A plan: JSON, or text in the form of ReWOO or LLMCompiler, or a numbered list.")
    ] = None,
    solved: Annotated[
        bool,
        switch("--solved", "Export the plans of your runs that answered the whole task with the planner's first plan."),
    ] = False,
    task: TaskText = "",
    form: Annotated[
        Literal["chat", "instruction"],
        typer.Option(
            "--form", help="The training data: messages (chat), or instruction, input and output (instruction)."
        ),
    ] = "chat",
    tools: Tools = None,
    docs: Docs = None,
    mcp: Mcp = None,
) -> None:
    """Write plans as training data for a planner, one plan a line, with the prompt that the runtime uses.

    A line holds a task, the tools and the plan. With --tools, --docs and --mcp, name the tools that the plans were made
    with.
    """
    specs = _find_specs(settings, tools, docs, mcp)
    if solved == (file is not None):
        raise InputError("name the FILE of a plan, or use --solved for the plans of your runs; not both")
    write = to_example if form == "chat" else to_instruction
    if file is None:
        plans = asyncio.run(_solved(settings))
        print_json(*(dict(write(plan, specs or _own_specs(plan))) for plan in plans))
        complain(count_of(len(plans), "plan") + " of runs that answered their task")
        return
    plan = read_plan(file, specs).plan
    if task:
        plan = plan.model_copy(update={"task": task})
    if not plan.task:
        raise InputError(f"the plan in {file} has no task: name the task with --task")
    specs = specs or _own_specs(plan)
    print_json(dict(write(plan, specs)))


async def _solved(settings: Settings) -> list[Plan]:
    async with calling(settings) as call:
        return list(solved_plans([each.local for each in (await call("plans.list")).runs]))


def _find_specs(
    settings: Settings, tools: list[str] | None, docs: list[Path] | None, mcp: list[str] | None
) -> list[ToolSpec]:
    """Return the specs of the named tools; none if none is named."""
    named = split_names(tools)
    if named is None and not docs and not mcp:
        return []
    return asyncio.run(find_specs(settings, SolveSettings(tools=named, docs=tuple(docs or ()), mcp=tuple(mcp or ()))))


def _own_specs(plan: Plan) -> list[ToolSpec]:
    """Return specs of a plan's tools, with the arguments that the plan uses."""
    names: dict[str, dict[str, object]] = {}
    for step in plan.steps:
        names.setdefault(step.tool, {}).update({name: {} for name in step.arguments})
    return [ToolSpec(name, "", json.loads(json.dumps({"properties": given}))) for name, given in names.items()]


def _written_step(id: str, tool: str, text: str, names: Sequence[str]) -> PlannedStep:
    """Parse the input of a step as a planner writes it; an input without an argument name is the first argument."""
    spec = ToolSpec(tool, "", {"properties": {name: {} for name in names}})
    found = read(f"#{id} = {tool}[{text}]", [spec]).plan.steps
    if len(found) != 1 or found[0].id != id:
        raise InputError(
            f"{id} = {tool[:80]}[{text[:80]}] is not exactly one step; write one input between the brackets, such as"
            " E2 = Tool[input]"
        )
    return found[0]
