"""A question before what cannot be undone."""

from __future__ import annotations

import sys

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


def choose(question: str) -> bool:
    """Ask for yes or no until one of them is typed: neither is taken for granted.

    Raises:
        InputError: nobody is there to be asked.
    """
    _somebody_there()
    return typer.confirm(clean(question), default=None, err=True)


def confirm_name(what: str, name: str) -> None:
    """Ask for a name to be typed once more.

    Raises:
        InputError: another was typed, or nobody is there to be asked.
    """
    _somebody_there()
    typed = typer.prompt(clean(f"{what}\nType {name} to go on"), err=True, default="", show_default=False)
    if typed.strip() != name:
        raise InputError(f"that is not {name!r}; nothing was changed")


def ask(question: str) -> str:
    """Ask for words; `is_answerable` says whether anybody is there."""
    answer: str = typer.prompt(clean(question), err=True)
    return answer.strip()


def is_answerable() -> bool:
    """Tell whether somebody is there to be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def _somebody_there() -> None:
    if not is_answerable():
        raise InputError("this cannot be undone, and nobody is there to be asked: say --yes")
