"""What the tests of this folder are handed: it stands in `fixtures`, where its types are checked."""

from __future__ import annotations

from fixtures import browser, node_tools, served, studio

__all__ = ["browser", "node_tools", "served", "studio"]
