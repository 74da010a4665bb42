"""The cells of a Tiled layer as text: comma-separated, or base64 of four bytes each, compressed or not."""

from __future__ import annotations

import base64
import binascii
import sys
import zlib
from array import array

from mindstream.errors import InputError

WINDOW_BITS = {"": None, "zlib": zlib.MAX_WBITS, "gzip": zlib.MAX_WBITS | 16}
"""What zlib is told for each compression that can be read."""
LARGEST = (1 << 32) - 1


def read_cells(text: str, encoding: str, compression: str, wanted: int) -> array[int]:
    """Read the text of a layer that should have so many cells.

    Raises:
        InputError: it cannot be read, or unpacks to something larger.
    """
    if encoding == "csv":
        return _from_csv(text, wanted)
    if encoding != "base64" or compression not in WINDOW_BITS:
        raise InputError(
            f"cells as {encoding or 'XML elements'} {compression} cannot be read: "
            "choose CSV in Tiled (Map properties, Tile Layer Format)"
        )
    try:
        packed = base64.b64decode("".join(text.split()), validate=True)
    except binascii.Error as error:
        raise InputError(f"the cells are no base64: {error}") from None
    return _from_bytes(_unpack(packed, compression, 4 * wanted))


def from_numbers(numbers: list[object]) -> array[int]:
    """Take cells that are numbers already.

    Raises:
        InputError: one is none.
    """
    for at, number in enumerate(numbers):
        if type(number) is not int or not 0 <= number <= LARGEST:
            raise InputError(f"cell {at + 1} is {number!r:.40}, where a whole number is wanted")
    return array("I", numbers)  # type: ignore[arg-type]


def _from_csv(text: str, wanted: int) -> array[int]:
    parts = text.split(",")
    if len(parts) > wanted + 1:
        raise InputError(f"there are {len(parts):,} cells, where {wanted:,} are wanted")
    cells = array("I")
    for at, part in enumerate(parts):
        number = part.strip()
        if not number and at == len(parts) - 1:
            break
        if not (number.isascii() and number.isdigit() and len(number) <= 10 and int(number) <= LARGEST):
            raise InputError(f"cell {at + 1} is {number!r:.40}, where a whole number is wanted")
        cells.append(int(number))
    return cells


def _unpack(packed: bytes, compression: str, most: int) -> bytes:
    bits = WINDOW_BITS[compression]
    if bits is None:
        return packed
    unpacker = zlib.decompressobj(bits)
    try:
        data = unpacker.decompress(packed, most + 1)
    except zlib.error as error:
        raise InputError(f"the cells cannot be unpacked: {error}") from None
    if len(data) > most:
        raise InputError(f"the cells unpack to more than the {most:,} bytes that are wanted")
    return data


def _from_bytes(data: bytes) -> array[int]:
    if len(data) % 4:
        raise InputError(f"the cells have {len(data):,} bytes, which is no multiple of four")
    cells = array("I", data)
    if sys.byteorder == "big":
        cells.byteswap()
    return cells
