"""What the server needs beside mindstream itself: the extra `server`."""

from __future__ import annotations

from importlib.util import find_spec

from mindstream.errors import SettingsError

WANTED = ("fastapi", "uvicorn", "mcp")


def require_server() -> None:
    """Raise SettingsError where the extra is not installed."""
    if missing := [name for name in WANTED if find_spec(name) is None]:
        raise SettingsError(f"the server needs {', '.join(missing)}: pip install 'mindstream[server]'")
