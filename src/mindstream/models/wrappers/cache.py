"""Answer a repeated request from a file."""

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
    """Stores complete answers in files, by model, messages and tools; an answer from here has a usage of zero.

    Any number of processes may share the folder. When data of a user is erased in this process, or elsewhere and this
    process notices, all answers are deleted, since nothing records whose words they hold. If no process uses the folder
    then, they stay.
    """

    def __init__(self, model: Model, folder: Path | str) -> None:
        self.name, self._model, self._folder = model.name, model, Path(folder)
        caches.watch(self)

    def forget(self, _: str) -> None:
        """Delete all answers."""
        for path in self._folder.glob(f"{HEX * 2}/{HEX * 64}.*"):
            with contextlib.suppress(OSError):  # another process deletes it, too
                path.unlink()

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        key = fingerprint(request, self.name)
        path = self._folder / key[:2] / f"{key}.json"
        known: list[Part] | None = None
        with contextlib.suppress(OSError, ValueError):
            known = ANSWER.validate_json(path.read_bytes())
        if known is not None:
            for part in known:
                yield Usage(0, 0, 0.0) if isinstance(part, Usage) else part
            return
        heard: list[Part] = []
        async with aclosing(self._model.reply(request)) as parts:
            async for part in parts:
                heard.append(part)
                yield part
        draft = path.with_suffix(f".{token()}.tmp")  # renamed at the end: a reader sees all of it or nothing
        try:
            make_private_folder(path.parent)
            write_private(draft, ANSWER.dump_json(heard))
            os.replace(draft, path)  # noqa: PTH105
        except OSError as error:
            raise StorageError(f"the answers' cache {self._folder} cannot be written: {error}") from None
