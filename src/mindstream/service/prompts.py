"""List the prompt templates (mindstream's own, and the user's files that replace them), and measure filled prompts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel

import mindstream
from mindstream.coach.packs.pack import Pack, Phase
from mindstream.errors import InputError, prefixed
from mindstream.models.model import Request
from mindstream.models.prompt import Prompt, snake_case
from mindstream.models.wrappers.override import MAX_BYTES, read_words
from mindstream.models.wrappers.recovery import room, shorten
from mindstream.paths import read_text

ROOT = Path(mindstream.__file__).parent
"""The folder of the package. Templates of other distributions, such as mindstream-town, are not in it."""


@dataclass(frozen=True, slots=True)
class PromptFile:
    """The template of a prompt.

    Attributes:
        role: the role of the model that it is sent to.
        asks: its purpose, in one line.
        shipped: the file that comes with mindstream.
        own: the user's own file that replaces it; None: there is none.
    """

    name: str
    role: str
    asks: str
    shipped: Path
    own: Path | None

    @property
    def changed(self) -> bool:
        """Whether the user's own file exists and differs from the shipped one."""
        return self.own is not None and self.own.read_bytes() != self.shipped.read_bytes()


def prompts(folder: Path | None = None) -> list[PromptFile]:
    """Return the templates of all prompts of this package, sorted by name.

    Args:
        folder: the folder with the user's own templates; None: there is none.

    Raises:
        InputError: there is no such folder.
        SettingsError: a file in it cannot be read, or is not a valid template.
    """
    if folder is not None and not folder.is_dir():
        raise InputError(f"the folder of your own prompt templates, {folder}, does not exist or is not a folder")
    found = []
    for prompt, path in _shipped():
        own = folder / path.name if folder and (folder / path.name).exists() else None
        if own:
            read_words(own)
        asks = (prompt.__doc__ or "").strip().splitlines()[0].rstrip(".")
        found.append(PromptFile(prompt.label(), prompt.role, asks, path, own))
    return sorted(found, key=lambda words: words.name)


def unread(folder: Path) -> list[Path]:
    """Return the files in a folder of templates that belong to no prompt of this package.

    Their names are misspelled, or they belong to prompts of another distribution, such as mindstream-town.
    """
    known = {path.name for _, path in _shipped()}
    return sorted(path for path in folder.glob("*.md") if path.name not in known)


def copy(folder: Path) -> tuple[list[Path], list[Path]]:
    """Copy the shipped templates into a folder, which is created if necessary; existing files are not overwritten.

    Returns:
        The files that were written, and those that already existed.

    Raises:
        InputError: the folder cannot be written.
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
        raise InputError(f"{folder} cannot be written: {error.strerror}") from None
    return written, kept


def classes() -> list[type[Prompt[Any]]]:
    """Return the classes of all prompts, sorted by name."""
    return sorted((prompt for prompt, _ in _shipped()), key=lambda prompt: prompt.label())


def _shipped() -> Iterator[tuple[type[Prompt[Any]], Path]]:
    """Yield each prompt class with its template: a Markdown file in the folder of the module that defines the class."""
    for folder in sorted({path.parent for path in ROOT.rglob("*.md")}):
        for module in sorted(folder.glob("*.py")):
            name = ".".join(module.with_suffix("").relative_to(ROOT.parent).parts).removesuffix(".__init__")
            lines = module.read_text("utf-8").splitlines()
            for class_name in [line.split("(")[0].split()[1] for line in lines if line.startswith("class ")]:
                if (path := folder / f"{snake_case(class_name)}.md").is_file():
                    value = getattr(import_module(name), class_name)
                    if issubclass(value, Prompt):
                        yield value, path


WORDS = "I wake at three in the night and then I lie there for a long while and think about work. "
ITEMS: Mapping[str, tuple[int, int]] = {
    "history": (12, 60),
    "conversation": (12, 40),
    "notes": (8, 20),
    "recalled": (3, 6),
    "known": (10, 40),
    "memories": (20, 100),
    "fragments": (7, 100),
    "utterances": (1, 3),
    "steps": (2, 12),
    "resources": (1, 3),
}
"""For measuring prompts. By name of a list: its number of items in an ordinary conversation, and its maximum number of
items. Lists with other names have 2 and 6 items."""
CHARACTERS: Mapping[str, tuple[int, int]] = {
    "utterance": (120, 2_000),
    "utterances": (120, 2_000),
    "reply": (300, 1_200),
    "memories": (120, 500),
    "fragments": (120, 500),
    "do": (120, 400),
    "language": (2, 2),
    "link": (40, 40),
}
"""For measuring prompts. By name of a text: its number of characters in an ordinary conversation, and its maximum
number. Texts with other names have 80 and 200 characters."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """The size of a prompt in estimated tokens, measured with example values.

    Attributes:
        name: the name of the prompt.
        ordinary: size of the prompt with fields as long as in an ordinary conversation.
        full: size of the prompt with all fields at their maximum length.
        least: size of the prompt in an ordinary conversation, without the parts that may be left out to save tokens.
        room: the number of tokens that the context window leaves for the prompt, after the reserve for the reply.
    """

    name: str
    ordinary: int
    full: int
    least: int
    room: int


def sizes(pack: Pack, window: int, words: Path | None = None) -> Iterator[Sizes]:
    """Yield the sizes of every prompt, in estimated tokens.

    Args:
        window: tokens of the context window.
        words: the folder with the user's own templates; None: there is none.

    Raises:
        InputError: a template cannot be read; the message names the file.
    """
    for kind in classes():
        path = words / f"{kind.label()}.md" if words else None
        with prefixed(path):
            own = read_text(path, MAX_BYTES) if path and path.is_file() else None
        ordinary, full = (Request(_example(kind, pack, at), words=own) for at in (0, 1))
        least = shorten(ordinary, 0).tokens
        yield Sizes(kind.label(), ordinary.tokens, full.tokens, least, room(ordinary, window)[0])


def _example(kind: type[Prompt[Any]], pack: Pack, at: int) -> Prompt[Any]:
    """Return a prompt with example values. `at`: 0: values as long as in an ordinary conversation; 1: values of maximum
    length."""
    values = {name: _value(name, field.annotation, pack, at) for name, field in kind.model_fields.items()}
    return kind.model_construct(**values)


def _value(name: str, kind: Any, pack: Pack, at: int) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Pack:
        return pack
    if kind is Phase:
        return max(pack.phases, key=lambda phase: len(phase.instructions))
    if kind is str:
        length = CHARACTERS.get(name, (80, 200))[at]
        return (WORDS * (length // len(WORDS) + 1))[:length]
    if kind in (bool, int, float):
        return kind(at)
    if kind is datetime:
        return datetime(2024, 5, 1)
    if origin in (tuple, list):
        return origin(_value(name, arguments[0], pack, at) for _ in range(ITEMS.get(name, (2, 6))[at]))
    if origin is dict:
        return {field: _value(field, str, pack, at) for field in list(pack.fields)[: None if at else 4]}
    if origin is Literal:
        return arguments[0]
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return kind.model_construct(
            **{inner: _value(inner, field.annotation, pack, at) for inner, field in kind.model_fields.items()}
        )
    some = [argument for argument in arguments if argument is not NoneType]
    return _value(name, some[0], pack, at) if some else None
