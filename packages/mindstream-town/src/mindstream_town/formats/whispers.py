"""Read first memories of residents from a CSV file of Park 2023 ("Name,Whisper;Whisper…")."""

from __future__ import annotations

import csv
from pathlib import Path

from mindstream.errors import InputError
from mindstream_town.formats.files import load_text

MOST_BYTES = 16_000_000


def read_whispers(path: Path) -> dict[str, tuple[str, ...]]:
    """Return the memories for each name, in the order of the file; names may be unknown to the town.

    Raises:
        InputError: the file cannot be read, or a row is invalid.
    """
    found: dict[str, tuple[str, ...]] = {}
    try:
        rows = list(csv.reader(load_text(path, MOST_BYTES).splitlines(), strict=True))
    except csv.Error as error:
        raise InputError(f"{path}: {error}") from None
    for number, row in enumerate(rows, start=1):
        if number == 1 and row[:1] == ["Name"]:
            continue
        if len(row) < 2:
            raise InputError(f"{path}: row {number}: expected a name and memories (two cells), found {len(row)} cells")
        whispers = tuple(text for part in ",".join(row[1:]).split(";") if (text := part.strip()))
        found[row[0].strip()] = found.get(row[0].strip(), ()) + whispers
    return found
