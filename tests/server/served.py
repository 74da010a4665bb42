"""A server for tests: the application on uvicorn in its own thread, or `mindstream serve` as a process."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import httpx

from mindstream.location import AnyData, Location
from mindstream.memory.opening import open_store
from mindstream.server.api_app import ApiApp, app
from mindstream.server.run import Server, configure, listen
from mindstream.server.tokens import Tokens

T = TypeVar("T")


class Served:
    """Serves an application from a thread; a context manager.

    Attributes:
        api_app: the application; `api_app.runtime` is its runtime.
        url: its address, for example http://127.0.0.1:1234.
    """

    def __init__(self, data: AnyData, host: str = "127.0.0.1", **more: Any) -> None:
        self.api_app: ApiApp = app(data, **more)
        self._socket = listen(host, 0)
        self.url = f"http://{'[::1]' if ':' in host else '127.0.0.1'}:{self._socket.getsockname()[1]}"
        self._server = Server(self.api_app, configure(self.api_app))
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        asyncio.run(self._server.serve_app([self._socket]))

    def client(self, **more: Any) -> httpx.Client:
        """Return an HTTP client of the server."""
        return httpx.Client(base_url=self.url, timeout=100, **more)

    def token(self, tenant: str = "acme", scopes: str = "read,write", **more: Any) -> dict[str, str]:
        """Create a token and return its Authorization header."""
        token, _ = self.change_tokens(lambda tokens: tokens.new(tenant, scopes, 1, **more))
        return {"Authorization": f"Bearer {token}"}

    def change_tokens(self, change: Callable[[Tokens], Coroutine[Any, Any, T]]) -> T:
        """Change the tokens as another process does."""

        async def do() -> T:
            async with open_store(self.api_app.runtime.settings.data) as store:
                return await change(Tokens(lambda: store, self.api_app.runtime.clock))

        with ThreadPoolExecutor(1) as thread:  # the caller may run its own event loop
            return thread.submit(asyncio.run, do()).result()

    def __enter__(self) -> Served:
        self._thread.start()
        with self.client(transport=httpx.HTTPTransport(retries=20)) as client:
            assert client.get("/healthz").status_code == 200
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(timeout=200)
        self._socket.close()
        assert not self._thread.is_alive()


class ServerProcess:
    """`mindstream serve --port 0` as a process; a context manager."""

    def __init__(self, data: AnyData, *flags: str, port: int = 0) -> None:
        words = [sys.executable, "-m", "mindstream", "serve", "--port", str(port), "--data", _typed(data), *flags]
        self.process = subprocess.Popen(
            words, stderr=subprocess.PIPE, text=True, env=os.environ | {"PYTHONUNBUFFERED": "1"}
        )
        assert self.process.stderr is not None
        self.said = self.process.stderr.readline()
        self.url = self.said.split()[-1] if self.said.startswith("listening on ") else ""

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and return the exit code."""
        self.process.send_signal(how)
        return self.process.wait(timeout=200)

    def __enter__(self) -> ServerProcess:
        assert self.url, self.said
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(timeout=200)
        assert self.process.stderr is not None
        self.process.stderr.close()


def _typed(data: AnyData) -> str:
    where = Location.of(data)
    return where.url or str(where)


__all__ = ["Served", "ServerProcess"]
