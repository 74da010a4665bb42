"""Answer again what was answered before, from disk."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

from pydantic import TypeAdapter

from mindstream import caches
from mindstream.chance import token
from mindstream.errors import StorageError
from mindstream.models.model import Model, Part, Request, Usage
from mindstream.models.recording import fingerprint
from mindstream.private_files import make_private_folder, write_private

HEX = "[0-9a-f]"
ANSWER = TypeAdapter(list[Part])


class Cache:
    """Keeps whole answers in files, by model, messages and tools; an answer from here costs nothing and says so.

    Any number of processes may share the folder. When something of a user is erased, by this process or so that it
    notices, all answers go: nobody can tell whose words are in them. Where no process uses the folder then, they stay.
    """

    def __init__(self, model: Model, folder: Path | str) -> None:
        self.name = model.name
        self._model = model
        self._folder = Path(folder)
        caches.watch(self)

    def forget(self, _: str) -> None:
        """Delete all answers."""
        for path in self._folder.glob(f"{HEX * 2}/{HEX * 64}.*"):
            with contextlib.suppress(OSError):  # another process is at it too
                path.unlink()

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        key = fingerprint(request, self.name)
        path = self._folder / key[:2] / f"{key}.json"
        known = _read(path)
        if known is not None:
            for part in known:
                yield part if not isinstance(part, Usage) else Usage(0, 0, 0.0)
            return
        heard: list[Part] = []
        async with aclosing(self._model.reply(request)) as parts:
            async for part in parts:
                heard.append(part)
                yield part
        _write(path, heard)


def _read(path: Path) -> list[Part] | None:
    try:
        return ANSWER.validate_json(path.read_bytes())
    except (OSError, ValueError):
        return None


def _write(path: Path, parts: list[Part]) -> None:
    """Write beside, then rename: a reader sees all of it or nothing."""
    draft = path.with_suffix(f".{token()}.tmp")
    try:
        make_private_folder(path.parent)
        write_private(draft, ANSWER.dump_json(parts))
        os.replace(draft, path)  # noqa: PTH105
    except OSError as error:
        raise StorageError(f"the answers' cache {path.parent.parent} cannot be written: {error}") from None
