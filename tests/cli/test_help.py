from __future__ import annotations

import subprocess
import sys

from running import run

import mindstream


def test_without_a_command_help_with_examples_is_shown() -> None:
    done = run()
    assert done.code == 0 and "mindstream chat --model" in done.out and "doctor" in done.out


def test_the_version_equals_that_of_the_package() -> None:
    assert run("--version").out == f"mindstream {mindstream.__version__}\n"


def test_help_loads_nothing_heavy() -> None:
    heavy = ["asyncio", "numpy", "pydantic", "pydantic_ai", "prompt_toolkit", "wordllama", "sqlite3"]
    code = (
        "import sys; from mindstream.cli.edge import run; code = run(['--help']);"
        f"print([name for name in {heavy} if name in sys.modules], code, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[] 0"


def test_the_order_of_commands_does_not_depend_on_imports() -> None:
    first = "import mindstream.cli.memory.care, mindstream_town.commands.metrics, mindstream.cli.pool_learning;"
    code = "from mindstream.cli.edge import run; [run([name, '--help']) for name in ('memory', 'town', 'pool')]"
    one, other = (
        subprocess.run([sys.executable, "-c", each], capture_output=True, text=True, check=True).stdout
        for each in (code, first + code)
    )
    assert one == other and one.count("Usage") == 3
