"""The types of ASGI, as its specification names them."""

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


WANTED = ("fastapi", "uvicorn", "mcp")


def require_server() -> None:
    """Raise SettingsError where the extra is not installed."""
    if missing := [name for name in WANTED if find_spec(name) is None]:
        raise SettingsError(f"the server needs {', '.join(missing)}: pip install 'mindstream[server]'")
