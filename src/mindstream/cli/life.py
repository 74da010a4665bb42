"""`mindstream life …`: look at a life, answer it and steer it, whoever lives it, or nobody."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from rich.console import Console

from mindstream.cli.screens.life import LifeScreen
from mindstream.cli.screens.life_lines import describe_so_far, describe_standing, list_open, list_tasks
from mindstream.cli.screens.life_lines import words as words_of
from mindstream.cli.shell.flags import AsJson, command, flag, group, word
from mindstream.cli.shell.output import complain, print_json, tell
from mindstream.clock import format_spoken
from mindstream.life import commands
from mindstream.life import opened as lives
from mindstream.life.events import Asked, Order, Replied, TurnBegan
from mindstream.life.ledger import Task
from mindstream.life.opened import command_of, read_opened
from mindstream.life.schedule import Rhythm, known_orders, unknown_orders
from mindstream.life.state import LifeState
from mindstream.log.events import Event, Logged, Observed, ToolCalled
from mindstream.memory.memory import Memory
from mindstream.service.living import ZONE
from mindstream.service.memory import open_user_memory
from mindstream.settings import Settings

BEGINS = '`mindstream live --goal "…"`'
app = group(
    "Look at a life, answer it, steer it; from any process, whoever lives it at the moment.\n\n"
    "`mindstream live` lives one."
)
Words = Annotated[list[str], word("TEXT", "The words.")]
Because = Annotated[list[str] | None, word("WHY", "Why; kept in the log.")]
Number = Annotated[int, word("N", "Its number, as `life tasks` says.", min=1)]
Call = Annotated[str, word("ID", "Which call [the only one that waits].")]


@command(app, "data user", "mindstream life status --json")
async def status(settings: Settings, json: AsJson = False) -> None:
    """Say how it stands: goal, orders, tasks, what it asks, what it has spent."""
    async with open_user_memory(settings, begins=BEGINS) as opened:
        state, is_lived = await commands.look(opened.memory), await lives.is_lived(opened.memory)
        row, lines = _status(state, is_lived), _describe_status(state, opened.clock.now(), is_lived)
        if not is_lived:
            row["command"] = again = await _command(opened.memory, settings)
            lines.append(words_of("again", state.language, again))
        tell(json, row, *lines)


@command(app, "data user", "mindstream life tasks")
async def tasks(settings: Settings, json: AsJson = False) -> None:
    """List what it works on, waits for and has done."""
    async with open_user_memory(settings, begins=BEGINS) as opened:
        state, now = await commands.look(opened.memory), opened.clock.now()
    for task in state.ledger.ordered():
        tell(json, task.model_dump(mode="json"), *list_tasks([task], now, state.language))
    if not json and not state.ledger.tasks:
        complain("the ledger is empty")


@command(app, "data user", 'mindstream life say "Leave the older reports aside."')
async def say(settings: Settings, words: Words, json: AsJson = False) -> None:
    """Say something to it; it wakes, and hears it before its next step."""
    async with open_user_memory(settings, begins=BEGINS) as opened:
        await commands.say(opened.memory, text := " ".join(words))
        await _tell(opened.memory, settings, json, did="said", text=text)


@command(app, "data user", 'mindstream life answer "seven hours"', "mindstream life answer --id 12.1.1 yes")
async def answer(
    settings: Settings,
    words: Words,
    id_: Annotated[str, flag("ID", "Which question [the oldest that is waited for].", "--id")] = "",
    json: AsJson = False,
) -> None:
    """Answer what it asks; also later, when it waits no longer."""
    async with open_user_memory(settings, begins=BEGINS) as opened:
        asked = await commands.answer(opened.memory, text := " ".join(words), id_, session="life")
        await _tell(opened.memory, settings, json, did=f"answered: {asked.tip}", id=asked.id, tip=asked.tip, text=text)


@command(app, "data user", "mindstream life allow 3.1.1.2.1")
async def allow(settings: Settings, id_: Call = "", json: AsJson = False) -> None:
    """Allow a call that changes something: this one, with these arguments."""
    await _give_leave(settings, True, id_, json)


@command(app, "data user", "mindstream life refuse")
async def refuse(settings: Settings, id_: Call = "", json: AsJson = False) -> None:
    """Refuse a call that changes something."""
    await _give_leave(settings, False, id_, json)


async def _give_leave(settings: Settings, yes: bool, id_: str, json: bool) -> None:
    async with open_user_memory(settings, begins=BEGINS) as opened:
        named = await commands.give_leave(opened.memory, yes, id_)
        did = f"the call {named} {'may' if yes else 'may not'} be made"
        await _tell(opened.memory, settings, json, did=did, id=named, yes=yes)


@command(app, "data user", "mindstream life pause I am in a meeting")
async def pause(settings: Settings, words: Because = None, json: AsJson = False) -> None:
    """Let it do nothing more before `resume`; it obeys before its next step."""
    did = "it pauses before its next step; `mindstream life resume` lets it go on"
    await _order(settings, "pause", did, words, json)


@command(app, "data user", "mindstream life resume")
async def resume(settings: Settings, json: AsJson = False) -> None:
    """Let it go on, after a pause, a stop, or a rest."""
    await _order(settings, "resume", "it may go on", None, json)


@command(app, "data user", "mindstream life stop that is enough")
async def stop(settings: Settings, words: Because = None, json: AsJson = False) -> None:
    """End it: whoever lives it ends, too. `resume`, or a new goal, takes it up again."""
    did = "it stops before its next step; `mindstream life resume`, or a new goal, takes it up again"
    await _order(settings, "stop", did, words, json)


async def _order(settings: Settings, what: Order, did: str, words: list[str] | None, json: bool) -> None:
    async with open_user_memory(settings, begins=BEGINS) as opened:
        await commands.order(opened.memory, what, because := " ".join(words or ()))
        await _tell(opened.memory, settings, json, did=did, order=what, because=because)


@command(app, "data user", 'mindstream life add "Compare both reports"')
async def add(settings: Settings, words: Words, json: AsJson = False) -> None:
    """Put a task into its ledger."""
    await _change_task(settings, lambda stream: commands.add_task(stream, " ".join(words)), json)


@command(app, "data user", "mindstream life move 3 1")
async def move(
    settings: Settings,
    number: Number,
    before: Annotated[int, word("M", "The task that it is to come before.", min=1)],
    json: AsJson = False,
) -> None:
    """Have task N worked on before task M."""
    await _change_task(settings, lambda stream: commands.move_task(stream, number, before), json)


@command(app, "data user", "mindstream life drop 2")
async def drop(settings: Settings, number: Number, json: AsJson = False) -> None:
    """Give a task up; it stays in the log."""
    await _change_task(settings, lambda stream: commands.stop_task(stream, number), json)


@command(app, "data user", "mindstream life open 2", name="open")
async def open_(settings: Settings, number: Number, json: AsJson = False) -> None:
    """Let a task be worked on now: one that waits, is done, or was dropped."""
    await _change_task(settings, lambda stream: commands.open_task(stream, number), json)


async def _change_task(settings: Settings, how: Callable[[Memory], Awaitable[Task]], json: bool) -> None:
    async with open_user_memory(settings, begins=BEGINS) as opened:
        task = await how(opened.memory)
        (line,) = list_tasks([task], opened.clock.now())
        await _tell(opened.memory, settings, json, did=line, **task.model_dump(mode="json"))


@command(app, "data user", "mindstream life turn 12")
async def turn(
    settings: Settings, number: Annotated[int, word("N", "Its number.", min=1)], json: AsJson = False
) -> None:
    """Read a turn whole, as the log has it, also one that became a memory long ago."""
    async with open_user_memory(settings, begins=BEGINS) as opened:
        screen = LifeScreen(Console(highlight=False))
        screen.language = (await commands.look(opened.memory)).language
        for row in await commands.read_turn(opened.memory, number):
            print_json(row.row()) if json else _print_row(screen, row)


@command(app, "data user", 'mindstream life wake "The build failed."')
async def wake(settings: Settings, words: Words, json: AsJson = False) -> None:
    """Let it know of something that happened: for hooks and scripts."""
    async with open_user_memory(settings, begins=BEGINS) as opened:
        await commands.notice(opened.memory, text := " ".join(words))
        await _tell(opened.memory, settings, json, did="it is told of that, and wakes", text=text)


async def _command(stream: Memory, settings: Settings) -> str:
    """Return the command that continues a life: as it was started, or as far as its log says how."""
    opened = await read_opened(stream)
    if opened.command:
        return opened.command
    model = [word for name in list(opened.models.values())[:1] for word in ("--model", name)]
    return command_of(["mindstream", "live", *model, "--data", str(settings.data), "--user", settings.user])


async def _tell(stream: Memory, settings: Settings, json: bool, **done: Any) -> None:
    """Say what was done (`did`), with what a program wants to know; say, too, where nobody lives it."""
    tell(json, done, str(done["did"]))
    if not json and not await lives.is_lived(stream):
        complain(
            f"no process lives it now; this continues it, and takes that in:\n  {await _command(stream, settings)}"
        )


def _status(state: LifeState, is_lived: bool) -> dict[str, Any]:
    waiting = {id_: each for id_, each in (state.questions | state.late).items() if id_ not in state.answers}
    return {
        "goal": state.goal,
        "orders": list(state.orders),
        "unknown_orders": dict(unknown_orders(state.orders)),
        "lived": is_lived,
        "halted": state.halted,
        "turn": state.turn,
        "in_turn": state.in_turn,
        "tasks": [task.model_dump(mode="json") for task in state.ledger.ordered()],
        "questions": [{"id": id_, "tip": each.tip, "late": id_ in state.late} for id_, each in waiting.items()],
        "leave_wanted": [each.model_dump(mode="json") for each in state.wishes.values()],
        "spent": state.spent.model_dump(mode="json"),
    }


def _describe_status(state: LifeState, now: float, is_lived: bool) -> list[str]:
    language = state.language
    lines = [
        words_of("goal", language, state.goal),
        describe_standing(state, now, Rhythm(zone=ZONE).next_wake(state, now), is_lived),
    ]
    if state.idle:
        lines.append(words_of("rests", language, state.idle))
    for number, each in known_orders(state.orders):
        due = format_spoken(each.next_after(max(now, state.beats.get(number, now)), ZONE), language=language)
        lines.append(words_of("next_order", language, number, due, each.text))
    lines += [words_of("unknown_order", language, number, why) for number, why in unknown_orders(state.orders)]
    tasks = list(list_tasks(state.ledger.ordered(), now, language))
    title = [words_of("tasks", language)] if tasks else []
    return [*lines, *title, *(f"  {task}" for task in tasks), *list_open(state), describe_so_far(state)]


def _print_row(screen: LifeScreen, row: Logged) -> None:
    """Print a row with all its words."""
    event: Event = row.event
    depth = 0 if not isinstance(event, Replied | ToolCalled | Observed) else getattr(event, "id", "").count(".") // 2
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
