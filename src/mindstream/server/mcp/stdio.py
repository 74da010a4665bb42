"""The MCP server on standard input and output, for a program that starts it; of one person, without a token."""

from __future__ import annotations

from mindstream.service.operations.house import House
from mindstream.service.operations.who import LOCAL_PEOPLE


async def serve_stdio(house: House, user: str, sets: frozenset[str]) -> None:
    """Answer until the input ends.

    Raises:
        InputError: nobody can be called so.
        StorageError: the data folder cannot be used.
    """
    from mcp.server.stdio import stdio_server

    from mindstream.server.mcp.server import Caller, make_server

    caller = Caller(LOCAL_PEOPLE.of(user), sets)
    server = make_server(house, lambda _: caller)
    async with house, stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())
