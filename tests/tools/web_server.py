"""A local web server with scripted responses; it records its requests."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Answers:
    """A response: status, body (JSON unless text), headers; `chunks` continue until the client leaves."""

    body: Any = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    chunks: Callable[[], Iterable[bytes]] | None = None


@dataclass
class WebServer:
    """Answers every request with `answer`, or by its path with `paths`."""

    answer: Answers = field(default_factory=Answers)
    paths: dict[str, Answers] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)

    def __enter__(self) -> WebServer:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                size = int(self.headers.get("Content-Length") or 0)
                outer.asked.append((self.path, {k.lower(): v for k, v in self.headers.items()}, self.rfile.read(size)))
                self.send(outer.paths.get(self.path.partition("?")[0], outer.answer))

            do_POST = do_GET  # noqa: N815

            def send(self, answer: Answers) -> None:
                body = answer.body
                kind = "text/html" if isinstance(body, str | bytes) else "application/json"
                data = body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else None
                data = json.dumps(body).encode() if data is None else data
                self.send_response(answer.status)
                for name, value in ({"Content-Type": kind} | dict(answer.headers)).items():
                    self.send_header(name, value)
                if answer.chunks is None:
                    self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                try:
                    for chunk in answer.chunks() if answer.chunks else (data,):
                        self.wfile.write(chunk)
                except OSError:
                    pass

            def log_message(self, *args: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"
