"""Join the studio's modules: to one script for a page that is saved, to one module for each page that is served.

No build tool: it reads the few forms of `import` and `export` that the house writes, and refuses any other. Each module
becomes a function that is called once, after those that it imports. Comments on lines of their own are left out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

IMPORT = re.compile(r"""^import \{([^}]*)\} from "(\.[^"]+)";$""", re.MULTILINE)
LATER = re.compile(r"""\bimport\("(\.[^"]+)"\)""")
EXPORT = re.compile(r"^export (?=(?:async )?function\b|class\b|const\b)", re.MULTILINE)
NAME = re.compile(r"^export (?:async )?(?:function\*?|class|const) (\w+)", re.MULTILINE)
NOTHING = re.compile(r"^export \{\};\n?", re.MULTILINE)
LEFT = re.compile(r"^[ \t]*+(?:import|export)\b.*|\bimport\(", re.MULTILINE)
COMMENT = re.compile(r"^[ \t]*(?://[^\n]*|/\*\*.*?\*/)[ \t]*\n", re.MULTILINE | re.DOTALL)

Outside = Callable[[Path], str]
"""Says by which expression a module is had that is not joined; "" for one that is."""


class Joining:
    """Modules that are joined, in the order in which they are called."""

    def __init__(self, outside: Outside = lambda _: "", later: Callable[[Path], str] | None = None) -> None:
        self.numbers: dict[Path, int] = {}
        self.parts: list[str] = []
        self._outside, self._later = outside, later

    def add(self, module: Path, above: tuple[Path, ...] = ()) -> str:
        """Join a module, with all that it imports; return the expression by which it is had.

        Raises:
            ValueError: modules import each other in a circle, or in a form that is not known here.
        """
        if there := self._outside(module):
            return there
        if module in above:
            raise ValueError(f"{module.name} imports itself, by {', '.join(each.name for each in above)}")
        if module not in self.numbers:
            text = NOTHING.sub("", COMMENT.sub("", module.read_text("utf-8")))
            wanted = {(module.parent / path).resolve() for _, path in IMPORT.findall(text)}
            known = {each: self.add(each, (*above, module)) for each in sorted(wanted)}
            body = IMPORT.sub(lambda found: _bind(found, known[(module.parent / found[2]).resolve()]), text)
            self._write(module, body)
        return f"module{self.numbers[module]}"

    def _write(self, module: Path, body: str) -> None:
        names, body, named = NAME.findall(body), EXPORT.sub("", body), self._later
        if left := LEFT.search(LATER.sub("", body) if named else body):
            raise ValueError(f"{module.name}: {left[0].strip()!r} is a form that is not joined")
        if named is not None:
            body = LATER.sub(lambda found: f'import("{named((module.parent / found[1]).resolve())}")', body)
        number = self.numbers[module] = len(self.numbers)
        self.parts.append(f"const module{number} = (() => {{\n{body}return {{ {', '.join(names)} }};\n}})();\n")


def _bind(found: re.Match[str], where: str) -> str:
    return f"const {{{found[1].replace(' as ', ': ')}}} = {where};"


def join_modules(entry: Path) -> str:
    """Return a script that does what a module does, with all that it imports.

    Raises:
        ValueError: modules import each other in a circle, or in a form that is not known here.
    """
    joining = Joining()
    joining.add(entry.resolve())
    return f'"use strict";\n(() => {{\n{"".join(joining.parts)}}})();\n'


def join_pages(folder: Path) -> tuple[dict[Path, str], set[Path]]:
    """Return what a browser asks for, the shell and each page with what only it imports, and which modules are in it.

    What is vendored, and `html.js` above it, stays as it is. A page has what the shell imports from the shell's own.

    Raises:
        ValueError: modules import each other in a circle, or in a form that is not known here.
    """
    folder = folder.resolve()
    shell = folder / "app.js"
    made: dict[Path, str] = {}
    joined: set[Path] = set()
    in_shell: set[Path] = set()
    for entry in (shell, *sorted((folder / "pages").glob("*.js"))):
        text, inside = _join_page(entry, folder, shell, in_shell)
        made[entry] = text
        joined |= inside
        in_shell = in_shell or inside
    return made, joined


def _join_page(entry: Path, folder: Path, shell: Path, in_shell: set[Path]) -> tuple[str, set[Path]]:
    kept: dict[Path, str] = {}

    def outside(module: Path) -> str:
        if module in in_shell:
            return f"shell[{_path(module, folder)!r}]"
        if module.parent.name == "vendor" or module == folder / "html.js":
            return kept.setdefault(module, f"kept{len(kept)}")
        return ""

    def later(module: Path) -> str:
        return f"./{_path(module, entry.parent)}"

    joining = Joining(outside, later)
    last = joining.add(entry)
    heads = [f'import * as {name} from "./{_path(module, entry.parent)}";\n' for module, name in kept.items()]
    if in_shell:
        heads.append(f'import {{ modules as shell }} from "./{_path(shell, entry.parent)}";\n')
    modules = ", ".join(f"{_path(module, folder)!r}: module{number}" for module, number in joining.numbers.items())
    tail = f"export const modules = {{ {modules} }};\n"
    if entry != shell:
        tail += f"export const Page = {last}.Page;\n"
    return "".join([*heads, *joining.parts, tail]), set(joining.numbers)


def _path(module: Path, start: Path) -> str:
    return os.path.relpath(module, start).replace(os.sep, "/")
