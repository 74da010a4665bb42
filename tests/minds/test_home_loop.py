"""A mind belongs to the event loop that opened it, and serves callers on others; a memory used after a fork refuses."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest

from mindstream import Coach, Mind
from mindstream.errors import InputError
from mindstream.log.events import Heard, Said

T = TypeVar("T")


def on_a_new_loop(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(work, 60))


async def stream(mind: Mind, *, breaks: bool = False) -> list[str]:
    kinds = []
    async for event in mind.stream("And now?"):
        kinds.append(event.kind)
        if breaks:
            break
    return kinds


def test_a_mind_of_an_idle_event_loop_serves_other_loops(tmp_path: Path) -> None:
    home = asyncio.new_event_loop()
    opening = Mind.open(tmp_path, user="ann", responder=Coach.using(pack="sleep"))
    mind = home.run_until_complete(opening.__aenter__())
    try:
        assert on_a_new_loop(mind.send("I sleep badly."))
        assert on_a_new_loop(stream(mind, breaks=True)) == [Heard.kind]
        on_a_new_loop(mind.settled())
        kinds = on_a_new_loop(stream(mind))
        assert (kinds[0], kinds[-1]) == (Heard.kind, Said.kind)
        with pytest.raises(InputError, match="empty"):
            on_a_new_loop(mind.send("  "))
        answers: list[str] = []

        def ask() -> None:
            answers.append(on_a_new_loop(mind.send("Hello?")))

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(answers) == 3 and all(answers)
        assert home.run_until_complete(mind.send("Are you here, too?")), "its own event loop is unchanged"
        on_a_new_loop(opening.__aexit__(None, None, None))
        home.run_until_complete(asyncio.sleep(0.01))  # the last cancelled task ends
    finally:
        home.close()
    with pytest.raises(InputError, match="event loop that is closed; open the mind on the loop that calls it"):
        on_a_new_loop(mind.send("Hello?"))


async def test_a_mind_of_a_running_event_loop_serves_a_thread(tmp_path: Path) -> None:
    async with Mind.open(tmp_path, user="ann", responder=Coach.using(pack="sleep")) as mind:
        assert await asyncio.to_thread(on_a_new_loop, mind.send("I sleep badly."))
        assert await asyncio.to_thread(on_a_new_loop, stream(mind))
        await mind.settled()


FORKS = """
import asyncio, os, sys
from mindstream import Memory
from mindstream.errors import StorageError

async def use(memory, text):
    return await asyncio.wait_for(memory.retain(text, "note"), 20)

def in_child(memory):
    for ask in (use(memory, "x"), memory.latest("note", 5), memory.get("abcdefgh")):
        try:
            asyncio.run(ask)
        except StorageError as error:
            assert "before this process was forked: open the memory again" in str(error), error
        else:
            os._exit(2)
    async def open_again():
        async with Memory.open(sys.argv[1], "ann") as own:
            return len(await own.latest("note", 5))
    os._exit(0 if asyncio.run(open_again()) == 1 else 3)

loop = asyncio.new_event_loop()
opening = Memory.open(sys.argv[1], "ann")
memory = loop.run_until_complete(opening.__aenter__())
loop.run_until_complete(use(memory, "The bike is blue."))
if (child := os.fork()) == 0:
    in_child(memory)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert loop.run_until_complete(memory.recall("bike"))[0].record.text == "The bike is blue."
loop.run_until_complete(opening.__aexit__(None, None, None))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
def test_a_memory_used_after_a_fork_raises_an_error(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", FORKS, tmp_path], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
