"""Run a program as its author would, and check whether its requirements are installed."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

Run: TypeAlias = Callable[[str, Mapping[str, str]], None]
SOURCE = Path(__file__).parents[2] / "src"


def absent(module: str) -> bool:
    """Check whether a module or its package is missing; only that package is imported."""
    try:
        return importlib.util.find_spec(module) is None
    except ModuleNotFoundError:
        return True


def environment() -> dict[str, str]:
    """Return environment variables with which a program finds this mindstream."""
    paths = os.pathsep.join([str(SOURCE), *filter(None, [os.environ.get("PYTHONPATH")])])
    return os.environ | {"PYTHONPATH": paths}


def run_python(code: str | Path, folder: Path) -> str:
    """Run a program in a folder; return its output."""
    script = [str(code)] if isinstance(code, Path) else ["-c", code]
    done = subprocess.run(
        [sys.executable, *script], cwd=folder, env=environment(), capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout
