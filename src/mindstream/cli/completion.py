"""`mindstream completion`: print the script that completes commands and flags in a shell."""

from __future__ import annotations

from typing import Annotated, Literal

import typer
from typer.completion import get_completion_script  # type: ignore[attr-defined]

from mindstream.cli.shell.flags import PLAIN, command, word

VARIABLE = "_MINDSTREAM_COMPLETE"
"""Environment variable that the completion script sets to ask for completions (see `cli.edge`)."""
app = typer.Typer(**PLAIN)


@command(
    app,
    "",
    "mindstream completion bash >> ~/.bashrc",
    "mindstream completion zsh >> ~/.zshrc",
    "mindstream completion fish > ~/.config/fish/completions/mindstream.fish",
)
def completion(shell: Annotated[Literal["bash", "zsh", "fish"], word("SHELL", "bash, zsh or fish.")]) -> None:
    """Print the script that completes commands and flags in a shell."""
    print(get_completion_script(prog_name="mindstream", complete_var=VARIABLE, shell=shell))
