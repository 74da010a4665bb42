"""Join the studio's modules to one script, for a page that is saved to a file and asks nobody for anything.

No build tool: it reads the few forms of `import` and `export` that the house and its libraries write, and refuses any
other.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path

FROM = r'\s*from\s*"(\.[^"]+)";?'
START = r"(?:^|(?<=[;}]))"
"""Where a statement begins: libraries write all of theirs on a line."""
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
ABSENT = 'Promise.reject(new Error("This is not in the file."))'


def join_modules(
    entry: Path, instead: Mapping[Path, Path] | None = None, without: Collection[Path] = ()
) -> tuple[str, list[Path]]:
    """Return a script that does what a module does, with all that it imports, and the modules that are in it.

    Each module becomes a function that is called once, after those that it imports; one that is imported later comes
    last. Comments on lines of their own, and types, are left out.

    Args:
        instead: by module, the one that takes its place.
        without: modules that are left out, of those that are imported later; whoever imports one is told so.

    Raises:
        ValueError: modules import each other in a circle, what they do not export, or in a form that is not known here.
    """
    joining = _Joining({one.resolve(): other.resolve() for one, other in (instead or {}).items()}, set(without))
    joining.later.append(entry.resolve())
    for module in joining.later:
        joining.add(module)
    return f'"use strict";\n(() => {{\n{"".join(joining.parts)}}})();\n', list(joining.exports)


class _Joining:
    """What was joined by now: `exports` by module, each module's text in `parts`."""

    def __init__(self, instead: Mapping[Path, Path], without: Collection[Path]) -> None:
        self._instead, self._without = instead, without
        self._numbers: dict[Path, int] = {}
        self.exports: dict[Path, dict[str, str]] = {}
        self.parts: list[str] = []
        self.later: list[Path] = []

    def add(self, module: Path, above: tuple[Path, ...] = ()) -> None:
        """Add a module after those that it imports."""
        if module in above:
            raise ValueError(f"{module.name} imports itself, by {', '.join(each.name for each in above)}")
        if module in self.exports:
            return
        text = TYPE.sub("", COMMENT.sub("", module.read_text("utf-8")))
        for path in sorted({found[2] for form in (IMPORT, PASSED_ON) for found in form.finditer(text)}):
            self.add(self._place(module, path), (*above, module))
        exports: dict[str, str] = {}
        text = PASSED_ON.sub(lambda found: self._pass_on(module, found, exports), text)
        text = IMPORT.sub(lambda found: self._bind(module, found), text)
        text = LATER.sub(lambda found: self._postpone(self._place(module, found[1])), text)
        text = LIST.sub(lambda found: exports.update(_pairs(found[1])) or "", text)
        exports |= {name: name for name in NAME.findall(text)} | ({"default": "$usual"} if USUAL.search(text) else {})
        body = EXPORT.sub("", USUAL.sub("const $usual = ", text))
        if left := LEFT.search(body):
            raise ValueError(f"{module.name}: {left[0].strip()!r} is a form that is not joined")
        self.exports[module] = exports
        made = ", ".join(f"{name}: {own}" if name != own else name for name, own in exports.items())
        self.parts.append(f"const {self._name(module)} = (() => {{\n{body}\nreturn {{ {made} }};\n}})();\n")

    def _place(self, module: Path, path: str) -> Path:
        found = (module.parent / path).resolve()
        return self._instead.get(found, found)

    def _name(self, module: Path) -> str:
        return f"module{self._numbers.setdefault(module, len(self._numbers))}"

    def _bind(self, module: Path, found: re.Match[str]) -> str:
        wanted = {found[1]: "default"} if found[1].isidentifier() else _pairs(found[1].strip("{}"))
        of = self._require(module, found[2], wanted.values())
        return f"const {{ {', '.join(f'{theirs}: {own}' for own, theirs in wanted.items())} }} = {of};"

    def _pass_on(self, module: Path, found: re.Match[str], exports: dict[str, str]) -> str:
        wanted = _pairs(found[1])
        of = self._require(module, found[2], wanted.values())
        exports |= {name: f"{of}.{theirs}" for name, theirs in wanted.items()}
        return ""

    def _require(self, module: Path, path: str, names: Collection[str]) -> str:
        other = self._place(module, path)
        if missing := set(names) - set(self.exports[other]):
            raise ValueError(
                f"{module.name} imports {', '.join(sorted(missing))} of {other.name}, which exports no such"
            )
        return self._name(other)

    def _postpone(self, module: Path) -> str:
        if module in self._without:
            return ABSENT
        self.later.append(module)
        return f"Promise.resolve().then(() => {self._name(module)})"


def _pairs(names: str) -> dict[str, str]:
    """Read `a, b as c`: what stands after `as`, and before it."""
    pairs = [each.split(" as ") for each in map(str.strip, names.split(",")) if each]
    return {pair[-1].strip(): pair[0].strip() for pair in pairs}
