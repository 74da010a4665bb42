"""A console that leaves a broken pipe to the edge."""

from __future__ import annotations

from rich.console import Console


class PlainConsole(Console):
    """Rich's own would end the process on the spot where its reader went away."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError
