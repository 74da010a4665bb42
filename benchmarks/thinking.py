"""What a thought costs that is a task elsewhere: the same questions to the same endpoint, asked here and by workers.

    python benchmarks/thinking.py --json [--calls 64] [--seconds 0.5] [--engines ray,processes]

The server is benchmarks/latency_server.py, in a process of its own; it speaks after so many seconds, as a provider does
(0: all that is left is what asking costs). Eight calls go on at a time. An engine's own beginning is not counted, nor
its workers' first calls.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from mindstream.engines.engine import Engine, open_engine
from mindstream.models.ask import speak
from mindstream.models.prompt import Prompt
from mindstream.models.roles import Models

AT_ONCE = 8


class Answer(Prompt[str]):
    """Say something."""

    role = "talker"

    @classmethod
    def words(cls) -> str:
        return "# user\nGo on."


async def asked(url: str, calls: int, engine: Engine | None = None) -> float:
    """Return the seconds of so many calls, after some that are not counted."""
    async with Models.named({"default": f"{url}#talker"}, engine=engine, at_once=AT_ONCE) as models:
        model = models.of("talker")

        async def say() -> str:
            return "".join([piece async for piece in speak(model, Answer())])

        await asyncio.gather(*(say() for _ in range(AT_ONCE * 2)))
        began = time.perf_counter()
        await asyncio.gather(*(say() for _ in range(calls)))
        return time.perf_counter() - began


async def measure(url: str, given: argparse.Namespace) -> dict[str, Any]:
    """Ask each way."""
    found: dict[str, Any] = {"here_s": round(await asked(url, given.calls), 2)}
    for name in given.engines.split(","):
        async with open_engine(name == "ray", AT_ONCE, 1 / AT_ONCE) as engine:
            found[f"{name}_s"] = round(await asked(url, given.calls, engine), 2)
    return found | {"calls": given.calls, "endpoint_s": given.seconds, "load": round(os.getloadavg()[0], 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--engines", default="ray,processes")
    parser.add_argument("--json", action="store_true", help="one line of JSON")
    given = parser.parse_args()
    command = [sys.executable, str(Path(__file__).with_name("latency_server.py"))]
    command += ["--talker-first-s", str(given.seconds), "--between-s", "0.001"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            found = asyncio.run(measure(f"http://127.0.0.1:{int(server.stdout.readline())}/v1", given))
        finally:
            server.terminate()
    print(json.dumps(found) if given.json else "\n".join(f"{name}: {value}" for name, value in found.items()))


if __name__ == "__main__":
    main()
