"""Cursors of lists: opaque to whoever has them, and of no use to another tenant or user."""

from __future__ import annotations

import base64
import binascii

from mindstream.errors import InputError


def write_cursor(at: str) -> str:
    """Return a cursor that says where a list goes on."""
    return base64.urlsafe_b64encode(at.encode()).decode().rstrip("=")


def read_cursor(cursor: str) -> str:
    """Return where a list goes on; "" at its beginning.

    Raises:
        InputError: no list of ours gave it.
    """
    try:
        return base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise InputError("this cursor was given by no list: ask for the first page without one") from None


def read_number(cursor: str) -> int:
    """Return where a list that is counted goes on; 0 at its beginning.

    Raises:
        InputError: no list of ours gave it.
    """
    text = read_cursor(cursor)
    if text and not (text.isascii() and text.isdigit() and len(text) < 19):
        raise InputError("this cursor was given by another list: ask for the first page without one")
    return int(text or 0)
