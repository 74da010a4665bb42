"""Hooks of the documentation site (mkdocs.yml): the reference pages are generated from the code and openapi.json."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import mindstream

ROOT = Path(__file__).parents[1]
METHODS = ("get", "post", "put", "patch", "delete")


def on_page_markdown(markdown: str, page: Any, **_: object) -> str:
    """Fill in the generated parts of a page, and mark blocks of code as MkDocs wants it."""
    markdown = re.sub(r"^```python norun$", "```python", markdown, flags=re.MULTILINE)
    if page.file.src_uri == "reference/python.md":
        return markdown.replace("<!-- public names -->", "\n".join(map(_directive, mindstream.__all__)))
    if page.file.src_uri == "reference/rest.md":
        return markdown.replace("<!-- operations -->", _operations())
    return markdown


def _directive(name: str) -> str:
    """Return the mkdocstrings block of a public name."""
    public = getattr(mindstream, name)
    module = getattr(public, "__module__", "")
    if not module.startswith("mindstream") or getattr(public, "__qualname__", "") != name:
        return f"## {name}\n\nA type alias.\n"
    return f"::: {module}.{name}\n"


def _operations() -> str:
    """Return a table of the operations for each tag of openapi.json."""
    paths = json.loads((ROOT / "docs" / "openapi.json").read_text("utf-8"))["paths"]
    groups: dict[str, list[str]] = {}
    for path, methods in paths.items():
        for method in METHODS:
            if operation := methods.get(method):
                tag = (operation.get("tags") or ["other"])[0]
                told = (operation.get("description") or operation.get("summary", "")).partition("\n\n")[0]
                line = f"| `{method.upper()} {path}` | {' '.join(told.split())} |"
                groups.setdefault(tag, []).append(line)
    head = "| operation | what it does |\n|---|---|\n"
    return "\n\n".join(f"## {tag}\n\n{head}" + "\n".join(lines) for tag, lines in sorted(groups.items()))
