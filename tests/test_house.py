"""The architecture holds: imports run one way, there is one tool loop, and one module reads the clock."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import mindstream
from mindstream.plugins import CORE, registered

SOURCE = Path(mindstream.__file__).parent
ROOT = SOURCE.parent.parent
PACKAGES = sorted((ROOT / "packages").glob("*/src"))
FILES = sorted(SOURCE.rglob("*.py"))
EVERY_FILE = [*FILES, *sorted(path for folder in PACKAGES for path in folder.rglob("*.py"))]


@cache
def packages_in_order() -> list[str]:
    """Read the order of the packages from docs/architecture.md: the block that begins with `errors`."""
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    block = re.search(r"```rooms\n(.*?)```", text, re.DOTALL)
    assert block, "docs/architecture.md has a block ```rooms with one package per line"
    return [line.split()[0].rstrip("/") for line in block[1].splitlines() if line.strip() and not line.startswith(" ")]


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def name_of(path: Path) -> str:
    """Return a file's path within its package: `log/database.py`, `mindstream_town/town.py`."""
    if path.is_relative_to(SOURCE):
        return str(path.relative_to(SOURCE))
    return str(next(path.relative_to(folder) for folder in PACKAGES if path.is_relative_to(folder)))


def package_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


@cache
def imported(path: Path) -> set[str]:
    """Return the packages that a file imports, including imports inside functions."""
    found = set()
    for node in ast.walk(parsed(path)):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = (
                [f"{node.module}.{alias.name}" for alias in node.names]
                if node.module == "mindstream"
                else [node.module]
            )
        found |= {name.split(".")[1] for name in names if name.startswith("mindstream.")}
    return found


def test_every_package_is_listed_in_the_architecture() -> None:
    built = {package_of(path) for path in FILES} - {"__init__", "__main__"}
    assert built <= set(packages_in_order())


def test_imports_run_one_way() -> None:
    order = packages_in_order()
    above = {
        str(path.relative_to(SOURCE)): later
        for path in FILES
        if (here := package_of(path)) != "__init__"
        and (later := {other for other in imported(path) if order.index(other) > order.index(here)})
    }
    assert not above, f"these import from packages listed below them: {above}"


def test_only_the_clock_reads_the_time() -> None:
    reads = re.compile(
        r"\btime\.(time|monotonic|perf_counter|time_ns|localtime|gmtime)\(|datetime\.(now|utcnow|today)\(|date\.today\("
    )
    assert [path.name for path in EVERY_FILE if reads.search(path.read_text("utf-8"))] == ["clock.py"]


def test_there_is_only_one_tool_loop() -> None:
    calls = re.compile(r"\bact\(")
    callers = [name_of(path) for path in EVERY_FILE if calls.search(path.read_text("utf-8"))]
    assert callers == ["models/prompt.py", "tools/call.py"]
    loops = [name_of(path) for path in EVERY_FILE if any(map(is_tool_loop, ast.walk(parsed(path))))]
    assert loops == ["tools/call.py"]


ASKING = {"act", "ask", "reply", "gather_reply", "_reply"}
CALLING = {"call", "call_tool", "make", "_call", "_make"}


def is_tool_loop(node: ast.AST) -> bool:
    """Return whether a loop calls a model and makes the tool calls of its reply."""
    if not isinstance(node, ast.While | ast.For | ast.AsyncFor):
        return False
    waited = [each.value for each in ast.walk(node) if isinstance(each, ast.Await) and isinstance(each.value, ast.Call)]
    names = {ast.unparse(each.func).rpartition(".")[2] for each in waited if isinstance(each, ast.Call)}
    return bool(names & ASKING) and bool(names & CALLING)


def patterns(path: Path) -> list[ast.Call]:
    """Find the calls that make or use a regular expression."""
    return [
        node
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "re"
        and node.func.attr != "escape"
    ]


def words_of(call: ast.Call, path: Path) -> list[str]:
    """Return the words, of any language, that a pattern matches; for a named pattern, those of the file's tables."""
    tree = parsed(path)
    named = isinstance(call.args[0], ast.Name)
    within = [each for each in tree.body if isinstance(each, ast.Assign | ast.AnnAssign)] if named else [call.args[0]]
    parts = [node.value for each in within for node in ast.walk(each) if isinstance(node, ast.Constant)]
    text = " ".join(part for part in parts if isinstance(part, str))
    return re.findall(r"[^\W\d_]{3,}|[぀-鿿]", re.sub(r"\(\?P?<\w+>|\(\?P=\w+\)|\\[a-zA-Z]", "", text))


