"""What a town's log tells, as a page plays it: timelines, and the ground that residents stand on."""

from mindstream_town.replay.ground import ground_of
from mindstream_town.replay.recording import record

__all__ = ["ground_of", "record"]
