"""A town's recording as one HTML file that plays it: no network, no library, no key."""

from mindstream.town.replay.write import write_replay

__all__ = ["write_replay"]
