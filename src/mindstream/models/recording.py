"""Keep what models answered, one JSON line per call, and answer from it again: the same run without a model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from mindstream import errors
from mindstream.errors import InputError, ModelError, ModelRefused, RateLimited, SettingsError, StorageError
from mindstream.models.model import Message, Model, Part, Request, ToolSpec
from mindstream.paths import read_text
from mindstream.private_files import append_private, make_private_folder

LARGEST = 256 << 20
"""In bytes. A talk of a thousand turns takes four megabytes."""


class Failure(BaseModel):
    """The error that a call ended with: the name of its class, and its message."""

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


class Recorder:
    """Appends every call, as it ended, to a file that its owner alone can read; requests and answers, so no key."""

    def __init__(self, model: Model, path: Path | str) -> None:
        self.name = model.name
        self._model = model
        self._path = Path(path)

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        heard: list[Part] = []
        failure: Failure | None = None
        try:
            async with aclosing(self._model.reply(request)) as parts:
                async for part in parts:
                    heard.append(part)
                    yield part
        except ModelError as error:
            failure = Failure(
                kind=type(error).__name__, message=str(error), retry_after_s=getattr(error, "retry_after_s", None)
            )
            raise
        finally:
            self._append(request, heard, failure)

    def _append(self, request: Request, heard: list[Part], failure: Failure | None) -> None:
        line = RecordedCall(
            prompt=request.prompt.label(),
            role=request.role,
            model=self.name,
            hash=fingerprint(request),
            messages=list(request.messages),
            tools=list(request.tools),
            parts=heard,
            error=failure,
        )
        try:
            make_private_folder(self._path.parent)
            with append_private(self._path) as file:
                file.write(line.model_dump_json(exclude_defaults=True) + "\n")
        except OSError as error:
            raise StorageError(f"the recording {self._path} cannot be written: {error}") from None


PLAYED = "playback:"


def costs_nothing(name: str) -> bool:
    """Tell whether who answers by this name costs nothing, whatever it says: rules, and recordings."""
    return name == "rules" or name.startswith(PLAYED)


class Playback:
    """Answers from a recording.

    Each line is played once. `strict`: a line answers only the very request that it was recorded for. Otherwise that
    line comes first, and else, of those of the same prompt, the one that shares most lines with it (the next one where
    no messages were kept), so that a run may differ a little.
    """

    def __init__(self, path: Path | str, *, strict: bool = False) -> None:
        self.name = f"{PLAYED}{path}"
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
            found = max(left, key=lambda line: len(asked & _lines_of(line.messages)))  # the first of equals
        if found is None:
            raise ModelRefused(self._divergence(request, left))
        self._lines.remove(found)
        return found

    def _divergence(self, request: Request, left: list[RecordedCall]) -> str:
        label = request.prompt.label()
        start = f"the recording {self._path} has no answer to the prompt {label!r} after {self._played} calls"
        if not left:
            return f"{start}: no line of it is left. Record the run again"
        asked, recorded = request.messages, left[0].messages
        for number, (now, then) in enumerate(zip(asked, recorded, strict=False), 1):
            if now != then:
                return f"{start}: its message {number} is {now.text[:120]!r}, recorded was {then.text[:120]!r}"
        return f"{start}: it has {len(asked)} messages and other tools perhaps, recorded were {len(recorded)}"


def _lines_of(messages: Iterable[Message]) -> set[str]:
    return {line for message in messages for line in message.text.splitlines()}


def fingerprint(request: Request, *more: str) -> str:
    """Return a hash of what a model is asked: messages, tools, options (and whatever else tells answers apart)."""
    read: list[Any] = [
        [asdict(message) for message in request.messages],
        [asdict(tool) for tool in request.tools],
        more,
        *([request.options] if request.options else []),
        *([request.continuation] if request.continuation else []),
    ]
    return hashlib.sha256(json.dumps(read, sort_keys=True).encode()).hexdigest()


def _read(path: Path) -> list[RecordedCall]:
    try:
        text = read_text(path, LARGEST)
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
