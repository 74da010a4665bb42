"""Measure the CPU time of one streamed reply of 20 words, by client library, all in one run.

    python benchmarks/endpoint.py [--replies 100] [--json]

The server is benchmarks/latency_server.py in its own process, without any delay. Clients: mindstream's provider; the
same with all wrappers; OpenAI's client with its typed stream; pydantic-ai's `direct` interface (used for Anthropic and
Google). The clients take turns, so that load on the machine affects all of them alike.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from openai import AsyncOpenAI
from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import ModelRequest, UserPromptPart
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from mindstream.models.model import Message, Model, Request
from mindstream.models.prompt import Prompt
from mindstream.models.providers.provider import provider
from mindstream.models.roles import Models

TALK = [("user" if n % 2 else "assistant", "Noise keeps me awake most nights.") for n in range(30)]


class Answer(Prompt[str]):
    """A conversation of thirty messages, to be continued."""

    role = "talker"

    @classmethod
    def words(cls) -> str:
        return "# user\nGo on."

    def dialogue(self) -> Sequence[Message]:
        return [Message(role, text) for role, text in TALK]  # type: ignore[arg-type]


def ways(url: str) -> dict[str, Callable[[], Awaitable[int]]]:
    """Return the clients; each returns the number of deltas it received."""
    client = AsyncOpenAI(base_url=url, api_key="none", max_retries=0)
    adapter = OpenAIChatModel("talker", provider=OpenAIProvider(openai_client=client))
    plain, wrapped = provider(f"{url}#talker"), Models.named({"default": f"{url}#talker"}).of("talker")
    messages: Any = [*({"role": role, "content": text} for role, text in TALK), {"role": "user", "content": "Go on."}]

    async def ours(model: Model) -> int:
        return len([part async for part in model.reply(Request(Answer(), "talker"))])

    async def typed() -> int:
        stream: Any
        stream = await client.chat.completions.create(model="talker", messages=messages, stream=True)
        return len([chunk async for chunk in stream])

    async def direct() -> int:
        written = [ModelRequest([UserPromptPart(text) for _, text in TALK]), ModelRequest([UserPromptPart("Go on.")])]
        async with model_request_stream(adapter, written) as stream:
            return len([event async for event in stream])

    return {
        "provider": lambda: ours(plain),
        "provider with all wrappers": lambda: ours(wrapped),
        "OpenAI's client, typed": typed,
        "pydantic-ai, direct": direct,
    }


async def measured(url: str, replies: int) -> dict[str, float]:
    """Return the CPU milliseconds per reply, by client."""
    asked = ways(url)
    for ask in asked.values():
        await ask()
    spent = dict.fromkeys(asked, 0.0)
    for _ in range(replies):
        for name, ask in asked.items():
            begun = time.process_time()
            await ask()
            spent[name] += time.process_time() - begun
    return {name: round(cpu / replies * 1000, 2) for name, cpu in spent.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replies", type=int, default=100)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    command = [sys.executable, str(Path(__file__).with_name("latency_server.py"))]
    command += ["--talker-first-s", "0", "--between-s", "0.001"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            found = asyncio.run(measured(f"http://127.0.0.1:{int(server.stdout.readline())}/v1", given.replies))
        finally:
            server.terminate()
    print(json.dumps(found) if given.json else "\n".join(f"{name:28} {ms:6.2f} ms" for name, ms in found.items()))


if __name__ == "__main__":
    main()
