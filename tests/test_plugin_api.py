"""docs/plugin-api.md lists every name of `mindstream` that the other distributions import: the API for plugins.

Run this file to write the list anew: `python tests/test_plugin_api.py`.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/plugin-api.md"
LIST = re.compile(r"(?<=```text\n).*?(?=```)", re.DOTALL)


def used() -> str:
    """Return one line per module, `module: names`, of what the distributions in packages/ import from `mindstream`."""
    names = defaultdict[str, set[str]](set)
    for path in ROOT.glob("packages/*/src/**/*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "mindstream":
                names[node.module or ""] |= {alias.name for alias in node.names}
    return "".join(f"{module}: {', '.join(sorted(of))}\n" for module, of in sorted(names.items()))


def test_the_page_lists_what_the_distributions_import() -> None:
    listed = LIST.search(PAGE.read_text("utf-8"))
    assert listed and listed.group() == used(), "run `python tests/test_plugin_api.py`"


def test_every_listed_name_is_public_and_exists() -> None:
    for line in used().splitlines():
        module, _, names = line.partition(": ")
        assert not any(part.startswith("_") for part in [*module.split("."), *names.split(", ")]), line
        for name in names.split(", "):
            assert hasattr(importlib.import_module(module), name) or importlib.import_module(f"{module}.{name}"), name


if __name__ == "__main__":
    PAGE.write_text(LIST.sub(lambda _: used(), PAGE.read_text("utf-8")), "utf-8")
