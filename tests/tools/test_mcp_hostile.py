"""MCP servers whose small messages are expensive to parse: they affect one call, never this process."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import shlex
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from mindstream.errors import ToolError
from mindstream.models.model import Call
from mindstream.tools.mcp.mcp import mcp_tools
from mindstream.tools.mcp.pins import Pins
from mindstream.tools.mcp.server import McpServer

RAW = Path(__file__).parent / "mcp_servers" / "raw.py"
HELLO = Call("echo", '{"text": "hello"}')
TICK_S = 0.02
MOST_KILOBYTES = 60_000
opened = partial(mcp_tools, approve=lambda changes: True)


@pytest.fixture
def pins(tmp_path: Path) -> Pins:
    return Pins(tmp_path / "mcp.json")


def raw(how: str, more: object = "", timeout_s: float = 60.0) -> McpServer:
    address = shlex.join([sys.executable, str(RAW), how, str(more)])
    return McpServer(address, name="raw", timeout_s=timeout_s)


@asynccontextmanager
async def held_by_nobody() -> AsyncIterator[None]:
    """Check that the event loop of this process is not blocked and its memory stays small."""
    clock = asyncio.get_running_loop().time
    start, ticks = clock(), 0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(TICK_S)
            ticks += 1

    beating = asyncio.ensure_future(tick())
    yield
    beating.cancel()
    assert ticks >= (clock() - start) / TICK_S / 4, "the loop was blocked for too many ticks"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_KILOBYTES


@pytest.mark.parametrize("how", ["empty blocks", "many texts", "deep"])
async def test_an_expensive_answer_affects_only_its_own_call(how: str, pins: Pins) -> None:
    other = McpServer(shlex.join([sys.executable, str(RAW)]), name="other")
    async with opened(raw(how, timeout_s=20.0), other, pins=pins) as tools:
        bad, good = tools
        async with held_by_nobody():
            with contextlib.suppress(ToolError):
                assert len(await bad(HELLO)) < 2_000_000
            assert await good(Call(good.spec.name, HELLO.arguments)) == "hello"


async def test_an_answer_over_the_limits_gives_an_error_and_restarts_the_server(pins: Pins) -> None:
    async with opened(raw("empty blocks"), pins=pins) as (echo,):
        for _ in range(2):
            with pytest.raises(ToolError, match=r"raw: .* a message that takes more than \d+ (MB|seconds) to read"):
                await echo(HELLO)


async def test_an_expensive_tool_list_excludes_the_tool_or_server(pins: Pins) -> None:
    async with held_by_nobody(), opened(raw("many patterns"), pins=pins) as tools:
        assert [tool.spec.name for tool in tools] == ["echo"]
        assert "patterns" in tools.refused["raw/p0"]
    with pytest.raises(ToolError, match="its list of tools has more than"):
        async with held_by_nobody(), opened(raw("too long a list"), pins=pins):
            pass


async def test_unpaired_surrogates_are_replaced_and_the_server_stays(pins: Pins) -> None:
    async with opened(raw("half a character"), pins=pins) as tools:
        assert [tool.spec.description for tool in tools] == ["Say it again.", "Look at � it."]
        assert await tools[0](HELLO) == "half of � it"


def is_running(number: Path) -> bool:
    try:
        os.kill(int(number.read_text("utf-8")), 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.skipif(sys.platform != "linux", reason="who adopts orphans can be said on Linux only")
@pytest.mark.parametrize("said", ["stay", "die"])
async def test_processes_started_by_a_server_end_with_it(said: str, pins: Pins, tmp_path: Path) -> None:
    number = tmp_path / "pid"
    async with opened(raw("runs away", number), pins=pins) as (echo,):
        with contextlib.suppress(ToolError):
            assert await echo(Call("echo", f'{{"text": "{said}"}}')) == said
        assert number.exists()
    assert not is_running(number)


def test_the_mcp_sdk_is_not_imported_in_this_process(tmp_path: Path) -> None:
    script = (
        "import asyncio, sys; from pathlib import Path; from mindstream.tools.mcp.mcp import mcp_tools;"
        "from mindstream.tools.mcp.pins import Pins\n"
        "async def main():\n"
        "    async with mcp_tools(sys.argv[1], pins=Pins(Path(sys.argv[2])), approve=lambda changes: True) as tools:\n"
        "        print(len(tools), [name for name in ('mcp', 'mcp_types', 'httpx2', 'anyio') if name in sys.modules])\n"
        "asyncio.run(main())"
    )
    command = [sys.executable, "-c", script, shlex.join([sys.executable, str(RAW)]), str(tmp_path / "pins")]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "1 []\n"
