"""`mindstream work`: think for all minds of some data, beside the servers that hear and speak."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json as jsons
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from mindstream.cli.shell.flags import PLAIN, AsJson, command, flag
from mindstream.cli.shell.output import warn_if_unpriced
from mindstream.cli.shell.stopping import run_until_stopped
from mindstream.settings import Settings

if TYPE_CHECKING:
    from mindstream.server.tokens import IssuedLimits

NOTES = """Any number of them, on any machines that reach the database; what one
held that has died, another one takes up. It takes no requests.

Exit code: 130 after Ctrl-C, 143 after SIGTERM: what it held is let go of;
2 where it cannot begin."""
app = typer.Typer(**PLAIN)
TOLD_S = 5.0
"""So often it is said, at most, how far it is."""


@command(
    app,
    "more_roles model roles fallback patience_s data pack gate timezone deadline_s prompts embedder"
    " budget_calls budget_tokens budget_usd",
    "mindstream work --data postgresql://mind@db/mind --model openai:gpt-5-mini",
    "mindstream serve --data postgresql://mind@db/mind --model openai:gpt-5-mini --no-thinking",
    notes=NOTES,
    model="Who thinks, in all roles [rules].",
)
def work(
    settings: Settings,
    minds: Annotated[int, flag("N", "So many minds at a time.", min=1, max=10_000)] = 64,
    at_once: Annotated[int, flag("N", "So many calls of each model at a time.", min=1, max=10_000)] = 64,
    issuer_max_tokens: Annotated[
        int | None, flag("N", "Tokens of models a day for each holder of an issuer's tokens, as for serve.", min=1)
    ] = None,
    issuer_max_usd: Annotated[float | None, flag("X", "US dollars for models a day for each of them.", min=0.0)] = None,
    json: AsJson = False,
) -> int:
    """Think about what servers have heard, until it is told to end."""
    from mindstream.server.tokens import IssuedLimits

    warn_if_unpriced(settings, issuer_max_usd)
    teller, limits = _Teller(json), IssuedLimits(issuer_max_tokens, issuer_max_usd)
    return run_until_stopped(
        _work(settings, minds, at_once, teller, limits), lambda: f"{teller.words()}; let go of the rest"
    )


class _Teller:
    """Says how far it is: at once, then now and then."""

    def __init__(self, json: bool) -> None:
        self._json = json
        self.going = self.done = self.failed = 0

    def words(self) -> str:
        failed = f", {self.failed} failed" if self.failed else ""
        return f"{self.done} thoughts, {self.going} going on{failed}"

    def tell(self, event: str) -> None:
        if self._json:
            told = {"event": event, "thoughts": self.done, "going": self.going, "failed": self.failed}
            print(jsons.dumps(told), flush=True)
        else:
            print(f"{event}: {self.words()}" if event != "working" else self.words(), file=sys.stderr, flush=True)


async def _work(settings: Settings, minds: int, at_once: int, teller: _Teller, limits: IssuedLimits) -> int:
    from mindstream.server.budgets import Budgets
    from mindstream.server.run import allow_connections
    from mindstream.server.server_state import ServerState
    from mindstream.server.tokens import Tokens
    from mindstream.service.chat.companion import NAME, Companion
    from mindstream.service.operations.orphaned_work import OrphanedWork
    from mindstream.service.operations.runtime import Runtime

    allow_connections()
    async with Runtime.open_reader(settings, at_once=at_once, part="thinks") as runtime:
        runtime.responders[NAME] = lambda: Companion
        await runtime.check()
        state, tokens = ServerState(runtime.server_store, runtime.clock), Tokens(runtime.server_store, runtime.clock)
        budgets = Budgets(state, runtime.clock, tokens, limits)
        orphaned_work = OrphanedWork(runtime, answers=False, at_once=minds, budgets=budgets.of_id)
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(budgets.running())
            await stack.enter_async_context(orphaned_work.running())
            teller.tell("ready")
            gc.freeze()
            told = 0
            while True:
                await asyncio.sleep(TOLD_S)
                teller.going, teller.done, teller.failed = (
                    len(orphaned_work.going),
                    orphaned_work.done,
                    orphaned_work.failed,
                )
                if teller.done != told or teller.going:
                    told = teller.done
                    teller.tell("working")
