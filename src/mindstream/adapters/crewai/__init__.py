"""CrewAI's unified memory in a stream (docs/adapters/crewai.md)."""

from mindstream.adapters.crewai.storage import MindstreamStorage

__all__ = ["MindstreamStorage"]
