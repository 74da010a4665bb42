"""Bundle the studio's JavaScript modules: one module per served page, or one script per saved page.

There is no build tool. This module parses only the forms of `import` and `export` that the studio and its libraries
use, and refuses all others. Each module becomes a function that is called once, after the modules that it imports.
Types and comments on lines of their own are removed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

FROM = r'\s*from\s*"(\.[^"]+)";?'
START = r"(?:^|(?<=[;}]))"
"""Start of a statement; minified libraries have many statements on one line."""
IMPORT = re.compile(rf"{START}import\s*(\w+|\{{[^}}]*\}}){FROM}", re.MULTILINE)
LATER = re.compile(r'\bimport\("(\.[^"]+)"\)')
PASSED_ON = re.compile(rf"{START}export\s*\{{([^}}]*)\}}{FROM}", re.MULTILINE)
LIST = re.compile(rf"{START}export\s*\{{([^}}]*)\}};?", re.MULTILINE)
USUAL = re.compile(rf"{START}export default ", re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async )?function\b|class\b|const\b)", re.MULTILINE)
NAME = re.compile(r"^export (?:async )?(?:function\*?|class|const) (\w+)", re.MULTILINE)
LEFT = re.compile(r"^[ \t]*+(?:import|export)\b.*|\bimport\(", re.MULTILINE)
COMMENT = re.compile(r"^[ \t]*(?://[^\n]*|/\*\*.*?\*/)[ \t]*\n", re.MULTILINE | re.DOTALL)
TYPE = re.compile(r"/\*\*.*?\*/", re.DOTALL)
ABSENT = 'Promise.reject(new Error("The file does not contain this part."))'


class Joining:
    """Modules bundled into one text.

    Each module becomes a function that is called once. A module comes after the modules that it imports.

    Attributes:
        names: for each module, the expression that refers to it.
        exports: for each module, the expression of each exported name.
        parts: the text of each bundled module.
    """

    def __init__(self, later: Callable[[Path], str]) -> None:
        """Start with no modules; `later` returns the JavaScript expression that replaces the dynamic import of a
        module."""
        self._later = later
        self.names: dict[Path, str] = {}
        self.exports: dict[Path, dict[str, str]] = {}
        self.parts: dict[Path, str] = {}

    def name(self, module: Path) -> str:
        """Return the expression that refers to a module."""
        return self.names.setdefault(module, f"module{len(self.names)}")

    def add(self, module: Path, above: tuple[Path, ...] = ()) -> None:
        """Add a module after the modules that it imports.

        Raises:
            ValueError: imports are circular, an imported name is not exported, or a form of import or export is
                unknown.
        """
        if module in above:
            raise ValueError(f"{module.name} imports itself through {', '.join(each.name for each in above)}")
        if module in self.exports:
            return
        text = TYPE.sub("", COMMENT.sub("", module.read_text("utf-8")))
        for path in sorted({found[2] for form in (IMPORT, PASSED_ON) for found in form.finditer(text)}):
            self.add(_place(module, path), (*above, module))
        exports: dict[str, str] = {}
        text = PASSED_ON.sub(lambda found: self._pass_on(module, found, exports), text)
        text = IMPORT.sub(lambda found: self._bind(module, found), text)
        text = LIST.sub(lambda found: exports.update(_pairs(found[1])) or "", text)
        exports |= {name: name for name in NAME.findall(text)} | ({"default": "$usual"} if USUAL.search(text) else {})
        text = EXPORT.sub("", USUAL.sub("const $usual = ", text))
        if left := LEFT.search(LATER.sub("", text)):
            raise ValueError(f"{module.name}: the form {left[0].strip()!r} of import or export is not supported")
        text = LATER.sub(lambda found: self._later(_place(module, found[1])), text)
        self.exports[module] = exports
        made = ", ".join(f"{name}: {own}" if name != own else name for name, own in exports.items())
        self.parts[module] = f"const {self.name(module)} = (() => {{\n{text}\nreturn {{ {made} }};\n}})();\n"

    def _bind(self, module: Path, found: re.Match[str]) -> str:
        wanted = {found[1]: "default"} if found[1].isidentifier() else _pairs(found[1].strip("{}"))
        of = self._require(module, found[2], wanted.values())
        return f"const {{ {', '.join(f'{theirs}: {own}' for own, theirs in wanted.items())} }} = {of};"

    def _pass_on(self, module: Path, found: re.Match[str], exports: dict[str, str]) -> str:
        wanted = _pairs(found[1])
        of = self._require(module, found[2], wanted.values())
        exports |= {name: f"{of}.{theirs}" for name, theirs in wanted.items()}
        return ""

    def _require(self, module: Path, path: str, names: Iterable[str]) -> str:
        other = _place(module, path)
        if missing := set(names) - set(self.exports[other]):
            raise ValueError(
                f"{module.name} imports {', '.join(sorted(missing))} from {other.name}, which does not export it"
            )
        return self.name(other)


def _place(module: Path, path: str) -> Path:
    return (module.parent / path).resolve()


def _pairs(names: str) -> dict[str, str]:
    """Parse `a, b as c` into {"a": "a", "c": "b"}: for each new name, the original name."""
    pairs = [each.split(" as ") for each in map(str.strip, names.split(",")) if each]
    return {pair[-1].strip(): pair[0].strip() for pair in pairs}


def join_modules(entry: Path, without: Collection[Path] = ()) -> tuple[str, list[Path]]:
    """Return a script that runs a module with all of its imports, and the modules in the script.

    Dynamically imported modules come last. A dynamic import of a module in `without` fails at run time.

    Raises:
        ValueError: imports are circular, an imported name is not exported, or a form of import or export is unknown.
    """

    def later(module: Path) -> str:
        if module in without:
            return ABSENT
        wanted.append(module)
        return f"Promise.resolve().then(() => {joining.name(module)})"

    joining, wanted = Joining(later), [entry.resolve()]
    for module in wanted:
        joining.add(module)
    return f'"use strict";\n(() => {{\n{"".join(joining.parts.values())}}})();\n', list(joining.parts)


def join_pages(shell: Path) -> dict[Path, str]:
    """Return the bundled text of the shell, and of each dynamically imported module with its imports.

    Modules in the shell are not repeated in the other texts. Each text exports its modules as `modules`, by path.

    Raises:
        ValueError: imports are circular, an imported name is not exported, or a form of import or export is unknown.
    """

    def later(module: Path) -> str:
        if module not in wanted:
            wanted.append(module)
        return f'import("./{_path(module, entry.parent)}")'

    wanted, base = [shell.resolve()], Joining(later)
    made: dict[Path, str] = {}
    for entry in wanted:
        joining = Joining(later) if made else base
        if made:
            joining.names = {each: f"shell[{_path(each, wanted[0].parent)!r}]" for each in base.parts}
            joining.exports = dict(base.exports)
        joining.add(entry)
        made[entry] = _write(entry, joining, wanted[0])
    return made


def _write(entry: Path, joining: Joining, shell: Path) -> str:
    name, exports = joining.name(entry), joining.exports[entry]
    inside = ", ".join(f"{_path(each, shell.parent)!r}: {joining.name(each)}" for each in joining.parts)
    return "".join(
        [
            "" if entry == shell else f'import {{ modules as shell }} from "./{_path(shell, entry.parent)}";\n',
            *joining.parts.values(),
            f"export const modules = {{ {inside} }};\n",
            *(f"export {'default' if each == 'default' else f'const {each} ='} {name}.{each};\n" for each in exports),
        ]
    )


def _path(module: Path, start: Path) -> str:
    return os.path.relpath(module, start).replace(os.sep, "/")
