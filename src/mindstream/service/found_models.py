"""Models that could answer here and that nobody has named: a key that is set, an Ollama that runs, a file."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from importlib.util import find_spec
from urllib.parse import urlsplit

from mindstream.errors import MindstreamError
from mindstream.models.providers.address import address, local_file
from mindstream.models.providers.secrets import KEYS
from mindstream.service.local_model import missing
from mindstream.service.probe import offered

PORT_S = 0.5
"""How long a port of this machine is waited for."""
SMALL = {
    "openai": ("gpt-5-mini", "OpenAI", "openai"),
    "anthropic": ("claude-haiku-4-5", "Anthropic", "anthropic"),
    "google": ("gemini-flash-latest", "Google", "google.genai"),
}
"""Of each vendor a small model to begin with, who reads what it is told, and the package that asks it."""


@dataclass(frozen=True, slots=True)
class Found:
    """A model that could answer.

    Attributes:
        name: as it is named after --model.
        why: how it was found.
        reads: who else reads what is said to it; "": nobody, it stays on this machine.
        lacks: what has to be done first; "": nothing.
        silly: it answers, and means little.
    """

    name: str
    why: str
    reads: str = ""
    lacks: str = ""
    silly: bool = False


async def find_models() -> list[Found]:
    """Look for models, those that do best first; nothing is sent to any but a port of this machine."""
    return [*_keys(), *[each async for each in _ollama()], *_local()]


def _keys() -> list[Found]:
    found = []
    for vendor, (model, reads, package) in SMALL.items():
        if key := next((name for name in KEYS[vendor] if os.environ.get(name)), None):
            there = find_spec(package.partition(".")[0]) and find_spec(package)
            lacks = "" if there else f"pip install 'mindstream[{vendor}]'"
            found.append(Found(f"{vendor}:{model}", f"{key} is set", reads, lacks))
    return found


async def _ollama() -> AsyncIterator[Found]:
    """Yield the first model that an Ollama on its port offers to talk."""
    try:
        at = address("ollama:any")
        home = urlsplit(at.url or "")
        async with asyncio.timeout(PORT_S):
            _, writer = await asyncio.open_connection(home.hostname, home.port or 80)
        writer.close()
        names = [name for name in sorted(await offered("ollama:any")) if "embed" not in name]
    except (OSError, TimeoutError, MindstreamError):
        return
    if names:
        yield Found(f"ollama:{names[0]}", f"Ollama runs at {home.hostname}:{home.port}")
    else:
        yield Found("ollama:qwen3", f"Ollama runs at {home.hostname}:{home.port}", lacks="ollama pull qwen3")


def _local() -> list[Found]:
    return [Found("local", "SmolLM2-135M is installed", silly=True)] if local_file() and not missing() else []
