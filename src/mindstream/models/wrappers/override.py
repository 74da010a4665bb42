"""Let a user say it in other words."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

from mindstream.errors import InputError, SettingsError
from mindstream.models.model import Model, Part, Request
from mindstream.models.template import MOST_WORDS, PARTS, templates
from mindstream.paths import read_text

LARGEST = 4 * MOST_WORDS
"""In bytes: what so many characters can take."""


class PromptOverride:
    """Uses the words in `<folder>/<prompt label>.md` where there is such a file, read anew at each request.

    Raises:
        SettingsError: the folder is not there, or words in it are no template; each request checks its own again.
    """

    def __init__(self, model: Model, folder: Path | str) -> None:
        self.name = model.name
        self._model = model
        self._folder = Path(folder)
        if not self._folder.is_dir():
            raise SettingsError(f"the folder of your own words, {self._folder}, is not there")
        for path in sorted(self._folder.glob("*.md")):
            read_words(path)

    def reply(self, request: Request) -> AsyncGenerator[Part]:
        path = self._folder / f"{request.prompt.label()}.md"
        if request.words is None and path.is_file():
            request = _reworded(request, path)
        return self._model.reply(request)


def read_words(path: Path) -> str:
    """Return the words in a file.

    Raises:
        SettingsError: they cannot be read, or are no template; with the file, and the line where there is one.
    """
    try:
        words = read_text(path, LARGEST).replace("\r\n", "\n")
    except InputError as error:
        raise SettingsError(f"your own words {path}: {error}") from None
    if PARTS.search(words):  # else it may be a note of the user's, and no prompt's
        try:
            templates(words, path.stem)
        except SettingsError as error:
            raise SettingsError(f"{path}: {error}") from None
    return words


def _reworded(request: Request, path: Path) -> Request:
    """Return the request in these words, rendered already: what is wrong with them is said with the file's name."""
    request = request.but(words=read_words(path))
    try:
        request.messages  # noqa: B018 (kept with the request)
    except SettingsError as error:
        raise SettingsError(f"{path}: {error}") from None
    return request
