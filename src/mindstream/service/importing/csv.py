"""Read a table: CSV with a header line, separated by commas, semicolons, tabs or `|`, also as Excel writes it.

The columns have the names of the fields of JSON Lines (`jsonl.py`), such as `text` or `role` and `content`. A row with
a `question` and an `answer` is two messages.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator

from mindstream.encodings import read_csv
from mindstream.errors import InputError
from mindstream.service.importing.items import Item, Tally, shown
from mindstream.service.importing.jsonl import read_values
from mindstream.service.importing.reading import MAX_OBJECT, Source


def read(source: Source, tally: Tally) -> Iterator[Item]:
    """Yield the items of each row, in order.

    Raises:
        InputError: the source is no CSV table, or has no row below the header line.
    """
    text = source.text()
    before = csv.field_size_limit(MAX_OBJECT)
    try:
        rows = read_csv(text)
    except csv.Error as error:
        raise InputError(f"{source.name}: this is no CSV table ({error})") from None
    finally:
        csv.field_size_limit(before)
    for row in rows:
        if cells := row.pop(None, None):  # type: ignore[call-overload]
            tally.lose("cells", cells, "the header has no column for it")
    if not rows:
        raise InputError(f"{source.name}: expected a header line and rows below it, found {shown(text)}")
    yield from read_values(enumerate(rows, 2), tally)
