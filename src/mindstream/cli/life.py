"""`mindstream life …`: look at a life, answer it and steer it, whoever lives it, or nobody."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from rich.console import Console

from mindstream.cli.clean import complain, say
from mindstream.cli.json_lines import print_json
from mindstream.cli.life_lines import describe_so_far, describe_standing, list_open, list_tasks
from mindstream.cli.life_screens import LifeScreen
from mindstream.cli.life_words import words
from mindstream.clock import format_spoken
from mindstream.life import commands, lives
from mindstream.life.events import Asked, Order, Replied, TurnBegan
from mindstream.life.ledger import Task
from mindstream.life.state import LifeState
from mindstream.life.waking import Rhythm, known_orders, unknown_orders
from mindstream.log.events import Event, Logged, Observed, ToolCalled
from mindstream.memory.stream import Stream
from mindstream.service.living import ZONE
from mindstream.service.memory import memory
from mindstream.settings import Settings

BEGINS = '`mindstream live --goal "…"`'
Act = Callable[[Stream], Awaitable[Mapping[str, Any]]]
"""Does something to a life; returns what was done: `did`, a sentence, and what a program wants to know."""


def change(settings: Settings, do: Act, json: bool) -> int:
    """Do something to a life and say what was done; say, too, where nobody lives it."""

    async def run() -> None:
        async with memory(settings, begins=BEGINS) as opened:
            done = await do(opened.stream)
            if json:
                print_json(done)
                return
            say(str(done["did"]))
            if not await lives.is_lived(opened.stream):
                complain("nobody lives it now: `mindstream live` goes on with it, and takes that in")

    asyncio.run(run())
    return 0


def answer(settings: Settings, text: str, id_: str, json: bool) -> int:
    """Answer what it asks."""

    async def do(stream: Stream) -> Mapping[str, Any]:
        question = await commands.answer(stream, text, id_, session="life")
        return {"did": f"answered: {question.tip}", "id": question.id, "tip": question.tip, "text": text}

    return change(settings, do, json)


def tell(settings: Settings, text: str, json: bool) -> int:
    """Say something to it."""

    async def do(stream: Stream) -> Mapping[str, Any]:
        await commands.say(stream, text)
        return {"did": "said", "text": text}

    return change(settings, do, json)


def wake(settings: Settings, text: str, json: bool) -> int:
    """Let it know of something that happened."""

    async def do(stream: Stream) -> Mapping[str, Any]:
        await commands.notice(stream, text)
        return {"did": "it is told of that, and wakes", "text": text}

    return change(settings, do, json)


def give_leave(settings: Settings, yes: bool, id_: str, json: bool) -> int:
    """Say whether a call may be made."""

    async def do(stream: Stream) -> Mapping[str, Any]:
        named = await commands.give_leave(stream, yes, id_)
        return {"did": f"the call {named} {'may' if yes else 'may not'} be made", "id": named, "yes": yes}

    return change(settings, do, json)


def order(settings: Settings, what: Order, because: str, json: bool) -> int:
    """Pause it, let it go on, or stop it."""
    did = {
        "pause": "it pauses before its next step; `mindstream life resume` lets it go on",
        "resume": "it may go on",
        "stop": "it stops before its next step; `mindstream life resume`, or a new goal, takes it up again",
    }[what]

    async def do(stream: Stream) -> Mapping[str, Any]:
        await commands.order(stream, what, because)
        return {"did": did, "order": what, "because": because}

    return change(settings, do, json)


def change_task(settings: Settings, how: Callable[[Stream], Awaitable[Task]], json: bool) -> int:
    """Change the ledger."""

    async def do(stream: Stream) -> Mapping[str, Any]:
        task = await how(stream)
        (line,) = list_tasks([task], stream.clock.now())
        return {"did": line, **task.model_dump(mode="json")}

    return change(settings, do, json)


def show_tasks(settings: Settings, json: bool) -> int:
    """Print the ledger."""

    async def run() -> None:
        async with memory(settings, begins=BEGINS) as opened:
            state = await commands.look(opened.stream)
            for task in state.ledger.ordered() if json else ():
                print_json(task.model_dump(mode="json"))
            for line in () if json else list_tasks(state.ledger.ordered(), opened.clock.now(), state.language):
                say(line)
            if not json and not state.ledger.tasks:
                complain("the ledger is empty")

    asyncio.run(run())
    return 0


def show_status(settings: Settings, json: bool) -> int:
    """Print how a life stands."""

    async def run() -> None:
        async with memory(settings, begins=BEGINS) as opened:
            state, is_lived = await commands.look(opened.stream), await lives.is_lived(opened.stream)
            if json:
                print_json(_status(state, is_lived))
            else:
                _print_status(state, opened.clock.now(), is_lived)

    asyncio.run(run())
    return 0


def _status(state: LifeState, is_lived: bool) -> dict[str, Any]:
    waiting = {id_: each for id_, each in (state.questions | state.late).items() if id_ not in state.answers}
    return {
        "goal": state.goal, "orders": list(state.orders), "unknown_orders": dict(unknown_orders(state.orders)),
        "lived": is_lived, "halted": state.halted,
        "turn": state.turn, "in_turn": state.in_turn,
        "tasks": [task.model_dump(mode="json") for task in state.ledger.ordered()],
        "questions": [{"id": id_, "tip": each.tip, "late": id_ in state.late} for id_, each in waiting.items()],
        "leave_wanted": [each.model_dump(mode="json") for each in state.wishes.values()],
        "spent": state.spent.model_dump(mode="json"),
    }  # fmt: skip


def _print_status(state: LifeState, now: float, is_lived: bool) -> None:
    wakes = Rhythm(zone=ZONE).next_wake(state, now)
    language = state.language
    say(words("goal", language, state.goal))
    say(describe_standing(state, now, wakes, is_lived))
    for number, each in known_orders(state.orders):
        due = format_spoken(each.next_after(max(now, state.beats.get(number, now)), ZONE), language=language)
        say(words("next_order", language, number, due, each.text))
    for number, why in unknown_orders(state.orders):
        say(words("unknown_order", language, number, why))
    tasks = list(list_tasks(state.ledger.ordered(), now, language))
    for line in [*([words("tasks", language)] if tasks else []), *(f"  {task}" for task in tasks), *list_open(state)]:
        say(line)
    say(describe_so_far(state))


def show_turn(settings: Settings, number: int, json: bool) -> int:
    """Print a turn whole, as the log has it, folded or not."""

    async def run() -> None:
        async with memory(settings, begins=BEGINS) as opened:
            screen = LifeScreen(Console(highlight=False))
            screen.language = (await commands.look(opened.stream)).language
            for row in await commands.read_turn(opened.stream, number):
                if json:
                    print_json(row.row())
                else:
                    _print_row(screen, row)

    asyncio.run(run())
    return 0


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
