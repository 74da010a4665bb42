"""The types of ASGI, and helpers for requests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from importlib.util import find_spec
from typing import Any, TypeAlias

from mindstream.errors import SettingsError

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


def path_of(scope: Scope) -> str:
    """Return the path of a request, relative to the path at which the application is mounted."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path[len(root) :] if root and f"{path}/".startswith(f"{root}/") else path


def require_server() -> None:
    """Raise SettingsError if the `server` extra is not installed."""
    if missing := [name for name in ("fastapi", "uvicorn", "mcp") if find_spec(name) is None]:
        raise SettingsError(f"the server needs {', '.join(missing)}: pip install 'mindstream[server]'")
