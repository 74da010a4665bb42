"""Record model calls, one JSON line per call, and play them back: the same run without a model.

`Cache` answers a repeated request from a file.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from mindstream import caches, errors
from mindstream.chance import token
from mindstream.errors import InputError, ModelError, ModelRefused, RateLimited, SettingsError, StorageError
from mindstream.models.model import Layer, Layered, Message, Model, Part, Request, ToolSpec, Usage
from mindstream.paths import read_text
from mindstream.private_files import append_private, make_private_folder, write_private

MAX_BYTES = 256 << 20
"""Maximum size of a recording. A conversation of a thousand turns takes four megabytes."""


class Failure(BaseModel):
    """The error that ended a call: the name of its class, and its message."""

    kind: str
    message: str
    retry_after_s: float | None = None


class RecordedCall(BaseModel):
    """One call of a model."""

    prompt: str
    role: str
    model: str
    hash: str
    messages: list[Message]
    tools: list[ToolSpec] = []
    parts: list[Part] = []
    error: Failure | None = None


class Recorder(Layered):
    """Appends every call, when it ends, to a file: request and answer, but no API keys. Only the file's owner can read
    it."""

    def __init__(self, inner: Model, path: Path | str) -> None:
        super().__init__(inner)
        self._path = Path(path)

    def layer(self, request: Request) -> Layer:
        return _Recorded(self.inner, request, self._path)


class _Recorded(Layer):
    def __init__(self, inner: Model, request: Request, path: Path) -> None:
        super().__init__(inner, request)
        self._path = path
        self._call = RecordedCall(
            prompt=request.prompt.label(),
            role=request.role,
            model=inner.name,
            hash=fingerprint(request),
            messages=list(request.messages),
            tools=list(request.tools),
        )
        self._call.parts = []

    def take(self, part: Part) -> Sequence[Part]:
        self._call.parts.append(part)
        return (part,)

    def close(self, failure: BaseException | None) -> None:
        if isinstance(failure, ModelError):
            wait_s = getattr(failure, "retry_after_s", None)
            self._call.error = Failure(kind=type(failure).__name__, message=str(failure), retry_after_s=wait_s)
        try:
            make_private_folder(self._path.parent)
            with append_private(self._path) as file:
                file.write(self._call.model_dump_json(exclude_defaults=True) + "\n")
        except OSError as error:
            raise StorageError(f"the recording {self._path} cannot be written: {error}") from None


PLAYBACK = "playback:"


def costs_nothing(name: str) -> bool:
    """Return whether a model of this name is free: rules, and recordings."""
    return name == "rules" or name.startswith(PLAYBACK)


class Playback:
    """Answers from a recording.

    Each recorded call is used once. A call with exactly the same request is preferred. If there is none, the most
    similar call of the same prompt is used: the first of the calls whose messages share most lines with the request. So
    a run may differ a little from the recorded run.

    Args:
        strict: whether to refuse a request that is not in the recording exactly.
    """

    def __init__(self, path: Path | str, *, strict: bool = False) -> None:
        self.name = f"{PLAYBACK}{path}"
        self._path = Path(path)
        self._strict = strict
        self._lines = _read(self._path)
        self._played = 0

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        line = self._next(request)
        self._played += 1
        for part in line.parts:
            yield part
        if line.error is not None:
            raise _raised(line.error)

    def _next(self, request: Request) -> RecordedCall:
        label, key = request.prompt.label(), fingerprint(request)
        left = [line for line in self._lines if line.prompt == label]
        found = next((line for line in left if line.hash == key), None)
        if found is None and left and not self._strict:
            asked = _lines_of(request.messages)
            # of equally similar calls, the first
            found = max(left, key=lambda line: len(asked & _lines_of(line.messages)))
        if found is None:
            raise ModelRefused(self._divergence(request, left))
        self._lines.remove(found)
        return found

    def _divergence(self, request: Request, left: list[RecordedCall]) -> str:
        label = request.prompt.label()
        calls = f"{self._played:,} call{'s' * (self._played != 1)}"
        start = f"the recording {self._path} has no answer to the prompt {label!r} after {calls}"
        if not left:
            return f"{start}: all its calls of this prompt are used. Record the run again"
        asked, recorded = request.messages, left[0].messages
        for number, (now, then) in enumerate(zip(asked, recorded, strict=False), 1):
            if now != then:
                return f"{start}: message {number} is {now.text[:120]!r}, but the recorded one is {then.text[:120]!r}"
        return f"{start}: the tools differ, or the number of messages: {len(asked)}, but {len(recorded)} recorded"


def _lines_of(messages: Iterable[Message]) -> set[str]:
    return {line for message in messages for line in message.text.splitlines()}


def fingerprint(request: Request, *more: str) -> str:
    """Return a hash of a request: messages, tools, options, continuation and sampling parameters.

    The maximum length of the reply is not part of the hash, because budgets and the model's context window change this
    length from call to call.

    Args:
        more: further texts that distinguish answers.
    """
    read: list[Any] = [
        [asdict(message) for message in request.messages],
        [asdict(tool) for tool in request.tools],
        more,
        *([request.options] if request.options else []),
        *([request.continuation] if request.continuation else []),
        *([request.sampling.fields()] if request.sampling.fields() else []),
    ]
    return hashlib.sha256(json.dumps(read, sort_keys=True).encode()).hexdigest()


def _read(path: Path) -> list[RecordedCall]:
    try:
        text = read_text(path, MAX_BYTES)
    except InputError as error:
        raise SettingsError(f"the recording {path} {error}") from None
    lines: list[RecordedCall] = []
    for number, line in enumerate(text.removesuffix("\n").split("\n") if text else (), 1):
        try:
            lines.append(RecordedCall.model_validate_json(line))
        except ValidationError as error:
            found = error.errors()[0]
            raise SettingsError(f"{path}:{number} is not a recorded call: {found['loc']} {found['msg']}") from None
    return lines


def _raised(failure: Failure) -> ModelError:
    kind = getattr(errors, failure.kind, None)
    if not (isinstance(kind, type) and issubclass(kind, ModelError)):
        return ModelRefused(failure.message)
    return RateLimited(failure.message, failure.retry_after_s) if kind is RateLimited else kind(failure.message)


HEX = "[0-9a-f]"
ANSWER = TypeAdapter(list[Part])


class Cache(Layered):
    """Stores complete answers in files, by the `fingerprint` of the request and the model's name. A cached answer has a
    usage of zero.

    Any number of processes may share the folder. The files do not record the user. So all answers are deleted when a
    process that uses the folder erases data of a user, or notices that another process did. If no process uses the
    folder at this time, the answers stay.
    """

    def __init__(self, inner: Model, folder: Path | str) -> None:
        super().__init__(inner)
        self._folder, self._of = Path(folder), inner.name  # the name of a `Fallback` changes with its answers
        caches.watch(self)

    def forget(self, _: str) -> None:
        """Delete all answers."""
        for path in self._folder.glob(f"{HEX * 2}/{HEX * 64}.*"):
            with contextlib.suppress(OSError):  # another process may delete the file at the same time
                path.unlink()

    def layer(self, request: Request) -> Layer:
        key = fingerprint(request, self._of)
        path = self._folder / key[:2] / f"{key}.json"
        with contextlib.suppress(OSError, ValueError):
            return Layer(_Known(self.name, ANSWER.validate_json(path.read_bytes())), request)
        return _Kept(self.inner, request, path)


class _Known:
    """A model that gives a cached answer."""

    def __init__(self, name: str, parts: Sequence[Part]) -> None:
        self.name, self._parts = name, parts

    async def reply(self, request: Request) -> AsyncGenerator[Part]:  # noqa: ARG002
        for part in self._parts:
            yield Usage(0, 0, 0.0) if isinstance(part, Usage) else part


class _Kept(Layer):
    def __init__(self, inner: Model, request: Request, path: Path) -> None:
        super().__init__(inner, request)
        self._path, self._heard = path, list[Part]()

    def take(self, part: Part) -> Sequence[Part]:
        self._heard.append(part)
        return (part,)

    def end(self) -> Sequence[Part]:
        path = self._path
        draft = path.with_suffix(f".{token()}.tmp")  # renamed at the end, so that readers never see a partial file
        try:
            make_private_folder(path.parent)
            write_private(draft, ANSWER.dump_json(self._heard))
            os.replace(draft, path)  # noqa: PTH105
        except OSError as error:
            raise StorageError(f"the cache of answers in {path.parent.parent} cannot be written: {error}") from None
        return ()
