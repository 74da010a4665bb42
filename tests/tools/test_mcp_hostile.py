"""MCP servers that answer small messages that are much to read: they cost one call, and never this process."""

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
    """Hold that this process's loop goes on by ticks, none of which waits for most of the time, and stays small."""
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
    assert ticks >= (clock() - start) / TICK_S / 4, "of the ticks that fit in, most came"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_KILOBYTES


@pytest.mark.parametrize("how", ["empty blocks", "many texts", "deep"])
async def test_an_answer_that_is_much_to_read_costs_one_call(how: str, pins: Pins) -> None:
    other = McpServer(shlex.join([sys.executable, str(RAW)]), name="other")
    async with opened(raw(how, timeout_s=20.0), other, pins=pins) as tools:
        bad, good = tools
        async with held_by_nobody():
            with contextlib.suppress(ToolError):
                assert len(await bad(HELLO)) < 2_000_000
            assert await good(Call(good.spec.name, HELLO.arguments)) == "hello"


async def test_an_answer_that_takes_too_much_is_told_in_words_and_the_server_is_started_again(pins: Pins) -> None:
    async with opened(raw("empty blocks"), pins=pins) as (echo,):
        for _ in range(2):
            with pytest.raises(ToolError, match=r"raw: it sent what takes more than \d+ (MB|seconds) to read"):
                await echo(HELLO)


async def test_a_list_that_is_much_to_read_leaves_the_server_or_its_tools_out(pins: Pins) -> None:
    async with held_by_nobody(), opened(raw("many patterns"), pins=pins) as tools:
        assert [tool.spec.name for tool in tools] == ["echo"]
        assert "patterns" in tools.refused["raw/p0"]
    with pytest.raises(ToolError, match="its list of tools has more than"):
        async with held_by_nobody(), opened(raw("too long a list"), pins=pins):
            pass


async def test_half_a_character_is_a_mark_and_loses_no_server(pins: Pins) -> None:
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
async def test_what_a_server_has_started_ends_with_it_wherever_it_went(said: str, pins: Pins, tmp_path: Path) -> None:
    number = tmp_path / "pid"
    async with opened(raw("runs away", number), pins=pins) as (echo,):
        with contextlib.suppress(ToolError):
            assert await echo(Call("echo", f'{{"text": "{said}"}}')) == said
        assert number.exists()
    assert not is_running(number)


def test_the_protocol_is_not_even_loaded_here(tmp_path: Path) -> None:
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
