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
    """Stores complete answers in files, by model, messages and tools; a cached answer has a usage of zero.

    Any number of processes may share the folder. All answers are deleted when a process that uses the folder erases
    data of a user, or notices that another process did, because the files do not record the user. If no process uses
    the folder at that time, the answers stay.
    """

    def __init__(self, model: Model, folder: Path | str) -> None:
        self.name, self._model, self._folder = model.name, model, Path(folder)
        caches.watch(self)

    def forget(self, _: str) -> None:
        """Delete all answers."""
        for path in self._folder.glob(f"{HEX * 2}/{HEX * 64}.*"):
            with contextlib.suppress(OSError):  # another process may delete the file at the same time
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
        draft = path.with_suffix(f".{token()}.tmp")  # renamed at the end, so that readers never see a partial file
        try:
            make_private_folder(path.parent)
            write_private(draft, ANSWER.dump_json(heard))
            os.replace(draft, path)  # noqa: PTH105
        except OSError as error:
            raise StorageError(f"the cache of answers in {self._folder} cannot be written: {error}") from None
