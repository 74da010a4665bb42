"""The server: REST and events, a model behind chat pages, an MCP server. A skin: it holds no logic of the rooms.

import mindstream.server

doors = mindstream.server.app("data", model="openai:gpt-5-mini")     # an ASGI application, to be run or mounted
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mindstream.server.doors import Doors, app

__all__ = ["Doors", "app"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'mindstream.server' has no attribute {name!r}")
    import mindstream.server.doors as made

    return getattr(made, name)
