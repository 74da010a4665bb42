"""`mindstream plan`: plans in files, looked at, changed, drawn, exported."""

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
from mindstream.cli.solve import MODEL, ROLE, Replans, SolveOptions, Tools, solve_task
from mindstream.errors import InputError
from mindstream.models.model import ToolSpec
from mindstream.planning.check import check
from mindstream.planning.export import solved_plans, to_example, to_instruction
from mindstream.planning.formats.read import read, read_named, read_plan
from mindstream.planning.formats.rewoo import write_plan
from mindstream.planning.plan import Plan, PlannedStep, outline
from mindstream.service.solving import SolveSettings, find_faults, find_runs, find_specs, flags_for
from mindstream.settings import Chosen, Settings
from mindstream.text.words import count_of

FAULTY = 1
PlanFile = Annotated[Path, word("FILE", "A plan: JSON, or text in one of three forms.")]
TaskText = Annotated[str, flag("WORDS", "What is to be solved [as the file says].", "--task")]
app = group("Look at plans in files, change them, run them; compare ways of solving on sets of questions.")


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
    """Say what is wrong with a plan, and what to do about it.

    Exit code 1 where something is. What `plan run` with the same flags would refuse is wrong, and nothing else.
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
    if any(fault.kind == "tool" for fault in faults):
        complain(f"the plan's tools come with {flags_for(step.tool for step in plan.steps)}")
    if not faults:
        say(f"{count_of(len(plan.steps), 'step')}, and nothing is wrong")
    return FAULTY if faults else 0


@command(app, "", "mindstream plan draw plan.json", "mindstream plan draw plan.json > plan.mmd")
def draw(
    file: PlanFile,
    form: Annotated[
        Literal["text", "mermaid"] | None, typer.Option("--as", help="As what [text in a terminal, else mermaid].")
    ] = None,
) -> None:
    """Draw a plan: who waits for whom."""
    plan = read_plan(file).plan
    if (form or ("text" if sys.stdout.isatty() else "mermaid")) == "mermaid":
        print(clean(plan.mermaid()), end="")
    else:
        say("\n".join(filter(None, (plan.task, outline(plan)))))


@dataclass(frozen=True)
class PlanOptions(SolveOptions):
    """How a plan that is there is run: it is not mended unless that is wished."""

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
    """Run a plan as it stands: as `solve`, and no planner is asked.

    Nothing runs where `plan check` would find something wrong.
    """
    return solve_task(chosen, options.task(task, file=file), options)


@dataclass(frozen=True)
class Edits:
    """What is to be changed: of the step `step` its tool, input and reason; steps that go."""

    step: str = ""
    tool: str = ""
    input: str | None = None
    why: str | None = None
    remove: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.step or self.tool or self.remove or self.input is not None or self.why is not None)

    def apply(self, plan: Plan) -> Plan:
        """Return the plan as it is then; a step that is not there yet is added where it has a tool.

        Raises:
            InputError: there is no such step, or what is to be done with none is not said.
        """
        for id in self.remove:
            plan = plan.without_step(id)
        if not self.step:
            if self.tool or self.input is not None or self.why is not None:
                raise InputError("say with --step which step is to be changed, as --step E2")
            return plan
        if self.tool and all(step.id != self.step for step in plan.steps):
            new = _written_step(self.step, self.tool, self.input or "", ())
            return plan.with_step(new.model_copy(update={"why": self.why or ""}))
        old = plan.step(self.step)
        tool = self.tool or old.tool
        arguments = old.arguments
        if self.input is not None:
            arguments = _written_step(self.step, tool, self.input, tuple(old.arguments)).arguments
        return plan.edited(self.step, tool=tool, arguments=arguments, why=old.why if self.why is None else self.why)


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
    step: Annotated[str, flag("ID", "Change this step; one that is not there is added.")] = "",
    tool: Annotated[str, flag("TOOL", "Its tool.")] = "",
    input: Annotated[str | None, flag("INPUT", "Its input; #E1 is what E1 finds.")] = None,
    why: Annotated[str | None, flag("WORDS", "What it is for.")] = None,
    remove: Annotated[list[str] | None, flag("ID", "Take this step away; repeatable.")] = None,
) -> int:
    """Change a plan in its file, and say what is changed.

    Without flags it is opened in $VISUAL or $EDITOR. The file is replaced when all is well. Exit code 1 where something
    is wrong with the plan then.
    """
    is_json = read_named(file).lstrip().startswith("{")
    plan = read_plan(file).plan
    if edits := Edits(step, tool, input, why, tuple(remove or ())):
        changed = edits.apply(plan)
    elif is_answerable():
        changed = permission.edit(plan, _own_specs(plan))
    else:
        raise InputError("say what is to be changed (--step E2 --input …, --remove E3); nobody is there to edit it")
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
    file: Annotated[Path | None, word("FILE", "A plan: JSON, or text in one of three forms.")] = None,
    solved: Annotated[
        bool, switch("--solved", "All plans of your runs that answered their task, as they were written.")
    ] = False,
    task: TaskText = "",
    form: Annotated[
        Literal["chat", "instruction"], typer.Option("--form", help="As whom it is trained with.")
    ] = "chat",
    tools: Tools = None,
    docs: Docs = None,
    mcp: Mcp = None,
) -> None:
    """Write plans to train a planner on, a line each, in the words in which the runtime asks for them.

    A line holds a task, the tools and the plan. Name the tools that they were made with.
    """
    specs = _find_specs(settings, tools, docs, mcp)
    if solved == (file is not None):
        raise InputError("name a plan's FILE, or say --solved for those of your runs")
    write = to_example if form == "chat" else to_instruction
    if file is None:
        plans = solved_plans(asyncio.run(find_runs(settings)).values())
        print_json(*(dict(write(plan, specs or _own_specs(plan))) for plan in plans))
        complain(count_of(len(plans), "plan") + " of runs that answered their task")
        return
    plan = read_plan(file, specs).plan
    if task:
        plan = plan.model_copy(update={"task": task})
    if not plan.task:
        raise InputError(f"{file} does not say what its task is: say it with --task")
    specs = specs or _own_specs(plan)
    print_json(dict(write(plan, specs)))


def _find_specs(
    settings: Settings, tools: list[str] | None, docs: list[Path] | None, mcp: list[str] | None
) -> list[ToolSpec]:
    """Return what the tools take that are named; none where none is."""
    named = split_names(tools)
    if named is None and not docs and not mcp:
        return []
    return asyncio.run(find_specs(settings, SolveSettings(tools=named, docs=tuple(docs or ()), mcp=tuple(mcp or ()))))


def _own_specs(plan: Plan) -> list[ToolSpec]:
    """Return a plan's tools as it uses them."""
    names: dict[str, dict[str, object]] = {}
    for step in plan.steps:
        names.setdefault(step.tool, {}).update({name: {} for name in step.arguments})
    return [ToolSpec(name, "", json.loads(json.dumps({"properties": given}))) for name, given in names.items()]


def _written_step(id: str, tool: str, text: str, names: Sequence[str]) -> PlannedStep:
    """Read an input as a planner writes it; one without a name is for the step's first argument."""
    spec = ToolSpec(tool, "", {"properties": {name: {} for name in names}})
    found = read(f"#{id} = {tool}[{text}]", [spec]).plan.steps
    if len(found) != 1 or found[0].id != id:
        raise InputError(f"{id} = {tool[:80]}[{text[:80]}] is no step; one looks like E2 = Tool[input]")
    return found[0]
