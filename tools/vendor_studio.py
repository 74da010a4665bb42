"""Fetch the JavaScript packages of the studio's pages: `python tools/vendor_studio.py`.

The versions are set in tools/studio/package.json, the hashes in package-lock.json (checked by npm). Each package
becomes one ES module in static/vendor, whose imports name the others by relative path, since the pages' policy allows
no import map. versions.json lists each file with its package, licence and hash.
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
"""The files of the studio: the package of each, and its path in the package."""
NEIGHBOURS = {
    "preact": "./preact.js", "preact/hooks": "./hooks.js", "htm": "./htm.js",
    "@preact/signals-core": "./signals-core.js",
}  # fmt: skip
IMPORT = re.compile(r'\b(from|import)\s*"([^"./][^"]*)"')
SOURCE_MAP = re.compile(r"//# sourceMappingURL=.*$", re.MULTILINE)


def fetch() -> None:
    """Fetch the packages of the lock file; npm refuses a package with another hash."""
    npm = shutil.which("npm")
    if npm is None:
        raise SystemExit("npm is not there: it fetches the packages")
    subprocess.run([npm, "ci"], cwd=HERE, check=True)


def as_module(name: str, text: str) -> str:
    """Return a file as a module that imports the other modules by relative path."""
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
