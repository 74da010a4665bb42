"""Pages saved to files, and opened from there."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from mindstream_studio.recorded import Reading, Saved, build_studio_page, open_reading, write_saved_page
from studio import Studio, run_apart

from mindstream.settings import Settings


def save(settings: Settings, out: Path, make: Callable[[Reading], Awaitable[Saved]]) -> Path:
    """Save a page of the studio to a file, while another process holds the data folder."""

    async def run() -> None:
        async with open_reading(settings) as reading:
            write_saved_page(out, build_studio_page(reading, await make(reading)))

    run_apart(run())
    return out


def held_in(file: Path) -> dict[str, Any]:
    """Return the data packed in a file."""
    packed = file.read_text("utf-8").partition('id="recording">')[2].partition("</script>")[0]
    found: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode("".join(packed.split()))))
    return found


def look_at(seen: Studio, file: Path) -> list[str]:
    """Open a file in a page, and return the page's later requests."""
    asked: list[str] = []
    seen.page.on("request", lambda request: asked.append(request.url))
    seen.page.goto(file.as_uri())
    seen.page.get_by_role("heading", level=1).wait_for()
    return asked
