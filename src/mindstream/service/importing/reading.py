"""A file of another program, read object by object: JSON, JSON Lines, or a ZIP archive with such files in it.

Never more than one object is held; an object, or a file, that is larger than any program writes is refused.
"""

from __future__ import annotations

import contextlib
import json
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Any

from mindstream.errors import InputError
from mindstream.service.importing.items import Tally, shown

LONGEST, WHOLE = 64 << 20, 8 << 30
"""So many bytes an object may have, and all of a file."""
MEMBERS = 100_000
"""So many files an archive may hold."""
HOW = {"use_float": True, "multiple_values": True, "buf_size": 1 << 20}
"""How JSON is read: of a long string all that was read before is copied with each piece, so the pieces are large."""
BOM, ZIP = b"\xef\xbb\xbf", b"PK\x03\x04"
STAYS = "what came before it is imported; mended and imported again, nothing comes twice"


@dataclass(slots=True)
class _Counted:
    """A file of which only so many bytes may be read between one object and the next."""

    file: IO[bytes]
    longest: int = LONGEST
    since: int = 0
    read_so_far: int = 0
    given: int = 0

    def read(self, size: int = -1) -> bytes:
        chunk = self.file.read(size)
        self.since += len(chunk)
        self.read_so_far += len(chunk)
        if self.since > self.longest:
            raise InputError(f"one object is over {self.longest >> 20} MB, and no program writes such; {STAYS}")
        if self.read_so_far > WHOLE:
            raise InputError(f"it goes on after {WHOLE >> 30} GB; import it by parts")
        return chunk


@dataclass(frozen=True, slots=True)
class Source:
    """A file to import, whose bytes can be read more than once.

    Attributes:
        name: as people are told of it.
    """

    name: str
    file: IO[bytes]

    def members(self, wanted: Callable[[str], bool], tally: Tally) -> Iterator[Source]:
        """Yield the files of an archive that are wanted, by their names without folders; itself where it is none."""
        self.file.seek(0)
        if self.file.read(len(ZIP)) != ZIP:
            yield self
            return
        with self._told(), zipfile.ZipFile(self.file) as archive:
            names = sorted(each.filename for each in archive.infolist() if not each.is_dir())
            if len(names) > MEMBERS:
                raise InputError(f"it holds {len(names):,} files, and at most {MEMBERS:,} are looked through")
            found = [name for name in names if wanted(name.rpartition("/")[2]) and not name.startswith("__MACOSX/")]
            if not found:
                raise InputError(f"none of the files in it is what is wanted; it holds {shown(', '.join(names))}")
            for name in sorted(set(names) - set(found)):
                tally.lose("files of the archive", name, "only the talks are read")
            for name in found:
                with archive.open(name) as member:
                    yield Source(f"{self.name}/{name}", member)

    def values(self, prefix: str, longest: int = LONGEST) -> Iterator[Any]:
        """Yield what stands at a place: "item" of a list, "results.item" of a list in an object, "" of JSON Lines."""
        import ijson

        counted = self._start(longest)
        with self._told(counted):
            for value in ijson.items(counted, prefix, **HOW):
                yield value
                counted.given, counted.since = counted.given + 1, 0

    def place(self, *lists: str) -> str:
        """Find where its objects stand: in a list, in one of these lists in an object, or one after another.

        Raises:
            InputError: it is no JSON, or there is nothing in it.
        """
        import ijson

        counted = self._start(LONGEST)
        with self._told(counted):
            for prefix, event, value in ijson.parse(counted, **HOW):
                if event == "start_array" and prefix in ("", *lists):
                    return f"{prefix}.item".lstrip(".")
                if event == "end_map" and not prefix:
                    return ""
                if not prefix and event in ("string", "number", "boolean", "null"):
                    raise InputError(f"objects are wanted, not {shown(value)}")
        raise InputError(f"there is nothing in {self.name}")

    def lines(self) -> Iterator[tuple[int, Any]]:
        """Yield what stands on each line, and its number."""
        counted = self._start(LONGEST)
        number = 0
        with self._told(counted):
            while line := counted.file.readline(LONGEST + 1):
                number += 1
                counted.read_so_far += len(line)
                if len(line) > LONGEST or counted.read_so_far > WHOLE:
                    raise InputError(f"line {number} goes on after {counted.read_so_far:,} bytes; {STAYS}")
                if line.strip():
                    try:
                        value = json.loads(line)
                    except (ValueError, RecursionError) as error:
                        raise InputError(f"line {number} is not JSON ({error}); {STAYS}") from None
                    yield number, value

    def _start(self, longest: int) -> _Counted:
        self.file.seek(0)
        start = self.file.read(len(ZIP))
        if start == ZIP:
            raise InputError(f"{self.name}: it is a ZIP archive; unpack it, and import the file in it")
        self.file.seek(len(BOM) if start.startswith(BOM) else 0)
        return _Counted(self.file, longest)

    @contextlib.contextmanager
    def _told(self, counted: _Counted | None = None) -> Iterator[None]:
        """Name the file in what goes wrong with it."""
        try:
            yield
        except InputError as error:
            told = str(error)
            raise InputError(told if told.startswith(self.name) else f"{self.name}: {told}") from None
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
            raise InputError(f"{self.name}: this archive cannot be read: {shown(str(error))}; {STAYS}") from None
        except OSError as error:
            raise InputError(f"{self.name} cannot be read: {error.strerror}") from None
        except Exception as error:
            from ijson import JSONError

            if not isinstance(error, JSONError | ValueError | OverflowError):
                raise
            if counted and not counted.read_so_far:
                raise InputError(f"{self.name}: not JSON: it is empty") from None
            said = error.args[0] if error.args else ""
            said = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
            told = shown(said.splitlines()[0]) if said else type(error).__name__
            near = f" in the first {counted.read_so_far:,} bytes" if counted else ""
            stays = f"; {STAYS}" if counted and counted.given else ""
            raise InputError(f"{self.name}: not JSON{near} ({told}){stays}") from None
