"""Operations on the ledger of a life: a person may add to it, give up, open again and reorder at any time."""

from __future__ import annotations

from pydantic import Field

from mindstream.service.operations.house import House
from mindstream.service.operations.life import LifeRequest, LifeShape, status
from mindstream.service.operations.shapes import Ask
from mindstream.service.operations.table import operation
from mindstream.service.operations.who import Who


class AddTaskRequest(Ask):
    """Something to be done."""

    text: str = Field(min_length=1, max_length=300)


class TaskNumber(Ask):
    """A task of the ledger."""

    number: int = Field(ge=1, le=2**31)


class MoveTaskRequest(TaskNumber):
    """`before`: the task that it is to come before."""

    before: int = Field(ge=1, le=2**31)


@operation("life.add_task", "write", "POST /users/{user}/life/tasks", cli="life add")
async def add_task(house: House, who: Who, ask: AddTaskRequest) -> LifeShape:
    """Put a task into the ledger."""
    from mindstream.life import commands

    await commands.add_task(await house.memory(who), ask.text)
    return await status(house, who, LifeRequest(at=None))


@operation("life.drop_task", "write", "POST /users/{user}/life/tasks/{number}/drop", cli="life drop")
async def drop_task(house: House, who: Who, ask: TaskNumber) -> LifeShape:
    """Give a task up; it stays in the log."""
    from mindstream.life import commands

    await commands.stop_task(await house.memory(who), ask.number)
    return await status(house, who, LifeRequest(at=None))


@operation("life.open_task", "write", "POST /users/{user}/life/tasks/{number}/open", cli="life open")
async def open_task(house: House, who: Who, ask: TaskNumber) -> LifeShape:
    """Let a task be worked on now: one that waits, is done, or was given up."""
    from mindstream.life import commands

    await commands.open_task(await house.memory(who), ask.number)
    return await status(house, who, LifeRequest(at=None))


@operation("life.move_task", "write", "POST /users/{user}/life/tasks/{number}/move", cli="life move")
async def move_task(house: House, who: Who, ask: MoveTaskRequest) -> LifeShape:
    """Have a task worked on before another."""
    from mindstream.life import commands

    await commands.move_task(await house.memory(who), ask.number, ask.before)
    return await status(house, who, LifeRequest(at=None))
