"""`mindstream plan`: plans in files, looked at, changed, drawn, exported."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rich.console import Console
from rich.text import Text

from mindstream.cli.clean import clean, complain, say
from mindstream.cli.files import open_writer
from mindstream.cli.flags_solving import flags_for
from mindstream.cli.json_lines import print_json
from mindstream.cli.run_screens import show_changes
from mindstream.errors import InputError
from mindstream.models.model import ToolSpec
from mindstream.planning.check import Fault, check
from mindstream.planning.drawing import outline
from mindstream.planning.export import to_example, to_instruction
from mindstream.planning.formats.read import read
from mindstream.planning.plan import Plan, PlannedStep
from mindstream.planning.plan_file import read_named, read_plan
from mindstream.text.counting import count_of

if TYPE_CHECKING:
    from mindstream.cli.solve import Wishes
    from mindstream.service.solving import Task
    from mindstream.settings import Settings

FAULTY = 1


def check_plan(settings: Settings, file: Path, task: Task, as_json: bool) -> int:
    """Print what is wrong with a plan."""
    specs = _find_specs(settings, task)
    found = read_plan(file, specs)
    faults = _faults(found.plan, specs)
    if as_json:
        for fault in faults:
            print_json({name: getattr(fault, name) for name in ("kind", "step", "wanted", "came", "advice")})
        return FAULTY if faults else 0
    for note in found.notes:
        complain(f"not read: {note}")
    for fault in faults:
        say(str(fault))
    if not faults:
        flags = "" if specs else f" with its form; it runs with {flags_for(step.tool for step in found.plan.steps)}"
        say(f"{count_of(len(found.plan.steps), 'step')}, and nothing is wrong{flags}")
    return FAULTY if faults else 0


def draw_plan(file: Path, form: Literal["text", "mermaid"] | None) -> int:
    """Print a plan as lines, or as Mermaid where it goes into a file or a pipe."""
    plan = read_plan(file).plan
    if (form or ("text" if sys.stdout.isatty() else "mermaid")) == "mermaid":
        print(clean(plan.mermaid()), end="")
    else:
        say("\n".join(filter(None, (plan.task, outline(plan)))))
    return 0


def run_plan(settings: Settings, file: Path, task: Task, wishes: Wishes) -> int:
    """Run a plan; no planner is asked."""
    from mindstream.cli.solve import solve

    return solve(settings, replace(task, file=file), wishes)


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


def edit_plan(file: Path, edits: Edits) -> int:
    """Change a plan's file, by flags or else in an editor; print what is changed."""
    from mindstream.cli import permission

    is_json = read_named(file).lstrip().startswith("{")
    plan = read_plan(file).plan
    if edits:
        changed = edits.apply(plan)
    elif permission.is_somebody_there():
        changed = permission.edit(plan, _own_specs(plan))
    else:
        raise InputError("say what is to be changed (--step E2 --input …, --remove E3); nobody is there to edit it")
    with open_writer(file) as write:
        write(changed.save() if is_json else changed.print(_own_specs(changed)).rstrip("\n"))
    console = Console(highlight=False)
    show_changes(lambda text, style="": console.print(Text(clean(text), style), soft_wrap=True), plan.diff(changed), "")
    for fault in (faults := _faults(changed, ())):
        complain(str(fault))
    return FAULTY if faults else 0


def export_plan(settings: Settings, file: Path, task: Task, form: Literal["chat", "instruction"]) -> int:
    """Print a plan as an example to train a planner on, or to show to one (--exemplars)."""
    specs = _find_specs(settings, task)
    plan = read_plan(file, specs).plan
    if task.text:
        plan = plan.model_copy(update={"task": task.text})
    if not plan.task:
        raise InputError(f"{file} does not say what its task is: say it with --task")
    specs = specs or _own_specs(plan)
    print_json(dict(to_example(plan, specs) if form == "chat" else to_instruction(plan, specs)))
    return 0


def _find_specs(settings: Settings, task: Task) -> list[ToolSpec]:
    """Return what the tools take that a task names; none where it names none."""
    if task.tools is None and not task.docs and not task.mcp:
        return []
    from mindstream.service.solving import find_specs

    return asyncio.run(find_specs(settings, task))


def _faults(plan: Plan, specs: Sequence[ToolSpec]) -> tuple[Fault, ...]:
    """Return what is wrong; tools are only looked at where some are known."""
    return check(plan, specs or _own_specs(plan))


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
