"""`mindstream chat`: in a terminal, or with lines from standard input."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Annotated

import typer

from mindstream.cli.conversation import CalledTools, TalkOptions, answer, conversing, describe_models
from mindstream.cli.screens.talk import JsonScreen, PlainConsole, Screen, TextScreen
from mindstream.cli.shell.files import Lines
from mindstream.cli.shell.flags import (
    PLAIN,
    Docs,
    Mcp,
    OfferTo,
    PoolName,
    Record,
    Trust,
    command,
    flag,
    split_names,
    switch,
)
from mindstream.cli.shell.output import complain
from mindstream.cli.shell.stopping import run_until_stopped
from mindstream.coach.packs.load import load
from mindstream.errors import InputError
from mindstream.paths import is_odd
from mindstream.settings import Settings

INCOMPLETE, UNANSWERED = 1, 2
"""Exit codes: a line was not accepted; nothing was answered, because the model failed or was not reached."""
NOTES = """Without a terminal each line of standard input is an utterance; the next one is
read after the answer and all reasoning. A line that is a command of the terminal
(/plan, /help …) is not accepted; //plan sends the text /plan. With --offer each
answer is offered to the pool; in a terminal, only an answer after which you type
/offer. `mindstream demo` plays a recorded conversation with a model.

Exit code: 0; 1 if a line was not accepted; 2 if nothing was answered because no
model was reached, or if the conversation could not start; 130 after Ctrl-C, 143
after SIGTERM.

\b
Models:
  rules  local  gguf:FILE
  openai:NAME  anthropic:NAME  google:NAME  ollama:NAME
  http://host:port/v1#NAME (any OpenAI-compatible endpoint)
  playback:FILE (a recording by --record)"""
app = typer.Typer(**PLAIN)


@command(
    app,
    "more_roles pack model roles fallback patience_s data user gate timezone deadline_s prompts embedder reranker"
    " budget_calls budget_tokens budget_usd redact",
    "mindstream chat --model openai:gpt-5-mini",
    "mindstream chat --role talker=ollama:qwen3 reasoner=openai:gpt-5",
    "mindstream chat --user ann --session monday",
    "mindstream chat --json < utterances.txt",
    notes=NOTES,
    model="The model of all roles [rules].",
    roles="The model of one role: talker, reasoner, facts, safety (detects danger); repeatable.",
)
def chat(
    settings: Settings,
    session: Annotated[
        str | None, flag("NAME", "The conversation to continue [a new one]; all conversations share one memory.")
    ] = None,
    no_wait: Annotated[
        bool, switch("--no-wait", "Without a terminal: do not wait for an answer before the next line is read.")
    ] = False,
    json: Annotated[bool, switch("--json", "One event a line, as JSON; nothing else on standard output.")] = False,
    tools: Annotated[
        str, flag("A,B,…", "Tools that the reasoner may call: web, wikipedia, read_page, planner, …")
    ] = "",
    reasoner: Annotated[
        str, flag("A,B", "Additional reasoners: reflect (writes insights), sleep (maintains an idle memory).")
    ] = "",
    docs: Docs = None,
    mcp: Mcp = None,
    trust: Trust = False,
    pool: PoolName = "",
    offer: OfferTo = "",
    record: Record = None,
    as_published: Annotated[
        bool,
        switch(
            "--as-published",
            "As in Christakopoulou 2024: the belief state decides when to wait for the reasoner (--gate belief).",
        ),
    ] = False,
) -> int:
    """Talk to an agent that answers at once, thinks in the background, and remembers.

    The talker answers from memory; the reasoners think about the conversation, and write beliefs and a plan to memory.
    """
    called = CalledTools(split_names([tools]) or (), tuple(docs or ()), tuple(mcp or ()), trust)
    more = split_names([reasoner] if reasoner else None) or ()
    options = TalkOptions(session, not no_wait, json, record, pool, offer, called=called, reasoners=more)
    return hold(settings.model_copy(update={"gate": "belief"}) if as_published else settings, options)


def hold(settings: Settings, options: TalkOptions) -> int:
    """Hold a conversation; return the exit code."""
    in_terminal = sys.stdin.isatty() and sys.stdout.isatty() and not options.json
    message = "stopped; your messages are stored, and reasoning about them continues the next time"
    return run_until_stopped(_hold(settings, options, in_terminal), lambda: message, interrupt=not in_terminal)


async def _hold(settings: Settings, options: TalkOptions, in_terminal: bool) -> int:
    if options.record and is_odd(options.record):
        raise InputError(
            f"the recording {options.record} cannot be written: it is not a regular file; name another with --record"
        )
    load(settings.pack)  # refuse a broken pack before the first prompt
    if in_terminal:
        from mindstream.cli.terminal import talk

        screen = TextScreen(PlainConsole(highlight=False), echo=False, timed=False, verbose=False)
        return await talk(settings, options, screen)
    lines = Lines()
    first = await lines.next()
    if first is None:
        complain("standard input is empty: write an utterance, or see `mindstream demo`")
        return 0
    shown: Screen = JsonScreen()
    if not options.json:
        shown = TextScreen(PlainConsole(highlight=False), echo=True, timed=True, verbose=True)
    async with conversing(settings, shown, replace(options, follow_ups=False)) as conversation:
        shown.note(describe_models(conversation.mind.models, settings))
        complete = await answer(conversation, first, lines, wait=options.wait)
    if conversation.unanswered and not conversation.answers:
        return UNANSWERED
    return 0 if complete else INCOMPLETE
