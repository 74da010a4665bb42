"""JSON Lines on standard output."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from mindstream.cli.clean import escape_json


def print_json(row: Mapping[str, Any]) -> None:
    """Write a line and hand it on at once; in ASCII where the output cannot hold all characters."""
    unicode = sys.stdout.encoding.lower().startswith("utf")
    sys.stdout.write(escape_json(json.dumps(row, ensure_ascii=not unicode)) + "\n")
    sys.stdout.flush()
