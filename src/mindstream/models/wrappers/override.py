"""Prompts in the user's own words: a folder of templates that replace the shipped ones."""

from __future__ import annotations

from pathlib import Path

from mindstream.errors import InputError, SettingsError
from mindstream.models.model import Layer, Layered, Model, Request
from mindstream.models.prompt import MAX_TEMPLATE, PARTS, templates
from mindstream.paths import read_text

MAX_BYTES = 4 * MAX_TEMPLATE
"""Maximum size of a template's file, in bytes."""


class PromptOverride(Layered):
    """Uses the template in `<folder>/<prompt label>.md` if the file exists; it is read and checked for each request.

    Raises:
        SettingsError: the folder is missing, or a text in it is not a valid template.
    """

    def __init__(self, inner: Model, folder: Path | str) -> None:
        super().__init__(inner)
        self._folder = Path(folder)
        if not self._folder.is_dir():
            raise SettingsError(f"the folder of your own prompt texts, {self._folder}, is not an existing folder")
        for path in sorted(self._folder.glob("*.md")):
            read_words(path)

    def layer(self, request: Request) -> Layer:
        path = self._folder / f"{request.prompt.label()}.md"
        if request.words is None and path.is_file():
            request = request.but(words=read_words(path))
            try:
                request.messages  # noqa: B018 (renders and caches the text here, so that an error names the file)
            except SettingsError as error:
                raise SettingsError(f"{path}: {error}") from None
        return Layer(self.inner, request)


def read_words(path: Path) -> str:
    """Return the text of a prompt. A text without parts (`# system`, `# user`) is not checked.

    Raises:
        SettingsError: the file cannot be read, or a part is not a valid template. The message names the file, and the
            line if known.
    """
    try:
        words = read_text(path, MAX_BYTES).replace("\r\n", "\n")
    except InputError as error:
        raise SettingsError(f"your own prompt text {path} {error}") from None
    if PARTS.search(words):  # otherwise the file may be a note of the user, not a template
        try:
            templates(words, path.stem)
        except SettingsError as error:
            raise SettingsError(f"{path}: {error}") from None
    return words
