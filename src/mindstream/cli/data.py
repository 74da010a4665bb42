"""`mindstream data`: what a data folder holds, carried into a database and back."""

from __future__ import annotations

from typing import Annotated

from mindstream.cli.shell.flags import AsJson, command, group, word
from mindstream.cli.shell.output import print_json, print_table, say
from mindstream.memory.opening import copy_data

app = group("Carry all data between a folder and a PostgreSQL database.")


@command(app, "", "mindstream data copy ./data postgresql://mind@localhost:5432/mind")
def copy(
    source: Annotated[str, word("FROM", "A data folder, or postgresql://user@host:port/db.")],
    target: Annotated[str, word("TO", "The other of the two, with nothing in it yet.")],
    json: AsJson = False,
) -> None:
    """Copy all that a data folder's file holds into a PostgreSQL database, or back.

    Of all users and tenants, with the numbers of its rows, counted and summed on both sides. It is written whole or
    not at all. The source stays as it is; what lies beside a folder's file does not come along.
    """
    copied = copy_data(source, target)
    if json:
        print_json(*(each._asdict() for each in copied))
        return
    print_table(("table", "rows", "sum"), [(each.table, str(each.rows), f"{each.sum:x}") for each in copied])
    say("\ncopied; both sides hold the same")
