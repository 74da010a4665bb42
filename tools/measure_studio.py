"""Measure the studio as a browser meets it: what each page transfers, and when it can be used.

    PYTHONPATH=src python tools/measure_studio.py --times 10

It starts a server with the recordings, and opens each page in a fresh browser without a cache, so many times in turn. A
page can be used when what it is for stands on the screen: the first line of a talk, the map of the town.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import threading
from contextlib import contextmanager
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PAGES = {
    "first page": ("", "main h2, main li, main p"),
    "talk": ("talk?from=recorded&user=ann", ".lines .line .words"),
    "memory": ("memory?from=recorded&user=ann", "main ol li, main .list li"),
    "town": ("town?from=recorded&town=hamlet", "canvas"),
    "plan": ("plan?from=recorded&user=dora", "main .item, main .list li"),
    "pools": ("pools?from=recorded&user=olga&pool=tongues", "main .list li, main table td"),
    "life": ("life?from=recorded&user=museum", "main .facts dd"),
    "traces": ("traces?from=recorded&user=museum", "main table td, main .list li"),
}
