"""`mindstream life`."""

from __future__ import annotations

from typing import Annotated

import typer

from mindstream.cli.flags import AsJson, Data, User, group, settings

life = group(
    "Look at a life, answer it, steer it; from any process, whoever lives it at the moment.\n\n"
    "`mindstream live` lives one."
)

Words = Annotated[list[str], typer.Argument(metavar="TEXT", help="The words.")]
Because = Annotated[list[str] | None, typer.Argument(metavar="WHY", help="Why; kept in the log.")]
Number = Annotated[int, typer.Argument(min=1, metavar="N", help="Its number, as `life tasks` says.")]
Call = Annotated[str, typer.Argument(metavar="ID", help="Which call [the only one that waits].")]


@life.command(epilog="\b\nExample:\n  mindstream life status --json")
def status(data: Data = None, user: User = None, json: AsJson = False) -> int:
    """Say how it stands: goal, orders, tasks, what it asks, what it has spent."""
    from mindstream.cli.life import show_status

    return show_status(settings(data, user), json)


@life.command(epilog="\b\nExample:\n  mindstream life tasks")
def tasks(data: Data = None, user: User = None, json: AsJson = False) -> int:
    """List what it works on, waits for and has done."""
    from mindstream.cli.life import show_tasks

    return show_tasks(settings(data, user), json)


@life.command(epilog='\b\nExample:\n  mindstream life say "Leave the older reports aside."')
def say(words: Words, data: Data = None, user: User = None, json: AsJson = False) -> int:
    """Say something to it; it wakes, and hears it before its next step."""
    from mindstream.cli.life import tell

    return tell(settings(data, user), " ".join(words), json)


@life.command(epilog='\b\nExamples:\n  mindstream life answer "seven hours"\n  mindstream life answer --id 12.1.1 yes')
def answer(
    words: Words,
    id_: Annotated[
        str, typer.Option("--id", metavar="ID", help="Which question [the oldest that is waited for].")
    ] = "",
    data: Data = None,
    user: User = None,
    json: AsJson = False,
) -> int:
    """Answer what it asks; also later, when it waits no longer."""
    from mindstream.cli.life import answer

    return answer(settings(data, user), " ".join(words), id_, json)


@life.command(epilog="\b\nExample:\n  mindstream life allow 3.1.1.2.1")
def allow(id_: Call = "", data: Data = None, user: User = None, json: AsJson = False) -> int:
    """Allow a call that changes something: this one, with these arguments."""
    from mindstream.cli.life import give_leave

    return give_leave(settings(data, user), True, id_, json)


@life.command(epilog="\b\nExample:\n  mindstream life refuse")
def refuse(id_: Call = "", data: Data = None, user: User = None, json: AsJson = False) -> int:
    """Refuse a call that changes something."""
    from mindstream.cli.life import give_leave

    return give_leave(settings(data, user), False, id_, json)


@life.command(epilog="\b\nExample:\n  mindstream life pause I am in a meeting")
def pause(words: Because = None, data: Data = None, user: User = None, json: AsJson = False) -> int:
    """Let it do nothing more before `resume`; it obeys before its next step."""
    from mindstream.cli.life import order

    return order(settings(data, user), "pause", " ".join(words or ()), json)


@life.command(epilog="\b\nExample:\n  mindstream life resume")
def resume(data: Data = None, user: User = None, json: AsJson = False) -> int:
    """Let it go on, after a pause, a stop, or a rest."""
    from mindstream.cli.life import order

    return order(settings(data, user), "resume", "", json)


@life.command(epilog="\b\nExample:\n  mindstream life stop that is enough")
def stop(words: Because = None, data: Data = None, user: User = None, json: AsJson = False) -> int:
    """End it: whoever lives it ends, too. `resume`, or a new goal, takes it up again."""
    from mindstream.cli.life import order

    return order(settings(data, user), "stop", " ".join(words or ()), json)


@life.command(epilog='\b\nExample:\n  mindstream life add "Compare both reports"')
def add(words: Words, data: Data = None, user: User = None, json: AsJson = False) -> int:
    """Put a task into its ledger."""
    from mindstream.cli.life import change_task
    from mindstream.life.commands import add_task

    return change_task(settings(data, user), lambda stream: add_task(stream, " ".join(words)), json)


@life.command(epilog="\b\nExample:\n  mindstream life move 3 1")
def move(
    number: Number,
    before: Annotated[int, typer.Argument(min=1, metavar="M", help="The task that it is to come before.")],
    data: Data = None,
    user: User = None,
    json: AsJson = False,
) -> int:
    """Have task N worked on before task M."""
    from mindstream.cli.life import change_task
    from mindstream.life.commands import move_task

    return change_task(settings(data, user), lambda stream: move_task(stream, number, before), json)


@life.command(epilog="\b\nExample:\n  mindstream life drop 2")
def drop(number: Number, data: Data = None, user: User = None, json: AsJson = False) -> int:
    """Give a task up; it stays in the log."""
    from mindstream.cli.life import change_task
    from mindstream.life.commands import stop_task

    return change_task(settings(data, user), lambda stream: stop_task(stream, number), json)


@life.command("open", epilog="\b\nExample:\n  mindstream life open 2")
def open_(number: Number, data: Data = None, user: User = None, json: AsJson = False) -> int:
    """Let a task be worked on now: one that waits, is done, or was dropped."""
    from mindstream.cli.life import change_task
    from mindstream.life.commands import open_task

    return change_task(settings(data, user), lambda stream: open_task(stream, number), json)


@life.command(epilog="\b\nExample:\n  mindstream life turn 12")
def turn(
    number: Annotated[int, typer.Argument(min=1, metavar="N", help="Its number.")],
    data: Data = None,
    user: User = None,
    json: AsJson = False,
) -> int:
    """Read a turn whole, as the log has it, also one that became a memory long ago."""
    from mindstream.cli.life import show_turn

    return show_turn(settings(data, user), number, json)


@life.command(epilog='\b\nExample:\n  mindstream life wake "The build failed."')
def wake(words: Words, data: Data = None, user: User = None, json: AsJson = False) -> int:
    """Let it know of something that happened: for hooks and scripts."""
    from mindstream.cli.life import wake

    return wake(settings(data, user), " ".join(words), json)
