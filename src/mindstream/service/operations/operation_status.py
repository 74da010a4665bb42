"""API operations that list, return and cancel long-running operations."""

from __future__ import annotations

from mindstream.service.operations.operation import (
    Ask,
    EmptyRequest,
    OperationShape,
    Principal,
    Reply,
    Short,
    operation,
)
from mindstream.service.operations.runtime import Runtime


class OperationId(Ask):
    """A long-running operation, by its id."""

    id: Short


class OperationList(Reply):
    """Long-running operations that are running, or ended less than a day ago, newest first."""

    operations: list[OperationShape]


@operation("operations.list", "read", "GET /operations")
async def list_operations(runtime: Runtime, principal: Principal, request: EmptyRequest) -> OperationList:  # noqa: ARG001
    """List the long-running operations that are running, or ended less than a day ago."""
    return OperationList(operations=[each.shape() for each in await runtime.running.of(principal)])


@operation("operations.get", "read", "GET /operations/{id}", mcp="get_operation")
async def get(runtime: Runtime, principal: Principal, request: OperationId) -> OperationShape:
    """Return an operation: its progress, pending approvals, and result."""
    return (await runtime.running.find(principal, request.id)).shape()


@operation("operations.cancel", "write", "POST /operations/{id}/cancel", mcp="cancel_operation")
async def cancel(runtime: Runtime, principal: Principal, request: OperationId) -> OperationShape:
    """Cancel an operation; finished parts stay, and a run of a plan can be resumed."""
    one = await runtime.running.find(principal, request.id)
    await runtime.running.cancel(one)
    return one.shape()
