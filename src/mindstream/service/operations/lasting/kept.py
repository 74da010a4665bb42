"""Results of long operations on disk, so that a restart of the server loses none: a small file each, kept for a day.

A file lies in a folder of its user's, beside the database: whoever forgets or erases deletes it (see log/erasure).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, ValidationError

from mindstream.chance import token
from mindstream.clock import DAY_S, Moment
from mindstream.errors import InputError
from mindstream.log.folder import results
from mindstream.log.names import StreamKey
from mindstream.paths import read_text
from mindstream.private_files import make_private_folder, write_private
from mindstream.service.operations.lasting.shape import OperationShape

KEPT_S = DAY_S
MOST = 1_000
"""So many are kept of a tenant."""
LONGEST = 1_000_000
"""Bytes of a file; of a longer result only that it was done."""
TOO_LONG = "it is done; what came of it is too long to be kept over a restart of the server"


class KeptOperation(BaseModel):
    """An operation as a file holds it, and whose it is."""

    wall: str
    shape: OperationShape


class KeptOperations:
    """The files of a data folder; each is written whole, and read when the server begins."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, wall: str, stream: StreamKey, shape: OperationShape) -> None:
        """Write down how an operation stands. Where the disk takes nothing it is known until the server ends."""
        text = KeptOperation(wall=wall, shape=shape).model_dump_json()
        if len(text.encode()) > LONGEST:
            less = shape.model_copy(update={"result": None, "progress": [], "waits_for": [], "problem": TOO_LONG})
            text = KeptOperation(wall=wall, shape=less).model_dump_json()
        place = self._place(stream, shape.id)
        part = place.with_name(f".{token()}.part")
        with contextlib.suppress(OSError):
            make_private_folder(place.parent)
            write_private(part, text.encode())
            part.replace(place)

    def is_there(self, stream: StreamKey, id_: str) -> bool:
        """Tell whether it is kept still: whoever forgot or erased has deleted it."""
        return self._place(stream, id_).exists()

    def drop(self, stream: StreamKey, id_: str) -> None:
        """Let go of one."""
        with contextlib.suppress(OSError):
            self._place(stream, id_).unlink(missing_ok=True)

    def read(self, now: Moment) -> list[KeptOperation]:
        """Return all, the oldest first; those of more than a day ago are deleted, and whatever else is there."""
        found = sorted(self._sound(now), key=lambda each: each.shape.began)
        return found[-10 * MOST :]

    def _sound(self, now: Moment) -> Iterator[KeptOperation]:
        for place in (self._folder / "operations").glob("*/*"):
            try:
                kept = KeptOperation.model_validate_json(read_text(place, LONGEST + 10_000))
                is_old = now - (kept.shape.ended or kept.shape.began) > KEPT_S
            except (ValidationError, InputError):
                is_old = True
            if not is_old:
                yield kept
                continue
            with contextlib.suppress(OSError):
                place.unlink()

    def _place(self, stream: StreamKey, id_: str) -> Path:
        return results(self._folder, stream) / f"{id_}.json"
