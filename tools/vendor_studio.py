"""Fetch what the studio's pages are made with: `python tools/vendor_studio.py`.

The versions stand in tools/studio/package.json, the hashes of what npm fetches in package-lock.json beside it (npm
checks them). Each package becomes one ES module in static/vendor, whose imports name their neighbours by relative path:
the pages' policy allows no import map. versions.json there says of each file what it is of, its licence and its hash.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).parent / "studio"
STUDIO = Path(__file__).parents[1] / "packages" / "mindstream-studio" / "src" / "mindstream_studio"
VENDOR = STUDIO / "static" / "vendor"
MODULES = {
    "preact.js": ("preact", "dist/preact.mjs"),
    "hooks.js": ("preact", "hooks/dist/hooks.mjs"),
    "htm.js": ("htm", "dist/htm.mjs"),
    "signals-core.js": ("@preact/signals-core", "dist/signals-core.mjs"),
    "signals.js": ("@preact/signals", "dist/signals.mjs"),
    "uplot.js": ("uplot", "dist/uPlot.iife.min.js"),
    "uplot.css": ("uplot", "dist/uPlot.min.css"),
    "dagre.js": ("@dagrejs/dagre", "dist/dagre.esm.js"),
}
"""A file of the studio: the package that it is of, and where it lies there."""
NEIGHBOURS = {
    "preact": "./preact.js", "preact/hooks": "./hooks.js", "htm": "./htm.js",
    "@preact/signals-core": "./signals-core.js",
}  # fmt: skip
IMPORT = re.compile(r'\b(from|import)\s*"([^"./][^"]*)"')
SOURCE_MAP = re.compile(r"//# sourceMappingURL=.*$", re.MULTILINE)


def fetch() -> None:
    """Fetch the packages as the lock file has them; npm refuses what has another hash."""
    npm = shutil.which("npm")
    if npm is None:
        raise SystemExit("npm is not there: it fetches the packages")
    subprocess.run([npm, "ci"], cwd=HERE, check=True)


def as_module(name: str, text: str) -> str:
    """Return a file as a module that imports its neighbours by relative path."""
    text = SOURCE_MAP.sub("", text)
    text = IMPORT.sub(lambda found: f'{found[1]}"{NEIGHBOURS[found[2]]}"', text)
    if name == "uplot.js":
        text += "\nexport default uPlot;\n"
    return text.rstrip() + "\n"


def vendor() -> None:
    """Copy the modules and their licences, and write versions.json."""
    lock = json.loads((HERE / "package-lock.json").read_text("utf-8"))["packages"]
    written = {}
    for name, (package, where) in MODULES.items():
        home = HERE / "node_modules" / package
        text = as_module(name, (home / where).read_text("utf-8"))
        (VENDOR / name).write_text(text, "utf-8")
        about = json.loads((home / "package.json").read_text("utf-8"))
        shutil.copyfile(home / "LICENSE", VENDOR / f"LICENSE-{package.strip('@').replace('/', '-')}")
        written[name] = {
            "package": package, "version": about["version"], "license": about["license"], "file": where,
            "integrity": lock[f"node_modules/{package}"]["integrity"],
            "sha256": hashlib.sha256(text.encode()).hexdigest(),
        }  # fmt: skip
    (VENDOR / "versions.json").write_text(json.dumps(written, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    VENDOR.mkdir(parents=True, exist_ok=True)
    fetch()
    vendor()
