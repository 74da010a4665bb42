"""Permission questions during a run: run a plan, make a call that changes something, accept a server's tools."""

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

from mindstream.cli.screens.run import PlainScreen, show_changes
from mindstream.cli.shell.output import clean
from mindstream.errors import InputError, prefixed
from mindstream.models.model import ToolSpec
from mindstream.paths import read_text
from mindstream.planning.formats.read import read_any
from mindstream.planning.formats.rewoo import write_plan
from mindstream.planning.plan import Plan, check, outline
from mindstream.tools.call import ToolRequest, deciding
from mindstream.tools.mcp.pins import Approve, Changes, show

MAX_SHOWN = 2_000
"""Maximum number of characters of an argument that a question shows."""
MAX_BYTES = 2_000_000


class Asker:
    """Asks the user at the terminal, one question at a time."""

    def __init__(self, screen: PlainScreen) -> None:
        self._screen = screen
        self._one = asyncio.Lock()

    async def ask(self, question: str, answers: str, *shown: tuple[str, str]) -> str:
        """Ask a question and return one of the letters in `answers`.

        An empty answer, or a closed terminal, means the last letter.

        Args:
            shown: lines to show before the question, each with its style.
        """
        session: PromptSession[str] = PromptSession(output=create_output(stdout=sys.stderr))
        async with self._one:
            with deciding(), self._screen.pausing():
                for text, style in shown:
                    self._screen.note(text, style)
                while True:
                    try:
                        typed = await session.prompt_async(f"{clean(question)} ", handle_sigint=False)
                    except EOFError:
                        return answers[-1]
                    except KeyboardInterrupt:  # Ctrl-C while the prompt is open: stop the run as SIGINT does
                        signal.raise_signal(signal.SIGINT)
                        return answers[-1]
                    letter = typed.strip().lower()[:1] or answers[-1]
                    if letter in answers:
                        return letter

    async def approve_call(self, wish: ToolRequest) -> bool:
        """Ask the user for permission to call a tool.

        The tool may change something, or it uses an address found only in documents.
        """
        given = json.loads(wish.arguments)
        step = getattr(wish, "step", None)
        lines = [(f"  {show(str(name))}: {_shown(value)}", "") for name, value in given.items()]
        marked = [("  It contains untrusted text.", "bold red")] if wish.foreign else []
        why = "with an address that only documents gave" if wish.address else "which may change something"
        title = f"{step.id if step else 'The bot'} wants to call {wish.tool}{' ' if wish.address else ', '}{why}:"
        return await self.ask("Do it? [y/N]", "yn", (title, "bold"), *lines, *marked) == "y"

    async def accept(self, changes: Changes) -> bool:
        """Ask the user whether the tools of an MCP server may be used."""
        return await self.ask("Accept these tools? [y/N]", "yn", (str(changes), "")) == "y"

    async def approve(self, plan: Plan, tools: Sequence[ToolSpec]) -> Plan | None:
        """Ask the user whether to run a plan. Return the plan, which the user may have edited; None: it is refused."""
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


def server_approval(trust: bool, asker: Asker | None, screen: PlainScreen) -> Approve | None:
    """Return the function that decides whether the tools of an MCP server may be used.

    With --trust this function accepts all tools; otherwise it asks the user. Without --trust and without a terminal to
    ask in, return None.
    """

    def accept(changes: Changes) -> bool:
        screen.note(str(changes))
        return True

    return accept if trust else asker.accept if asker else None


def edit(plan: Plan, tools: Sequence[ToolSpec]) -> Plan:
    """Open a plan in the user's editor, in its text form, and return the edited plan.

    Raises:
        InputError: the editor cannot be run or failed, or the edited text is not a plan.
    """
    named = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory(prefix="mindstream-") as folder:
        file = Path(folder) / "plan.txt"
        file.write_text(write_plan(plan, tools), "utf-8")
        try:
            done = subprocess.run([*shlex.split(named), str(file)], check=False)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise InputError(
                f"the editor {named!r} cannot be run ({why}): set VISUAL or EDITOR to another one"
            ) from None
        if done.returncode:
            raise InputError(f"the editor {named!r} ended with exit code {done.returncode}; the plan is not changed")
        with prefixed("the edited plan"):
            text = read_text(file, MAX_BYTES)
        edited = read_any(text, tools).plan
    return edited if edited.task else edited.model_copy(update={"task": plan.task})


def _shown(value: object) -> str:
    text = show(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}… ({len(text) - MAX_SHOWN:,} characters more)"
