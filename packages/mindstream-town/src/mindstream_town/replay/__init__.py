"""Recordings of towns for web pages: timelines and the map."""

from mindstream_town.replay.ground import ground_of
from mindstream_town.replay.recording import record

__all__ = ["ground_of", "record"]
