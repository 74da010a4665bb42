"""`mindstream work`: run the reasoners of all minds in a data location, next to the servers that answer."""

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
from mindstream.text.words import count_of

if TYPE_CHECKING:
    from mindstream.server.tokens import IssuedLimits

NOTES = """Run any number of workers, on any machines that reach the database; work of a
worker that died is taken over by another one. A worker serves no requests.

Exit code: 130 after Ctrl-C, 143 after SIGTERM, once its unfinished work is
released; 2 if it cannot start."""
app = typer.Typer(**PLAIN)
TOLD_S = 5.0
"""Minimum interval between progress lines, in seconds."""


@command(
    app,
    "more_roles model roles fallback patience_s data pack gate timezone deadline_s prompts embedder"
    " budget_calls budget_tokens budget_usd",
    "mindstream work --data postgresql://mind@db/mind --model openai:gpt-5-mini",
    "mindstream serve --data postgresql://mind@db/mind --model openai:gpt-5-mini --no-thinking",
    notes=NOTES,
    model="The model of all roles [rules].",
)
def work(
    settings: Settings,
    minds: Annotated[
        int, flag("N", "Maximum number of minds (users) whose messages are processed in parallel.", min=1, max=10_000)
    ] = 64,
    at_once: Annotated[int, flag("N", "Maximum number of parallel calls of each model.", min=1, max=10_000)] = 64,
    issuer_max_tokens: Annotated[
        int | None,
        flag(
            "N",
            "Maximum number of model tokens a day for each user or application that signs in through an OIDC issuer;"
            " give the same value as to `mindstream serve --issuer-max-tokens`.",
            min=1,
        ),
    ] = None,
    issuer_max_usd: Annotated[
        float | None,
        flag(
            "X",
            "Maximum model cost a day in US dollars for each user or application that signs in through an OIDC issuer;"
            " give the same value as to `mindstream serve --issuer-max-usd`.",
            min=0.0,
        ),
    ] = None,
    json: AsJson = False,
) -> int:
    """Run the reasoners (background thinking) on the messages that servers received, until a signal stops it."""
    from mindstream.server.tokens import IssuedLimits

    warn_if_unpriced(settings, issuer_max_usd)
    teller, limits = _Teller(json), IssuedLimits(issuer_max_tokens, issuer_max_usd)
    return run_until_stopped(
        _work(settings, minds, at_once, teller, limits), lambda: f"{teller.words()}; unfinished work is released"
    )


class _Teller:
    """Prints the progress."""

    def __init__(self, json: bool) -> None:
        self._json = json
        self.going = self.done = self.failed = 0

    def words(self) -> str:
        failed = f", {self.failed} failed" if self.failed else ""
        return f"{count_of(self.done, 'thought')}, {self.going} going on{failed}"

    def tell(self, event: str) -> None:
        if self._json:
            values = {"event": event, "thoughts": self.done, "going": self.going, "failed": self.failed}
            print(jsons.dumps(values), flush=True)
        else:
            print(f"{event}: {self.words()}" if event != "working" else self.words(), file=sys.stderr, flush=True)


async def _work(settings: Settings, minds: int, at_once: int, teller: _Teller, limits: IssuedLimits) -> int:
    from mindstream.minds.chat_bot import NAME, ChatResponder
    from mindstream.server.budgets import Budgets
    from mindstream.server.run import allow_connections
    from mindstream.server.server_state import ServerState
    from mindstream.server.tokens import Tokens
    from mindstream.service.operations.orphaned_work import OrphanedWork
    from mindstream.service.operations.runtime import Runtime

    allow_connections()
    async with Runtime.open_reader(settings, at_once=at_once, part="thinks") as runtime:
        runtime.responders[NAME] = lambda: ChatResponder
        await runtime.check()
        state, tokens = ServerState(runtime.server_store, runtime.clock), Tokens(runtime.server_store, runtime.clock)
        budgets = Budgets(state, runtime.clock, tokens, limits)
        orphaned_work = OrphanedWork(runtime, answers=False, at_once=minds, budgets=budgets.of_id)
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(budgets.running())
            await stack.enter_async_context(orphaned_work.running())
            teller.tell("ready")
            gc.freeze()
            reported = 0
            while True:
                await asyncio.sleep(TOLD_S)
                teller.going, teller.done, teller.failed = (
                    len(orphaned_work.going),
                    orphaned_work.done,
                    orphaned_work.failed,
                )
                if teller.done != reported or teller.going:
                    reported = teller.done
                    teller.tell("working")
