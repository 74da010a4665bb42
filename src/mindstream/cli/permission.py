"""Questions during a run: whether a plan is run, a call that changes the world is made, a server's tools are taken."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.output import create_output

from mindstream.cli.screens.run import RunScreen, show_changes
from mindstream.cli.shell.output import clean
from mindstream.errors import InputError
from mindstream.models.model import ToolSpec
from mindstream.paths import read_text
from mindstream.planning.check import check
from mindstream.planning.executor import Wish
from mindstream.planning.formats.read import read_any
from mindstream.planning.formats.rewoo import write_plan
from mindstream.planning.plan import Plan, outline
from mindstream.tools.mcp.pins import Approve, Changes, show

LONGEST = 2_000
"""So many characters of an argument are shown to whoever is asked about it."""
MOST_BYTES = 2_000_000


class Asker:
    """Asks whoever sits at the terminal, one question at a time; the run is not drawn meanwhile."""

    def __init__(self, screen: RunScreen) -> None:
        self._screen = screen
        self._one = asyncio.Lock()

    async def ask(self, question: str, answers: str, *shown: tuple[str, str]) -> str:
        """Return one of the letters `answers`, the last of them where nothing is typed, or the terminal is gone."""
        async with self._one:
            with self._screen.pausing():
                for text, style in shown:
                    self._screen.note(text, style)
                return await self._letter(question, answers)

    async def _letter(self, question: str, answers: str) -> str:
        session: PromptSession[str] = PromptSession(output=create_output(stdout=sys.stderr))
        while True:
            try:
                typed = (await session.prompt_async(f"{clean(question)} ", handle_sigint=False)).strip().lower()
            except EOFError:
                return answers[-1]
            except KeyboardInterrupt:  # a key, in a prompt; the run is stopped as by the signal
                signal.raise_signal(signal.SIGINT)
                return answers[-1]
            if not typed or typed[0] in answers:
                return typed[:1] or answers[-1]

    async def leave(self, wish: Wish) -> bool:
        """Ask before a tool that changes the world is called."""
        given = json.loads(wish.arguments)
        lines = [f"  {show(str(name))}: {_shown(value)}" for name, value in given.items()]
        marked = [("  Words of strangers stand in it.", "bold red")] if wish.foreign else []
        title = (f"{wish.step.id} wants to call {wish.step.tool}, which may change something:", "bold")
        if wish.address:
            title = (f"{wish.step.id} wants to call {wish.step.tool} with an address that only documents gave:", "bold")
        return await self.ask("Do it? [y/N]", "yn", title, *((line, "") for line in lines), *marked) == "y"

    async def accept(self, changes: Changes) -> bool:
        """Ask whether the tools of a server may be used."""
        return await self.ask("Accept these tools? [y/N]", "yn", (str(changes), "")) == "y"

    async def approve(self, plan: Plan, tools: Sequence[ToolSpec]) -> Plan | None:
        """Ask whether a plan is to be run; return it, perhaps edited, or None."""
        while True:
            faults = [(f"  {fault}", "red") for fault in check(plan, tools)]
            shown = (("The plan:", "bold"), (outline(plan), ""), *faults)
            letter = await self.ask("Run it? [y]es, [e]dit, [N]o", "yen", *shown)
            if letter != "e":
                return plan if letter == "y" else None
            try:
                edited = edit(plan, tools)
            except InputError as error:
                self._screen.note(str(error), "red")
                continue
            show_changes(self._screen.note, plan.diff(edited), "")
            plan = edited


def server_approval(trust: bool, asker: Asker | None, screen: RunScreen) -> Approve | None:
    """Return who says whether the tools of an MCP server may be used: whoever sits there, or nobody is asked."""

    def accept(changes: Changes) -> bool:
        screen.note(str(changes))
        return True

    return accept if trust else asker.accept if asker else None


def edit(plan: Plan, tools: Sequence[ToolSpec]) -> Plan:
    """Return a plan as somebody leaves it in their editor, in its text form.

    Raises:
        InputError: there is no editor, it failed, or what is left is no plan.
    """
    named = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory(prefix="mindstream-") as folder:
        file = Path(folder) / "plan.txt"
        file.write_text(write_plan(plan, tools), "utf-8")
        _run([*shlex.split(named), str(file)], named)
        left = read_any(read_text(file, MOST_BYTES), tools).plan
    return left if left.task else left.model_copy(update={"task": plan.task})


def _run(command: list[str], named: str) -> None:
    try:
        done = subprocess.run(command, check=False)
    except OSError as error:
        raise InputError(f"the editor {named!r} cannot be run ({error.strerror}): set EDITOR to another one") from None
    if done.returncode:
        raise InputError(f"the editor {named!r} ended with {done.returncode}; the plan stays as it was")


def _shown(value: object) -> str:
    text = show(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text) - LONGEST:,} characters more)"
