"""A question before what cannot be undone."""

from __future__ import annotations

import sys
from typing import Literal, TypeAlias

import typer

from mindstream.cli.shell.output import clean
from mindstream.errors import InputError


def confirm(question: str) -> bool:
    """Ask for yes or no; no is the default.

    Raises:
        InputError: nobody is there to be asked.
    """
    _somebody_there()
    return typer.confirm(clean(question), err=True)


Answer: TypeAlias = Literal["y", "n", "p"]
PART = "p: forget only the notes, thoughts and beliefs that mention it; the messages stay as they are"


def choose(question: str, *, part: bool = False) -> Answer:
    """Ask for yes or no, or for a part of it, until one of them is typed: there is no default.

    Raises:
        InputError: nobody is there to be asked.
    """
    _somebody_there()
    while True:
        hint = f"{question}\n{PART}\n[y/n/p]" if part else f"{question} [y/n]"
        answer = read_answer(typer.prompt(clean(hint), err=True, default="", show_default=False), part=part)
        if answer:
            return answer


def read_answer(typed: str, *, part: bool) -> Answer | None:
    """Return what was chosen; None for anything else."""
    answers: dict[str, Answer] = {"y": "y", "yes": "y", "n": "n", "no": "n", "p": "p"}
    answer = answers.get(typed.strip().lower())
    return None if answer == "p" and not part else answer


def confirm_name(what: str, name: str) -> None:
    """Ask for a name to be typed once more.

    Raises:
        InputError: another was typed, or nobody is there to be asked.
    """
    _somebody_there()
    typed = typer.prompt(clean(f"{what}\nType {name} to go on"), err=True, default="", show_default=False)
    if typed.strip() != name:
        raise InputError(f"that is not {name!r}; nothing was changed")


def ask(question: str, default: str | None = None) -> str:
    """Ask for words; `is_answerable` says whether anybody is there."""
    answer: str = typer.prompt(clean(question), err=True, default=default, show_default=False)
    return answer.strip()


def is_answerable() -> bool:
    """Tell whether somebody is there to be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def _somebody_there() -> None:
    if not is_answerable():
        raise InputError("this cannot be undone, and nobody is there to be asked: say --yes")
