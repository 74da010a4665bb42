"""A town's recording as one HTML file that plays it: no network, no library, no key."""

from __future__ import annotations

from pathlib import Path

from mindstream.memory.store.store import Store
from mindstream.studio.saved_page import build_saved_page, write_saved_page
from mindstream.town.replay.ground import ground_of
from mindstream.town.replay.recording import record
from mindstream.town.setting import Setting

STYLES = ("tokens.css", "base.css", "town/town.css", "town/saved.css")


async def write_replay(
    store: Store, setting: Setting, out: Path, *, since: int | None = None, until: int | None = None
) -> Path:
    """Write what a town's log holds as an HTML file that plays it, and return the file; an older replay is replaced.

    The same log gives the same bytes.

    Args:
        since, until: the steps between which it plays; None: all. What residents remember from before is in it too.

    Raises:
        InputError: the steps are none of its own, or the file cannot be written or is another one.
        StorageError: the log cannot be read.
    """
    data = await record(store, setting, since, until) | ground_of(setting)
    page = build_saved_page(f"{setting.name}, replayed", "town/saved.js", STYLES, data)
    write_saved_page(out, page)
    return out
