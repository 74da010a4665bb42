"""What commands that evaluate share: leave to ask models, and work of which all is kept that was done."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import TypeVar

from mindstream.cli.shell import asking
from mindstream.cli.shell.output import complain, say
from mindstream.cli.shell.progress import progress
from mindstream.cli.shell.stopping import run_until_stopped
from mindstream.errors import InputError, ModelError
from mindstream.models.asked_once import Told
from mindstream.settings import Settings

R = TypeVar("R")


def has_leave(settings: Settings, price: str) -> bool:
    """Ask whether models may be asked, at this price, in words.

    Raises:
        InputError: nobody is there to be asked.
    """
    if not asking.is_answerable():
        raise InputError("models are asked, and nobody is there to be asked whether they may be: say --yes")
    most = "" if settings.budget_usd is None else f", never more than {settings.budget_usd:g}"
    say(f"{price}{most}", sys.stderr)
    return asking.confirm("Ask?")


def run_kept(doing: str, work: Callable[[Told], Awaitable[R]], kept: str, show: Callable[[R], None]) -> int:
    """Do work that tells how far it is, and show what came of it; return the exit code.

    `kept` says where what was done is kept, "": nowhere; it is said where Ctrl-C or a model ends the work.
    """
    found: list[R] = []

    async def run() -> int:
        with progress(doing) as told:
            found.append(await work(told))
        return 0

    goes_on = f"; {kept}; the same command goes on" if kept else ""
    try:
        code = run_until_stopped(run(), lambda: f"stopped{goes_on}")
    except ModelError as error:
        complain(f"{error}{goes_on}")
        return 1
    for each in found:
        show(each)
    return code
