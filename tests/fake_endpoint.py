"""A local HTTP server that speaks the OpenAI protocol, as told, and misbehaves as told: the double of every endpoint.

with FakeEndpoint() as door:
    door.will(Fails(429, "slow down", {"Retry-After": "2"}), Says("Hello there."))
    model = provider(f"{door.url}#any")

Each POST takes the next behaviour; when there is none left, `otherwise` answers (by default: "ok").
"""

from __future__ import annotations

import base64
import hashlib
import json
import select
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import repeat
from typing import Any, TypeAlias

from mindstream.models.providers.failures import forget_all

KEY = "sk-very-secret-0123456789"
WIDTH = 8
"""The width of the vectors that `/embeddings` makes up."""


@dataclass(frozen=True)
class Asked:
    """What came in: the path, the headers (names in lower case), the JSON body."""

    path: str
    headers: Mapping[str, str]
    body: Any


@dataclass(frozen=True)
class Says:
    """Words, one chunk per word; `step`: each waits for `door.go()`. `usage` None: the endpoint reports none.

    `cached`: the number of cached prompt tokens. `logprobs`: of possible first tokens, if requested.
    """

    text: str
    usage: tuple[int, int] | None = (7, 3)
    cached: int = 0
    logprobs: tuple[tuple[str, float], ...] = ()
    finish: str | None = "stop"
    pause_s: float = 0.0
    step: bool = False

    def pieces(self) -> list[str]:
        return [word + " " for word in self.text.split(" ")[:-1]] + [self.text.split(" ")[-1]] if self.text else []


@dataclass(frozen=True)
class Calls:
    """Tool calls, (name, arguments as JSON text) each, streamed in small chunks; `text` comes before them."""

    calls: tuple[tuple[str, str], ...]
    text: str = ""
    usage: tuple[int, int] | None = (7, 3)


@dataclass(frozen=True)
class Fails:
    """An HTTP error, its body as OpenAI writes it."""

    status: int
    message: str = "no"
    headers: Mapping[str, str] = field(default_factory=dict)
    code: str | None = None


@dataclass(frozen=True)
class Breaks:
    """Says something, then closes the connection in the middle of the stream."""

    after: str = ""


@dataclass(frozen=True)
class Stalls:
    """Says something, then nothing more, until the other side hangs up or the door closes."""

    after: str = ""


@dataclass(frozen=True)
class Sends:
    """A whole body with status 200, whatever was asked for."""

    body: str
    content_type: str = "application/json"


