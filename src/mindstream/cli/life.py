"""`mindstream life …`: show a life, answer its questions and steer it, whether or not a process runs it.

A life is an agent that works for a goal over many turns; `mindstream live` runs it.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Annotated, Any

import typer
from rich.console import Console

from mindstream.cli.screens.events import (
    describe_so_far,
    describe_standing,
    describe_unknown,
    list_open,
    list_tasks,
)
from mindstream.cli.screens.life import LifeScreen
from mindstream.cli.shell.flags import PLAIN, AsJson, bare, command, flag, word
from mindstream.cli.shell.output import complain, print_json, tell
from mindstream.clock import format_spoken
from mindstream.guidance import next_step
from mindstream.life import commands
from mindstream.life.events import Asked, Replied, TurnBegan
from mindstream.life.opened import command_of, is_lived, read_opened
from mindstream.life.schedule import Rhythm
from mindstream.log.events import Logged, Observed, ToolCalled
from mindstream.service.calling import LocalCaller, calling
from mindstream.service.living import ZONE
from mindstream.settings import Settings

app = typer.Typer(**PLAIN)
Words = Annotated[list[str], word("TEXT", "The text to send to the agent.")]
Because = Annotated[list[str] | None, word("WHY", "The reason, for the log.")]
Number = Annotated[int, word("N", "The task's number in `life tasks`.", min=1)]
Call = Annotated[str, word("ID", "The id of the tool call that waits for permission [the only one that waits].")]


@bare(app, "data user", "mindstream life")
async def life(settings: Settings, json: AsJson = False) -> None:
    """Show a life, answer its questions and steer it, from any process.

    A life is an agent that works for a goal over many turns; `mindstream live` runs it. Without a subcommand, show its
    status.
    """
    await show_status(settings, json)


def calling_life(settings: Settings) -> AbstractAsyncContextManager[LocalCaller]:
    """Open the data of the settings for operations on a life."""
    return calling(settings, begins=next_step('live --goal "…"'))


@command(app, "data user", "mindstream life status --json")
async def status(settings: Settings, json: AsJson = False) -> None:
    """Show the state of a life (an agent that works for a goal): goal, standing orders, tasks, open questions, cost."""
    await show_status(settings, json)


async def show_status(settings: Settings, json: bool) -> None:
    """Print the status of a life."""
    async with calling_life(settings) as call:
        life = await call("life.status")
        now, state = call.runtime.clock.now(), life.local
        row = life.model_dump(mode="json", exclude={"questions", "due", "changed"})
        row["questions"] = [{"id": each.id, "tip": each.text, "late": each.late} for each in life.questions]
        lines = [
            f"goal: {life.goal}",
            describe_standing(state, now, Rhythm(zone=ZONE).next_wake(state, now), life.lived),
            *([f"rests: {state.idle}"] if state.idle else ()),
            *(f"standing order {each.number}, next {format_spoken(each.at)}: {each.order}" for each in life.due),
            *(describe_unknown(number, why) for number, why in life.unknown_orders.items()),
        ]
        if tasks := [f"  {task}" for task in list_tasks(state.ledger.ordered(), now)]:
            lines += ["tasks:", *tasks]
        lines += [*list_open(state), describe_so_far(state)]
        if not life.lived:
            row["command"] = again = await _command(call, settings)
            lines.append(f"to continue the life: {again}")
        tell(json, row, *lines)


@command(app, "data user", "mindstream life tasks")
async def tasks(settings: Settings, json: AsJson = False) -> None:
    """List the agent's tasks; done and dropped ones come last."""
    async with calling_life(settings) as call:
        ordered, now = (await call("life.status")).local.ledger.ordered(), call.runtime.clock.now()
    for task in ordered:
        tell(json, task.model_dump(mode="json"), *list_tasks([task], now))
    if not json and not ordered:
        complain("there are no tasks")


@command(app, "data user", 'mindstream life say "Leave the older reports aside."')
async def say(settings: Settings, words: Words, json: AsJson = False) -> None:
    """Send a message to the life, which reads it before its next step; a waiting life wakes, a halted one does not."""
    text = " ".join(words)
    await _do(settings, "life.say", json, "said", {"text": text}, text=text)


@command(app, "data user", 'mindstream life answer "seven hours"', "mindstream life answer --id 12.1.1 yes")
async def answer(
    settings: Settings,
    words: Words,
    id_: Annotated[
        str, flag("ID", "The id of the question [the oldest open one, else the last expired one].", "--id")
    ] = "",
    json: AsJson = False,
) -> None:
    """Answer a question that the life asked, even if the life no longer waits for the answer."""
    text = " ".join(words)
    await _do(settings, "life.answer", json, "answered: {tip}", {"text": text}, text=text, id=id_)


@command(app, "data user", "mindstream life allow 3.1.1.2.1")
async def allow(settings: Settings, id_: Call = "", json: AsJson = False) -> None:
    """Allow one tool call that waits for your permission, with exactly the arguments that were shown."""
    await _do(settings, "life.leave", json, "the call {id} may be made", {"yes": True}, yes=True, id=id_)


@command(app, "data user", "mindstream life refuse")
async def refuse(settings: Settings, id_: Call = "", json: AsJson = False) -> None:
    """Refuse a tool call that waits for your permission."""
    await _do(settings, "life.leave", json, "the call {id} may not be made", {"yes": False}, yes=False, id=id_)


