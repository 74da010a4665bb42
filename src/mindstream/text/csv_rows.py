"""Read CSV files as spreadsheets write them: with commas, semicolons, tabs or bars between the columns."""

from __future__ import annotations

import csv
import io

DELIMITERS = ",;\t|"


def read_csv(text: str) -> list[dict[str, str]]:
    """Return the rows, keyed by the names in the first line. The delimiter is the one that occurs most in that line.

    Raises:
        csv.Error: it is not CSV.
    """
    head, _, rest = text.lstrip("\ufeff\r\n").partition("\n")
    named = head.strip().lower().removeprefix("sep=")
    if head.lower().startswith("sep=") and named in DELIMITERS:  # Excel's own line
        delimiter, text = named or "\t", rest
    else:
        delimiter = max(DELIMITERS, key=head.count)
    rows = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
    rows.fieldnames = [name.strip() for name in rows.fieldnames or ()]
    return [row for row in rows if any(row.values())]
