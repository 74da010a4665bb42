"""The server: REST and events, an OpenAI-compatible endpoint, an MCP server.

This package only translates between these protocols and `service.operations`; it contains no business logic.

import mindstream.server

api_app = mindstream.server.app("data", model="openai:gpt-5-mini")     # an ASGI application to run or to mount
"""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from mindstream.errors import SettingsError

if TYPE_CHECKING:
    from mindstream.server.api_app import ApiApp, app

__all__ = ["ApiApp", "app"]
ASGI = {"App": "ASGIApp", "Receive": "Receive", "Scope": "Scope", "Send": "Send"}
"""Names in `starlette.types` of the types in the former module `mindstream.server.asgi`."""


def __getattr__(name: str) -> Any:
    if name in ASGI:
        import starlette.types

        return getattr(starlette.types, ASGI[name])
    import mindstream.server.api_app as module

    if name == "Doors":
        warnings.warn("mindstream.server.Doors is now ApiApp", DeprecationWarning, stacklevel=2)
        return module.ApiApp
    if name not in __all__:
        raise AttributeError(f"module 'mindstream.server' has no attribute {name!r}")
    return getattr(module, name)


def require_server() -> None:
    """Raise SettingsError if the `server` extra is not installed."""
    if missing := [name for name in ("fastapi", "uvicorn", "mcp") if find_spec(name) is None]:
        raise SettingsError(f"the server needs {', '.join(missing)}: pip install 'mindstream[server]'")
