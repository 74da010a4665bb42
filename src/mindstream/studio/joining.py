"""Join the studio's modules to one script, for a page that is saved to a file and asks nobody for anything.

No build tool: it reads the few forms of `import` and `export` that the house writes, and refuses any other.
"""

from __future__ import annotations

import re
from pathlib import Path

IMPORT = re.compile(r"""^import \{([^}]*)\} from "(\.[^"]+)";$""", re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async )?function\b|class\b|const\b)", re.MULTILINE)
NAME = re.compile(r"^export (?:async )?(?:function\*?|class|const) (\w+)", re.MULTILINE)
NOTHING = re.compile(r"^export \{\};\n?", re.MULTILINE)
LEFT = re.compile(r"^[ \t]*+(?:import|export)\b.*|\bimport\(", re.MULTILINE)
COMMENT = re.compile(r"^[ \t]*(?://[^\n]*|/\*\*.*?\*/)[ \t]*\n", re.MULTILINE | re.DOTALL)


def join_modules(entry: Path) -> str:
    """Return a script that does what a module does, with all that it imports.

    Each module becomes a function that is called once, after those that it imports. Comments on lines of their own are
    left out.

    Raises:
        ValueError: modules import each other in a circle, or in a form that is not known here.
    """
    numbers: dict[Path, int] = {}
    parts: list[str] = []
    _add(entry.resolve(), numbers, parts, ())
    return f'"use strict";\n(() => {{\n{"".join(parts)}}})();\n'


def _add(module: Path, numbers: dict[Path, int], parts: list[str], above: tuple[Path, ...]) -> int:
    if module in above:
        raise ValueError(f"{module.name} imports itself, by {', '.join(each.name for each in above)}")
    if module not in numbers:
        text = COMMENT.sub("", module.read_text("utf-8"))
        wanted = {(module.parent / path).resolve() for _, path in IMPORT.findall(text)}
        known = {each: _add(each, numbers, parts, (*above, module)) for each in sorted(wanted)}
        text = NOTHING.sub("", text)
        body = IMPORT.sub(lambda found: _bind(found, known[(module.parent / found[2]).resolve()]), text)
        names = NAME.findall(body)
        body = EXPORT.sub("", body)
        if left := LEFT.search(body):
            raise ValueError(f"{module.name}: {left[0].strip()!r} is a form that is not joined")
        numbers[module] = len(numbers)
        parts.append(f"const module{numbers[module]} = (() => {{\n{body}return {{ {', '.join(names)} }};\n}})();\n")
    return numbers[module]


def _bind(found: re.Match[str], number: int) -> str:
    return f"const {{{found[1].replace(' as ', ': ')}}} = module{number};"
