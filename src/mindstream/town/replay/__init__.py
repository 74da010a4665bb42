"""What a town's log tells, as a page plays it: timelines, and the ground that residents stand on."""

from mindstream.town.replay.ground import ground_of
from mindstream.town.replay.recording import record

__all__ = ["ground_of", "record"]
