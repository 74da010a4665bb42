"""Operations on operations: what takes its time, by id."""

from __future__ import annotations

from pydantic import Field

from mindstream.service.operations.house import House
from mindstream.service.operations.lasting import OperationShape
from mindstream.service.operations.shapes import Ask, NoQuestion, Reply
from mindstream.service.operations.table import operation
from mindstream.service.operations.who import Who


class OperationId(Ask):
    """One operation."""

    id: str = Field(max_length=100)


class OperationList(Reply):
    """What goes on, or ended within a day, the newest first."""

    operations: list[OperationShape]


@operation("operations.list", "read", "GET /operations")
async def list_operations(house: House, who: Who, ask: NoQuestion) -> OperationList:  # noqa: ARG001
    """List what goes on, or ended within a day."""
    return OperationList(operations=[each.shape() for each in await house.running.of(who)])


@operation("operations.get", "read", "GET /operations/{id}", mcp="get_operation")
async def get(house: House, who: Who, ask: OperationId) -> OperationShape:
    """Return an operation: how far it is, what it waits for, what came of it."""
    return (await house.running.find(who, ask.id)).shape()


@operation("operations.cancel", "write", "POST /operations/{id}/cancel", mcp="cancel_operation")
async def cancel(house: House, who: Who, ask: OperationId) -> OperationShape:
    """Break an operation off; what it has done stays, and a run of a plan can be resumed."""
    one = await house.running.find(who, ask.id)
    await house.running.cancel(one)
    return one.shape()
