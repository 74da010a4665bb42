"""Let a user say it in other words."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

from mindstream.errors import SettingsError
from mindstream.models.model import Model, Part, Request


class Reworded:
    """Uses the words in `<folder>/<prompt label>.md` where there is such a file, read anew at each request."""

    def __init__(self, model: Model, folder: Path | str) -> None:
        self.name = model.name
        self._model = model
        self._folder = Path(folder)
        if not self._folder.is_dir():
            raise SettingsError(f"the folder of your own words, {self._folder}, is not there")

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        path = self._folder / f"{request.prompt.label()}.md"
        if request.words is None and path.is_file():
            request = replace(request, words=_read(path))
        async with aclosing(self._model.reply(request)) as parts:
            async for part in parts:
                yield part


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"your own words {path} cannot be read: {error}") from None
