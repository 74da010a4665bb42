"""The number of files that an utterance passes between `hear` and `said`: those whose functions receive its text."""

from __future__ import annotations

import dataclasses
import inspect
import sys
import threading
from collections.abc import AsyncGenerator
from pathlib import Path
from types import FrameType

from pydantic import BaseModel

import mindstream
from mindstream import Coach, Mind, Said
from mindstream.models.model import Part, Piece, Request

SOURCE = str(Path(mindstream.__file__).parent)
WORDS = "The noise wakes me at three. What can I do about it?"


def holds(value: object, deep: int = 0) -> bool:
    """Return whether a value is the text, or contains it."""
    if isinstance(value, str):
        return WORDS in value
    inner: list[object] = []
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        inner = [getattr(value, field.name, None) for field in dataclasses.fields(value)]
    elif isinstance(value, BaseModel):
        inner = list(value.__dict__.values())
    elif isinstance(value, list | tuple):
        inner = list(value[:50])
    return deep < 3 and any(holds(each, deep + 1) for each in inner)


async def test_an_utterance_passes_through_at_most_thirty_two_files(tmp_path: Path) -> None:
    passed: set[str] = set()

    def look(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(SOURCE) and code.co_filename not in passed:
            names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            if any(holds(frame.f_locals.get(name)) for name in names if name not in ("self", "cls")):
                passed.add(code.co_filename)

    async with Mind.open(tmp_path, user="ann", responder=Coach.using()) as mind:
        await mind.send("Hello, I sleep badly because of the street.")
        await mind.settled()
        before = sys.getprofile()
        sys.setprofile(look)
        threading.setprofile(look)
        try:
            events = [logged.event async for logged in mind.hear(WORDS)]
        finally:
            sys.setprofile(before)
            threading.setprofile(None)
        assert isinstance(events[-1], Said)
    found = sorted(name.removeprefix(SOURCE) for name in passed)
    assert "/minds/mind.py" in found and "/coach/talker.py" in found
    assert len(found) <= 32, "\n".join(found)


class Looks:
    """A model that records the generators of the runtime that await its reply, the innermost first."""

    name = "looks"

    def __init__(self) -> None:
        self.awaited_by: list[str] = []

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        frame = sys._getframe().f_back
        while request.role == "talker" and frame:
            code = frame.f_code
            if code.co_flags & inspect.CO_ASYNC_GENERATOR and code.co_filename.startswith(SOURCE):
                self.awaited_by.append(f"{Path(code.co_filename).stem}.{code.co_name}")
            frame = frame.f_back
        yield Piece("Hello. " if request.role == "talker" else '{"thought": "a greeting"}')


async def test_streamed_words_pass_one_generator_behind_the_model(tmp_path: Path) -> None:
    model = Looks()
    async with Mind.open(tmp_path, user="ann", model=model, responder=Coach.using()) as mind:
        assert await mind.send("Hello!") == "Hello."
    assert model.awaited_by == ["model._read"]


async def test_belief_and_plan_are_read_once_per_turn(tmp_path: Path) -> None:
    read = 0

    def look(frame: FrameType, event: str, _: object) -> None:
        nonlocal read
        code = frame.f_code  # a coroutine is called once more each time that it resumes
        read += event == "call" and code.co_qualname == "Stream.version" and frame.f_lasti < 10

    async with Mind.open(tmp_path, user="ann", model=Looks(), responder=Coach.using()) as mind:
        await mind.send("Hello!")
        await mind.settled()
        before = sys.getprofile()
        sys.setprofile(look)
        try:
            async for logged in mind.hear("And again, hello."):
                if isinstance(logged.event, Said):
                    break
        finally:
            sys.setprofile(before)
    assert read == 2
