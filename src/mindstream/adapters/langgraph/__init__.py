"""LangGraph's long-term store and its checkpoints, in a memory (docs/adapters/langgraph.md)."""

from mindstream.adapters.langgraph.saver import MindstreamSaver
from mindstream.adapters.langgraph.store import MindstreamStore

__all__ = ["MindstreamSaver", "MindstreamStore"]
