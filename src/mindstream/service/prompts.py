"""The prompts: what is asked of models, in which words, and whose words they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import mindstream
from mindstream.errors import InputError
from mindstream.models.prompt import Prompt
from mindstream.models.wrappers.reworded import read_words

ROOT = Path(mindstream.__file__).parent


@dataclass(frozen=True, slots=True)
class Words:
    """A prompt's words.

    Attributes:
        role: whose model is asked.
        asks: what for, in a line.
        shipped: the file that comes with mindstream.
        own: the file of one's own that takes its place, or None.
    """

    name: str
    role: str
    asks: str
    shipped: Path
    own: Path | None

    @property
    def changed(self) -> bool:
        """One's own words are other words."""
        return self.own is not None and self.own.read_bytes() != self.shipped.read_bytes()


def prompts(folder: Path | None = None) -> list[Words]:
    """Return all prompts by name; `folder`: one's own words.

    Raises:
        InputError: the folder is not there.
        SettingsError: words in it cannot be read, or are no template.
    """
    if folder is not None and not folder.is_dir():
        raise InputError(f"the folder of your own words, {folder}, is not there")
    found = []
    for prompt, path in _shipped():
        own = folder / path.name if folder and (folder / path.name).exists() else None
        if own:
            read_words(own)
        asks = (prompt.__doc__ or "").strip().splitlines()[0].rstrip(".")
        found.append(Words(prompt.label(), prompt.role, asks, path, own))
    return sorted(found, key=lambda words: words.name)


def unread(folder: Path) -> list[Path]:
    """Return the files of a folder of words that no prompt has: mostly a slip of the pen."""
    known = {path.name for _, path in _shipped()}
    return sorted(path for path in folder.glob("*.md") if path.name not in known)


def copy(folder: Path) -> tuple[list[Path], list[Path]]:
    """Write the shipped words into a folder (made if need be); what is there already is never written over.

    Return which were written, and which were there.

    Raises:
        InputError: it cannot be written to.
    """
    written, kept = list[Path](), list[Path]()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for words in prompts():
            path = folder / words.shipped.name
            try:
                with path.open("xb") as file:
                    file.write(words.shipped.read_bytes())
                written.append(path)
            except FileExistsError:
                kept.append(path)
    except OSError as error:
        raise InputError(f"{folder} cannot hold your own words: {error.strerror}") from None
    return written, kept


def classes() -> list[type[Prompt[Any]]]:
    """Return all prompts, by name."""
    return sorted((prompt for prompt, _ in _shipped()), key=lambda prompt: prompt.label())


def _shipped() -> Iterator[tuple[type[Prompt[Any]], Path]]:
    """Find each Markdown file with a module beside it that has a prompt of that name."""
    for path in sorted(ROOT.rglob("*.md")):
        if path.with_suffix(".py").is_file():
            parts = path.with_suffix("").relative_to(ROOT.parent).parts
            for value in vars(import_module(".".join(parts))).values():
                if isinstance(value, type) and issubclass(value, Prompt) and value.label() == path.stem:
                    yield value, path
