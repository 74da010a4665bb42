"""The MCP server, at /mcp and /mcp/{user}."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, nullcontext

from fastapi import FastAPI

from mindstream.service.operations.house import House


def add_mcp(api: FastAPI, house: House) -> AbstractAsyncContextManager[object]:  # noqa: ARG001
    """Mount the MCP server; what is returned is entered as long as the server runs."""
    return nullcontext()
