"""The stream keys of a store."""

from __future__ import annotations

from mindstream.identifiers import StreamKey, StreamName


def key_of(user: str) -> StreamKey:
    return StreamName("user", user).key


def key_of_resident(name: str) -> StreamKey:
    return StreamName("resident", name).key