PROSE = {
    "coach/alarms.py",
    "coach/packs/safety.py",
    "text/dates.py",
    "memory/recall/ranking.py",
    "text/times.py",
}
"""Modules with patterns for words of users: alarms, dates and numbers."""
FORMS = {
    *(
        "cli/edge.py",
        "mindstream_town/commands/screen.py",
        "cli/screens/talk.py",
        "cli/shell/output.py",
        "coach/belief/plan.py",
        "mindstream_evals/sharing/evaluate.py",
        "coach/packs/check.py",
    ),
    *(
        "life/stand_in.py",
        "memory/curation/audit.py",
        "memory/store/record.py",
        "memory/lifecycle/sleep.py",
        "models/providers/address.py",
    ),
    *(
        "models/providers/failures.py",
        "models/providers/failures.py",
        "models/untrusted.py",
        "models/untrusted.py",
        "models/fitting.py",
        "models/providers/openai_chat.py",
        "models/reply.py",
        "models/reply.py",
        "models/prompt.py",
    ),
    *("models/providers/tool_calls.py", "models/wrappers/recovery.py", "planning/prompts.py"),
    *("planning/formats/read.py", "planning/formats/read.py", "planning/formats/rewoo.py"),
    "planning/formats/read.py",
    *("service/chat/companion.py", "memory/curation/mentions.py"),
    *("sharing/retriever.py", "text/classifier.py", "text/words.py"),
    *("text/links.py", "tools/calculator.py", "tools/web.py", "tools/web.py"),
    *(
        "mindstream_studio/joining.py",
        "mindstream_town/formats/saves.py",
        "mindstream_town/world/routes.py",
        "identifiers.py",
        "clock.py",
        "encodings.py",
        "models/providers/wire.py",
    ),
}
"""Modules with patterns for a written form: an address, a mark of a format, another program's error, a character
range.
"""


def test_patterns_over_prose_are_in_few_modules() -> None:
    with_words = {
        name_of(path) for path in EVERY_FILE if any(words_of(call, path) for call in patterns(path) if call.args)
    }
    assert with_words == PROSE | FORMS


def test_rules_are_not_imported_by_other_modules() -> None:
    marked = re.compile(r"^@rule\(\w+\)\n(?:async )?def (\w+)", re.M)
    standing_in = {name for path in EVERY_FILE for name in marked.findall(path.read_text("utf-8"))}
    assert len(standing_in) > 10
    used = []
    for path in EVERY_FILE:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ImportFrom):
                names = [alias.name for alias in node.names if (node.module or "").startswith("mindstream")]
                used += [(path.name, name) for name in names if name in standing_in]
    assert used == []


def test_capability_packages_do_not_import_one_another() -> None:
    upon = {"coach", "planning", "life", "sharing"}
    crossed = [
        str(path.relative_to(SOURCE))
        for path in FILES
        if package_of(path) in upon and imported(path) & (upon - {package_of(path)})
    ]
    assert crossed == []
    order = packages_in_order()
    ground = order[: order.index("coach")]
    assert ground[-1] == "minds"
    below = [str(path.relative_to(SOURCE)) for path in FILES if package_of(path) in ground and imported(path) & upon]
    assert below == [], "core packages import no capability package"


def test_every_public_name_can_be_imported() -> None:
    for name in mindstream.__all__:
        assert getattr(mindstream, name) is not None


def test_importing_loads_nothing_heavy() -> None:
    heavy = ["numpy", "pydantic", "pydantic_ai", "wordllama", "prompt_toolkit"]
    code = f"import sys, mindstream; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@cache
def importing(path: Path) -> set[Path]:
    """Return the files that a file imports, including imports for types only and inside functions."""
    found = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("mindstream"):
            package, *inside = node.module.split(".")
            folder = (
                SOURCE if package == "mindstream" else ROOT / "packages" / package.replace("_", "-") / "src" / package
            )
            folder = folder.joinpath(*inside)
            for name in node.names:
                module = folder / f"{name.name}.py"
                found.add(module if module.exists() else folder.with_suffix(".py"))
    return {each for each in found if each.exists() and each != path}


