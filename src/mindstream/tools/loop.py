"""The one tool loop: ask what to do, do it, show what came of it, until there is an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol, TypeVar

from mindstream.errors import ReplyInvalid, ToolError
from mindstream.models.ask import act
from mindstream.models.model import Call, Message, Model
from mindstream.models.prompt import Prompt, fenced
from mindstream.tools.tool import Tool
from mindstream.tracing import span

R = TypeVar("R")

LONGEST = 8_000
"""How much of a tool's result the model is shown, in characters."""


class Watcher(Protocol):
    """Who is told what the loop does."""

    async def called(self, call: Call) -> None: ...

    async def observed(self, call: Call, text: str, failed: bool) -> None: ...

    async def steered(self) -> str:
        """Return what has come up since the loop began and should be minded; "" for nothing."""


async def solve(
    model: Model,
    prompt: Prompt[R],
    tools: Sequence[Tool],
    watcher: Watcher,
    *,
    steps: int = 6,
    tool_timeout_s: float = 30.0,
    role: str = "",
) -> R:
    """Put a prompt with tools until the model answers; each step's calls run at once.

    Raises:
        ModelError: the model failed, or did not answer in so many steps.
    """
    turns: list[Message] = []
    for step in range(steps):
        if step and (news := await watcher.steered()):
            turns.append(Message("user", "Meanwhile the user said:\n" + fenced(news, "newest_utterances")))
        offered = tools if step < steps - 1 else ()  # at the last step there is nothing left but to answer
        if step and not offered:
            turns.append(Message("user", "No more tools can be called. Answer now."))
        done = await act(model, prompt, [tool.spec for tool in offered], turns, role)
        if not isinstance(done, tuple):
            return done
        words, wished = done
        calls = tuple(Call(call.tool, call.arguments, call.id or f"call_{step}_{n}") for n, call in enumerate(wished))
        turns.append(Message("assistant", words, calls))
        turns.extend(await asyncio.gather(*(_answered(call, offered, watcher, tool_timeout_s) for call in calls)))
    raise ReplyInvalid(f"{model.name} wanted more tools after {steps} steps of {prompt.label()!r}, and gave no answer")


async def _answered(call: Call, tools: Sequence[Tool], watcher: Watcher, timeout_s: float) -> Message:
    with span("execute_tool", call.tool, tool_name=call.tool) as traced:
        text, failed = await _tried(call, tools, watcher, timeout_s)
        traced.set_attribute("mindstream.failed", failed)
    return Message("tool", fenced(text, "result"), call_id=call.id, tool=call.tool)


async def _tried(call: Call, tools: Sequence[Tool], watcher: Watcher, timeout_s: float) -> tuple[str, bool]:
    """Call the tool; return what came of it, and whether it failed."""
    await watcher.called(call)
    failed = True
    try:
        tool = next((tool for tool in tools if tool.spec.name == call.tool), None)
        if tool is None:
            names = ", ".join(tool.spec.name for tool in tools) or "none"
            raise ToolError(f"there is no tool {call.tool!r}; there are: {names}")
        async with asyncio.timeout(timeout_s):
            text, failed = await tool(call), False
    except TimeoutError:
        text = f"{call.tool} did not answer within {timeout_s:.0f} seconds"
    except ToolError as error:
        text = str(error)
    except Exception as error:  # noqa: BLE001 (a tool is foreign code: whatever it raises is told to the model)
        text = f"{call.tool} failed: {type(error).__name__}: {error}"
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]}\n… ({len(text) - LONGEST} characters cut)"
    await watcher.observed(call, text, failed)
    return text, failed
