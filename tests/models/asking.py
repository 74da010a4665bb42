"""Prompts and helpers for tests of models."""

from __future__ import annotations

from pydantic import BaseModel

from mindstream.clock import ManualClock
from mindstream.models.model import Message, Model, Part, Piece, Request, ToolSpec
from mindstream.models.prompt import Prompt


class Talk(Prompt[str]):
    text: str = "hi"

    @classmethod
    def words(cls) -> str:
        return "# system\nBe kind.\n# user\n{{ text }}"


class Grade(BaseModel):
    score: int


class Judge(Prompt[Grade]):
    work: str = "an essay"

    @classmethod
    def words(cls) -> str:
        return "# user\nGrade {{ work }}. Answer as {{ schema }}"


ADD = ToolSpec(
    "add",
    "Add two whole numbers.",
    {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
        "additionalProperties": False,
    },
)


def talk(text: str = "hi", *turns: Message, tools: tuple[ToolSpec, ...] = ()) -> Request:
    return Request(Talk(text=text), "talker", turns, tools)


async def parts_of(model: Model, request: Request | None = None) -> list[Part]:
    return [part async for part in model.reply(request or talk())]


def text_of(parts: list[Part]) -> str:
    return "".join(part.text for part in parts if isinstance(part, Piece))


class Patient(ManualClock):
    """A manual clock on which sleeping advances the time at once; it records the sleeps."""

    def __init__(self) -> None:
        super().__init__()
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.advance(seconds)
