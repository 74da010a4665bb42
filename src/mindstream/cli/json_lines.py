"""JSON Lines on standard output."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from mindstream.cli.clean import escape_json, say


def print_json(*rows: Mapping[str, Any]) -> None:
    """Write lines and hand each on at once; in ASCII where the output cannot hold all characters."""
    unicode = sys.stdout.encoding.lower().startswith("utf")
    for row in rows:
        sys.stdout.write(escape_json(json.dumps(row, ensure_ascii=not unicode)) + "\n")
        sys.stdout.flush()


def tell(as_json: bool, row: Mapping[str, Any], *lines: str) -> None:
    """Write a row for a program, or lines for people."""
    if as_json:
        print_json(row)
    else:
        say_lines(lines)


def say_lines(lines: Iterable[str]) -> None:
    """Print lines, made safe; none of them where there are none."""
    for line in lines:
        say(line)
