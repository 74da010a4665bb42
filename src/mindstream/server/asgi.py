"""The types of ASGI, and helpers for requests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from importlib.util import find_spec
from typing import Any, TypeAlias
from urllib.parse import unquote

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


def escape_names(scope: Scope, prefix: str) -> Scope:
    """Return a request in whose path %2F stays escaped below `prefix`, so that names in a path may contain a slash.

    Servers decode the whole path; a router would then split `team%2Fann` into two parts. Routes read the names with
    `unescape_name`. The path is changed only if it contains a percent sign.
    """
    raw, path = scope.get("raw_path") or b"", str(scope["path"])
    if b"%" not in raw and "%" not in path:
        return scope
    head, found, rest = path.partition(prefix)
    sent = raw.decode("latin-1").partition(prefix)[2]
    names = map(unquote, sent.split("/")) if unquote(sent) == rest else rest.split("/")
    escaped = "/".join(each.replace("%", "%25").replace("/", "%2F") for each in names)
    return {**scope, "path": head + found + escaped} if found else scope


def unescape_name(text: str) -> str:
    """Return the name from a part of a path in which `escape_names` has escaped it."""
    return text.replace("%2F", "/").replace("%25", "%")


def require_server() -> None:
    """Raise SettingsError if the `server` extra is not installed."""
    if missing := [name for name in ("fastapi", "uvicorn", "mcp") if find_spec(name) is None]:
        raise SettingsError(f"the server needs {', '.join(missing)}: pip install 'mindstream[server]'")
