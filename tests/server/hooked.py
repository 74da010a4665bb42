"""A local webhook receiver with scripted responses; it checks the signatures of its requests."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import queue
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from mindstream import SqliteStore
from mindstream.coach.events import LeftUnsaid
from mindstream.identifiers import StreamName
from mindstream.log.events import FollowUp
from mindstream.memory.opening import open_store
from mindstream.memory.store.store import Commit, Entry

SECRET = "a secret of the operator's"


class LocalReceiver:
    """A receiver; a context manager.

    Attributes:
        statuses: its responses, one after the other; then 204. A negative one waits until `go` is set.
        posts: the requests, unchanged.
    """

    def __init__(self, *statuses: int) -> None:
        self.statuses = list(statuses)
        self.posts: queue.Queue[dict[str, Any]] = queue.Queue()
        self.go = threading.Event()
        receiver = self

        class Answers(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                receiver.posts.put({"id": self.headers["webhook-id"], **checked(dict(self.headers.items()), body)})
                status = receiver.statuses.pop(0) if receiver.statuses else 204
                if status < 0:
                    receiver.go.wait(60)
                self.send_response(abs(status))
                self.send_header("location", "http://127.0.0.1:1/")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        self._server.daemon_threads, self._server.block_on_close = True, False
        self.url = f"http://127.0.0.1:{self._server.server_port}/told"

    def next(self) -> dict[str, Any]:
        """Wait for the next post and return it."""
        return self.posts.get(timeout=100)

    def take_anything(self) -> None:
        """Clear the records; accept everything from here on."""
        self.statuses = []
        while not self.posts.empty():
            self.posts.get()

    def __enter__(self) -> LocalReceiver:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.go.set()
        self._server.shutdown()
        self._server.server_close()


def checked(headers: dict[str, str], body: bytes) -> dict[str, Any]:
    """Return the posted messages, if they are signed."""
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    wanted = base64.b64encode(hmac.new(SECRET.encode(), signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{wanted}"
    told: dict[str, Any] = json.loads(body)
    return told


async def add(data: str | Path, text: str, tenant: str = "", user: str = "ann", *, is_said: bool = True) -> int:
    """Write a follow-up of a mind, as another process does; return its seq."""
    event = FollowUp(text=text, answers=1) if is_said else LeftUnsaid(text=text, answers=1)
    async with open_store(data, tenant) as store:
        mind = store.key(StreamName("user", user))
        (row,) = await store.commit(Commit(mind=mind, at=1.0, entries=(Entry(event, "sleep"),)))
    return row.seq


async def forget_all(folder: Path, user: str = "ann") -> None:
    """Erase all data of a user, as another process does."""
    async with SqliteStore(folder) as store:
        await store.erase(store.key(StreamName("user", user)))