@cache
def circles() -> list[set[Path]]:
    """Return the groups of files that import one another, directly or indirectly."""
    ways = {path: importing(path) for path in EVERY_FILE}
    for middle in EVERY_FILE:  # Warshall's closure
        through = ways[middle]
        for path in EVERY_FILE:
            if middle in ways[path]:
                ways[path] = ways[path] | through
    found = {
        frozenset(other for other in ways[path] if path in ways[other]) for path, way in ways.items() if path in way
    }
    return [set(each) for each in found]


def test_import_cycles_are_small_and_within_one_folder() -> None:
    assert [
        sorted(map(str, each)) for each in circles() if len(each) > 4 or len({path.parent for path in each}) > 1
    ] == []


def test_the_command_line_has_no_import_cycles() -> None:
    below: dict[Path, set[Path]] = {}
    for path in FILES:
        if package_of(path) == "cli":
            below.setdefault(path.parent, set()).update(
                other.parent for other in importing(path) if package_of(other) == "cli"
            )
    while free := {folder for folder, others in below.items() if not others & below.keys() - {folder}}:
        below = {folder: others for folder, others in below.items() if folder not in free}
    assert below == {}
    assert [each for each in circles() if any("cli" in path.parts or "commands" in path.parts for path in each)] == []


STREAM_KIND_MODULES = {"identifiers.py", "tables.py"}
"""Modules that know the names of pool and town streams; earlier versions' names are read in one of them."""


def strings(path: Path) -> Iterator[str]:
    """Yield the texts in a file's code, except docstrings."""
    tree = parsed(path)
    told = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told:
            yield node.value


def test_core_packages_name_no_capability_package_or_role() -> None:
    order = packages_in_order()
    ground = [path for path in FILES if package_of(path) in order[: order.index("coach")]]
    shipped = [each.name for each in registered() if each.name]
    roles = {role.name for each in registered() if each.name for role in each.roles} - {
        each.name for each in CORE.roles
    }
    assert {"planner", "M0", "safety"} <= roles and {"coach", "town"} <= {*shipped}
    module = re.compile(rf"mindstream[./]({'|'.join(shipped)})\b|^({'|'.join(shipped)})([./:].*)?$")
    named = [
        f"{path.relative_to(SOURCE)}: {text}"
        for path in ground
        if path.name not in {*STREAM_KIND_MODULES, "moved.py", "plugins.py"}
        for text in strings(path)
        if text in roles or module.search(text)
    ]
    assert not named, named
    by_name = {path.name for path in ground if "import_module(" in path.read_text("utf-8")}
    assert by_name <= {"plugins.py", "moved.py"}, "nothing else is imported by a computed name"


SQL_CALLS = {"execute", "executemany", "executescript", "fetchone", "fetchall", "fetchmany", "connect"}


BOUNDED_READS = {"log/database.py": ["read", "glance"]}
"""Async functions that call SQLite on the event loop's thread by design: `read` is interrupted after STEPS steps, and
`glance` reads a few rows by an index."""


def own_calls(function: ast.AST) -> set[str]:
    """Return the calls that a function makes itself, not those of nested functions that it passes on."""
    found, waiting = set[str](), list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
            found.add(node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id)
        waiting += ast.iter_child_nodes(node)
    return found


def blocking_calls(text: str) -> list[str]:
    """Return the async functions of a module that call SQLite directly, or through another function of the module."""
    nodes = list(ast.walk(ast.parse(text)))
    blocking, more = set[str](), SQL_CALLS
    while more:
        blocking |= more
        plain = [node for node in nodes if isinstance(node, ast.FunctionDef)]
        more = {each.name for each in plain if own_calls(each) & blocking} - blocking
    return [node.name for node in nodes if isinstance(node, ast.AsyncFunctionDef) and own_calls(node) & blocking]


def test_async_functions_do_not_call_sqlite_directly() -> None:
    by_another = "def _find(c):\n    return c.execute('')\n\nasync def find(c):\n    return _find(c)\n"
    handed_over = "async def find(d):\n    return await d.read(lambda c: c.execute(''))\n"
    assert blocking_calls(by_another) == ["find"]
    assert blocking_calls(handed_over) == []
    texts = {str(path.relative_to(SOURCE)): path.read_text("utf-8") for path in FILES}
    found = {name: calls for name, text in texts.items() if "sqlite3" in text and (calls := blocking_calls(text))}
    assert found == BOUNDED_READS