@command(app, "data user", "mindstream life pause I am in a meeting")
async def pause(settings: Settings, words: Because = None, json: AsJson = False) -> None:
    """Pause the life before its next step, until `life resume`."""
    await _order(settings, "pause", "it pauses before its next step; {resume} continues it", words, json)


@command(app, "data user", "mindstream life resume")
async def resume(settings: Settings, json: AsJson = False) -> None:
    """Let the life continue after a pause, a stop, or a rest (such as after failed turns)."""
    await _order(settings, "resume", "it may continue", None, json)


@command(app, "data user", "mindstream life stop that is enough")
async def stop(settings: Settings, words: Because = None, json: AsJson = False) -> None:
    """End the life, and the process that runs it. `life resume`, or a new goal, continues it."""
    did = "it stops before its next step; {resume}, or a new goal, continues it"
    await _order(settings, "stop", did, words, json)


async def _order(settings: Settings, order: str, did: str, words: list[str] | None, json: bool) -> None:
    given = {"order": order, "because": " ".join(words or ())}
    await _do(settings, "life.pause", json, did, given, **given)


@command(app, "data user", 'mindstream life add "Compare both reports"')
async def add(settings: Settings, words: Annotated[list[str], word("TASK", "The task.")], json: AsJson = False) -> None:
    """Add a task to the agent's list."""
    await _do(settings, "life.add_task", json, text=" ".join(words))


@command(app, "data user", "mindstream life move 3 1")
async def move(
    settings: Settings,
    number: Number,
    before: Annotated[int, word("M", "The number of the task before which task N is placed.", min=1)],
    json: AsJson = False,
) -> None:
    """Move task N before task M."""
    await _do(settings, "life.move_task", json, number=number, before=before)


@command(app, "data user", "mindstream life drop 2")
async def drop(settings: Settings, number: Number, json: AsJson = False) -> None:
    """Give up a task; it stays in the list, and `life open` reopens it."""
    await _do(settings, "life.drop_task", json, number=number)


@command(app, "data user", "mindstream life open 2", name="open")
async def open_(settings: Settings, number: Number, json: AsJson = False) -> None:
    """Reopen a task that waits, is done, or was dropped."""
    await _do(settings, "life.open_task", json, number=number)


@command(app, "data user", "mindstream life turn 12")
async def turn(
    settings: Settings, number: Annotated[int, word("N", "The number of the turn.", min=1)], json: AsJson = False
) -> None:
    """Show all log rows of a turn, even of an old turn that was condensed into a memory."""
    async with calling_life(settings) as call:
        screen = LifeScreen(Console(highlight=False))
        for row in await commands.read_turn(await call.memory(), number):
            print_json(row.row()) if json else _print_row(screen, row)


@command(app, "data user", 'mindstream life wake "The build failed."')
async def wake(settings: Settings, words: Words, json: AsJson = False) -> None:
    """Report an event to the life and wake it, for example from a hook or a script."""
    async with calling_life(settings) as call:
        await commands.notice(await call.memory(), text := " ".join(words))
        await _tell(call, settings, json, {"did": "it is notified, and wakes", "text": text})


async def _do(
    settings: Settings, operation: str, json: bool, did: str = "", row: dict[str, Any] | None = None, **arguments: Any
) -> None:
    """Call an operation and show its change.

    Args:
        did: format string of the message; "": the operation changed a task, and the task is shown.
    """
    async with calling_life(settings) as call:
        life = await call(operation, **arguments)
        if did:
            message = did.format_map({**life.changed, "resume": next_step("life resume")})
        else:
            (message,) = list_tasks([life.local.ledger.tasks[life.changed["number"]]], call.runtime.clock.now())
        await _tell(call, settings, json, {"did": message, **life.changed, **(row or {})})


async def _tell(call: LocalCaller, settings: Settings, json: bool, row: dict[str, Any]) -> None:
    tell(json, row, row["did"])
    if not json and not await is_lived(await call.memory()):
        again = await _command(call, settings)
        complain(f"no process runs this life now; to continue the life, so that it reads this, run:\n  {again}")


async def _command(call: LocalCaller, settings: Settings) -> str:
    """Return the command that continues a life: the command that started it.

    If the log does not contain this command, return `mindstream live` with the first model that the log names.
    """
    opened = await read_opened(await call.memory())
    if opened.command:
        return opened.command
    model = [word for name in list(opened.models.values())[:1] for word in ("--model", name)]
    return command_of(["mindstream", "live", *model, "--data", str(settings.data), "--user", settings.user])


def _print_row(screen: LifeScreen, row: Logged) -> None:
    """Show a row of the log with its whole text."""
    event = row.event
    depth = event.id.count(".") // 2 if isinstance(event, Replied | ToolCalled | Observed) else 0
    match event:
        case TurnBegan():
            screen.show(row)
            screen.say(event.words, "dim")
        case Asked():
            if event.news:
                screen.say(event.news, "dim")
        case Replied() if not event.error:
            if event.text.strip():
                screen.say(f"{event.role}: {event.text}", "", depth)
        case ToolCalled():
            screen.say(f"→ {event.tool} {event.arguments}", "cyan", depth)
        case Observed():
            screen.say(f"← {event.tool}: {event.text}", "red" if event.failed else "", depth)
        case _:
            screen.show(row)
