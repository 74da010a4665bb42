"""An OpenAI-compatible server with fixed latencies, in its own process, with its own timestamps.

    python benchmarks/latency_server.py --talker-first-s 0.05 --reasoner-s 8

It prints its port on the first line. The model `talker` streams words, the first after `talker_first_s`; the model
`reasoner` answers with JSON that fits the requested schema. The talker decides to wait for requests of a plan or a
step, and to answer small talk alone, following the labels of talker_faults.py. A run of the belief reasoner asks once,
and again if its reply changes the phase. `GET /log` returns the requests and their times by CLOCK_MONOTONIC, which all
processes of a machine share.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import time
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import uvloop
from talker_faults import MIX

WORDS = re.findall(
    r"\S+", "I hear you, and that does sound tiring. What happens in the hour before you go to bed, most evenings?"
)


WISHES, SMALL = frozenset((*MIX["ask"], *MIX["change"])), frozenset((*MIX["small"], "Thanks, that is kind of you."))


@dataclass
class Asked:
    """One request: its model, the last mark `(12.7)` in it, its arrival and the time of the first token."""

    model: str
    mark: str
    came: float
    first: float = 0.0


@dataclass
class Door:
    """What the server does."""

    talker_first_s: float
    between_s: float
    reasoner_s: float
    log: list[Asked]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection, one after the other."""
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                path = head.split(b" ", 2)[1].decode()
                length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
                body = await reader.readexactly(int(length[1])) if length else b""
                if path == "/log":
                    _send(writer, json.dumps([asdict(asked) for asked in self.log]))
                    self.log.clear()
                else:
                    await self._answer(json.loads(body), writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, RuntimeError):  # the last: uvloop's, of a closed one
            pass
        finally:
            writer.close()

    async def _answer(self, body: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        marks = re.findall(r"\(\d+\.\d+\)", str(body["messages"][-1]["content"]))
        asked = Asked(body["model"], marks[-1] if marks else "", time.monotonic())
        self.log.append(asked)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        if asked.model == "talker":
            await asyncio.sleep(self.talker_first_s)
            for n, word in enumerate(begun(body["messages"])):
                if n:
                    await asyncio.sleep(self.between_s)
                writer.write(chunk(word + " "))
                asked.first = asked.first or time.monotonic()
        else:
            text, share = thought(body["messages"])
            await asyncio.sleep(self.reasoner_s * share)
            asked.first = time.monotonic()
            writer.write(chunk(text))
        writer.write(chunk("", "stop") + b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")


def begun(messages: list[dict[str, Any]]) -> list[str]:
    """Return a talker's words; they start with a decision if the prompt asks for one."""
    system, asked = str(messages[0]["content"]), str(messages[-1]["content"])
    if "[WAIT]" not in system:
        return WORDS
    said = re.sub(
        r"\s*\(\d+\.\d+\)", "", asked.rpartition("<the_user_says>")[2].partition("</the_user_says>")[0].strip()
    )
    if said in WISHES or re.search(r"\b(plan|step)\b", said):
        return WORDS if "has thought about this" in asked else ["[WAIT]"]
    return ["[ALONE] ", *WORDS] if said in SMALL else WORDS


def thought(messages: list[dict[str, Any]]) -> tuple[str, float]:
    """Return the reasoner's reply to a prompt, and its share of a run's duration."""
    system, asked = str(messages[0]["content"]), str(messages[-1]["content"])
    if "a life may be in danger" in system:
        return "no", 0.1
    if '"patch"' in system:
        return _thinking(system, asked), 1.0
    return '{"facts": []}', 1.0


def _thinking(system: str, asked: str) -> str:
    found: dict[str, Any] = {"thought": "noted", "patch": {}}
    newest = "\n".join(
        re.findall(r"^user: (.*)", asked.rsplit("<newest_lines>", 1)[-1].partition("</newest_lines>")[0], re.MULTILINE)
    )
    if re.search(r"\b(plan|step)\b", newest):
        step = {"title": "A darker room", "do": "Hang a thick curtain.", "why": "Light wakes.", "state": "now"}
        offer = "Let us begin with a darker room: hang a thick curtain, as light wakes."
        found |= {"plan": [step], "offer": offer}
        if "It is planning now" not in system:
            found["phase"] = "planning"
    elif noise := re.search(r"\b(noise|light|coffee|heat)\b", newest):
        found["patch"] = {"sleep_concern": [noise[1]]}
    return json.dumps(found)


@lru_cache(1_000)
def chunk(text: str, finish: str | None = None) -> bytes:
    """Return one event of a stream as servers send it: one chunk, preceded by its length."""
    choice = {"index": 0, "delta": {"content": text} if text else {}, "finish_reason": finish}
    event: dict[str, Any] = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "any"}
    event["choices"] = [choice]
    if finish:
        event["usage"] = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    data = f"data: {json.dumps(event)}\n\n".encode()
    return b"%x\r\n%b\r\n" % (len(data), data)


def _send(writer: asyncio.StreamWriter, text: str) -> None:
    data = text.encode()
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
    writer.write(f"Content-Length: {len(data)}\r\n\r\n".encode() + data)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--talker-first-s", type=float, default=0.05)
    parser.add_argument("--between-s", type=float, default=0.01)
    parser.add_argument("--reasoner-s", type=float, default=8.0)
    given = parser.parse_args()
    door = Door(given.talker_first_s, given.between_s, given.reasoner_s, [])
    server = await asyncio.start_server(door.serve, "127.0.0.1", 0, limit=2**22)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main())
