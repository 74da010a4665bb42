"""A table on standard output, as wide as it needs to be."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from mindstream.cli.clean import clean


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, words: int = 1) -> None:
    """Print it; the first columns hold `words`, the others numbers. A row of one cell is a title."""
    lines = [[clean(cell) for cell in row] for row in (columns, *rows)]
    widths = [max(cell_len(line[at]) for line in lines if len(line) > 1) for at in range(len(columns))]
    for line in lines:
        cells = [
            cell + pad if at < words else pad + cell
            for at, cell in enumerate(line)
            for pad in [" " * (widths[at] - cell_len(cell))]
        ]
        print("  ".join(cells).rstrip())