@dataclass(frozen=True)
class Streams:
    """Lines of an event stream, as they are."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class Floods:
    """Raw bytes, one after the other, until there are no more or the other side hangs up; `sent` counts them."""

    data: Callable[[], Iterable[bytes]]
    headers: Mapping[str, str] = field(default_factory=lambda: {"Content-Type": "text/event-stream"})
    pause_s: float = 0.0
    status: str = "200 OK"


Behaviour: TypeAlias = Says | Calls | Fails | Breaks | Stalls | Sends | Streams | Floods


def delta(**fields: Any) -> bytes:
    """One event of a stream, as bytes."""
    return f"data: {json.dumps(_chunk(fields))}\n\n".encode()


def forever(data: bytes) -> Callable[[], Iterable[bytes]]:
    """The same bytes without an end."""
    return lambda: repeat(data)


def redirects(to: str) -> Fails:
    """Redirect the caller."""
    return Fails(307, "go there", {"Location": to})


NO_SUCH_MODEL = Fails(404, "The model `any` does not exist", code="model_not_found")
WRONG_KEY = Fails(401, "Incorrect API key provided", code="invalid_api_key")
NOT_JSON = Sends("<html><body>502 Bad Gateway</body></html>", "text/html")
WRONG_SHAPE = Streams(('data: {"choices": "none"}', "data: [DONE]"))
GARBAGE = Streams((": a comment", "event: nothing", "data: {not json", "data: [DONE]"))
EMPTY = Says("")


class FakeEndpoint:
    """The server, in a thread; a context manager."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.was_asked = threading.Event()
        self.hung_up = threading.Event()
        self.closing = threading.Event()
        self.sent = 0
        self.otherwise: Behaviour | Callable[[Asked], Behaviour] = Says("ok")
        self.listing: Behaviour | None = None
        """How the list of models is answered; None: there is one, `any`."""
        self.refuses: dict[str, str] = {}
        """Fields of a request that are refused, with the error text."""
        self._next: deque[Behaviour] = deque()
        self._steps = threading.Semaphore(0)
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.door = self
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    @property
    def url(self) -> str:
        """The base URL, up to and with `/v1`."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @property
    def chats(self) -> list[Asked]:
        """What `/chat/completions` was asked."""
        return [asked for asked in self.asked if asked.path.endswith("/chat/completions")]

    def will(self, *behaviours: Behaviour) -> None:
        """Answer the next requests like this, one after the other."""
        self._next.extend(behaviours)

    def go(self) -> None:
        """Let one piece of a `Says(step=True)` out."""
        self._steps.release()

    def next_for(self, asked: Asked) -> Behaviour | None:
        """Return what to do about a request; None: the plain thing."""
        self.asked.append(asked)
        self.was_asked.set()
        for name, words in self.refuses.items():
            if name in asked.body:
                return Fails(400, words)
        if self._next:
            return self._next.popleft()
        if asked.path.endswith("/embeddings"):
            return None
        return self.otherwise(asked) if callable(self.otherwise) else self.otherwise

    def step(self) -> None:
        """Wait until a piece may go out."""
        while not self._steps.acquire(timeout=0.05):
            if self.closing.is_set():
                return

    def __enter__(self) -> FakeEndpoint:
        forget_all()  # of an earlier server at this port
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.end_connections()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    door: FakeEndpoint

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._sockets: set[socket.socket] = set()
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._sockets.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._sockets.discard(request)
        super().shutdown_request(request)

    def end_connections(self) -> None:
        for connection in list(self._sockets):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Connections that the other side drops are part of the game."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self._door = self.server.door
        behaviour = self._door.listing
        if behaviour is not None:
            try:
                self._act(behaviour, Asked(self.path, {k.lower(): v for k, v in self.headers.items()}, {}))
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True
            return
        self._whole(200, {"object": "list", "data": [{"id": "any", "object": "model"}]})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        asked = Asked(self.path, {k.lower(): v for k, v in self.headers.items()}, json.loads(raw))
        self._door = self.server.door
        behaviour = self._door.next_for(asked)
        try:
            if asked.path.endswith("/embeddings") and not isinstance(behaviour, Fails | Sends | Stalls | Floods):
                self._whole(200, _vectors(asked.body))
            else:
                self._act(behaviour or Says("ok"), asked)
        except (BrokenPipeError, ConnectionResetError):
            self._door.hung_up.set()
            self.close_connection = True

    def _act(self, behaviour: Behaviour, asked: Asked) -> None:
        match behaviour:
            case Fails():
                error = {"message": behaviour.message, "type": "error", "code": behaviour.code}
                self._whole(behaviour.status, {"error": error}, behaviour.headers)
            case Sends():
                self._body(200, behaviour.body.encode(), behaviour.content_type, {})
            case Says() | Calls() if not asked.body.get("stream"):
                self._whole(200, _completion(behaviour))
            case Says():
                self._chunks(behaviour, asked)
            case Calls():
                self._stream(f"data: {json.dumps(chunk)}" for chunk in _call_chunks(behaviour))
            case Streams():
                self._stream(behaviour.lines)
            case Breaks():
                self._start()
                self._line(f"data: {json.dumps(_chunk({'content': behaviour.after}))}")
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
            case Stalls():
                self._stall(behaviour)
            case Floods():
                self._flood(behaviour)

    def _chunks(self, says: Says, asked: Asked) -> None:
        self._start()
        self._line(f"data: {json.dumps(_chunk({'role': 'assistant', 'content': ''}))}")
        for place, piece in enumerate(says.pieces()):
            if says.step:
                self._door.step()
            self._door.closing.wait(says.pause_s)
            chunk = _chunk({"content": piece})
            if asked.body.get("logprobs") and says.logprobs and not place:
                chunk["choices"][0]["logprobs"] = _logprobs(says.logprobs[: asked.body["top_logprobs"]])
            self._line(f"data: {json.dumps(chunk)}")
        if says.finish:
            self._line(f"data: {json.dumps(_chunk({}, says.finish))}")
        if says.usage and (asked.body.get("stream_options") or {}).get("include_usage"):
            usage = _usage(says.usage) | (
                {"prompt_tokens_details": {"cached_tokens": says.cached}} if says.cached else {}
            )
            self._line(f"data: {json.dumps({**_chunk({}), 'choices': [], 'usage': usage})}")
        self._line("data: [DONE]")
        self._end()

    def _stall(self, stalls: Stalls) -> None:
        if stalls.after:
            self._start()
            self._line(f"data: {json.dumps(_chunk({'content': stalls.after}))}")
        while not self._door.closing.is_set():
            readable, _, _ = select.select([self.connection], [], [], 0.02)
            if readable and not self.connection.recv(1, socket.MSG_PEEK):
                self._door.hung_up.set()
                break
        self.close_connection = True

    def _flood(self, floods: Floods) -> None:
        self.close_connection = True
        head = "".join(f"{name}: {value}\r\n" for name, value in floods.headers.items())
        self.wfile.write(f"HTTP/1.1 {floods.status}\r\nConnection: close\r\n{head}\r\n".encode())
        for data in floods.data():
            if self._door.closing.wait(floods.pause_s):
                break
            self.wfile.write(data)
            self._door.sent += len(data)

    def _whole(self, status: int, body: Any, headers: Mapping[str, str] | None = None) -> None:
        self._body(status, json.dumps(body).encode(), "application/json", headers or {})

    def _body(self, status: int, body: bytes, content_type: str, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": content_type, "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, lines: Iterable[str]) -> None:
        self._start()
        for line in lines:
            self._line(line)
        self._end()

    def _start(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def _line(self, line: str) -> None:
        data = (line + "\n\n").encode()
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def _end(self) -> None:
        self.wfile.write(b"0\r\n\r\n")


def _chunk(delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": dict(delta), "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "any", "choices": [choice]}


def _call_chunks(calls: Calls) -> Iterator[dict[str, Any]]:
    if calls.text:
        yield _chunk({"content": calls.text})
    for index, (name, arguments) in enumerate(calls.calls):
        head = {"index": index, "id": f"call_{index}", "type": "function", "function": {"name": name, "arguments": ""}}
        yield _chunk({"tool_calls": [head]})
        for start in range(0, len(arguments), 5):
            function = {"arguments": arguments[start : start + 5]}
            yield _chunk({"tool_calls": [{"index": index, "function": function}]})
    yield _chunk({}, "tool_calls")
    if calls.usage:
        yield {**_chunk({}), "choices": [], "usage": _usage(calls.usage)}


def _completion(behaviour: Says | Calls) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": behaviour.text}
    if isinstance(behaviour, Calls):
        message["tool_calls"] = [
            {"id": f"call_{index}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for index, (name, arguments) in enumerate(behaviour.calls)
        ]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if "tool_calls" in message else "stop"}
    usage = _usage(behaviour.usage) if behaviour.usage else None
    return {"id": "c1", "object": "chat.completion", "created": 1, "model": "any", "choices": [choice], "usage": usage}


def _logprobs(first: Iterable[tuple[str, float]]) -> dict[str, Any]:
    likely = [{"token": token, "logprob": logprob, "bytes": list(token.encode())} for token, logprob in first]
    return {"content": [{**likely[0], "top_logprobs": likely}]}


def _usage(tokens: tuple[int, int]) -> dict[str, Any]:
    return {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)}


def _vectors(body: Any) -> dict[str, Any]:
    """Vectors of random direction and length, the same for the same text."""
    texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
    data: list[dict[str, Any]] = []
    for index, text in enumerate(texts):
        vector: Any = [byte / 64 - 2 for byte in hashlib.blake2b(text.encode(), digest_size=WIDTH).digest()]
        if body.get("encoding_format") == "base64":
            vector = base64.b64encode(struct.pack(f"<{WIDTH}f", *vector)).decode()
        data.append({"object": "embedding", "index": index, "embedding": vector})
    return {"object": "list", "model": body["model"], "data": data, "usage": {"prompt_tokens": 1, "total_tokens": 1}}
