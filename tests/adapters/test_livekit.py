"""A coach behind a LiveKit voice agent, in LiveKit's test harness: immediate, late, cancelled and repeated answers."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("livekit.agents", reason="livekit-agents is not installed: `make adapters` has it")

from delegated import Slow, at_once
from livekit.agents import Agent, AgentSession
from livekit.agents.llm import LLM, ChatChunk, ChoiceDelta, FunctionToolCall, LLMStream
from livekit.agents.types import DEFAULT_API_CONNECT_OPTIONS

from mindstream import Mind, answer_with
from mindstream.adapters.livekit import CoachToolset

OURS = {"from livekit_coach import CoachToolset": "from mindstream.adapters.livekit import CoachToolset"}


@pytest.mark.parametrize("replaced", [False, True], ids=["its own", "ours"])
def test_the_program_runs(replaced: bool, run_program: Callable[..., None], tmp_path: Path) -> None:
    shutil.copy(Path(__file__).parent / "programs" / "livekit_coach.py", tmp_path)
    run_program("livekit_text", OURS if replaced else {})


class Voice(LLM):
    """Delegates questions of the user, cancels at `stop`, and speaks tool results."""

    def __init__(self) -> None:
        super().__init__()
        self.calls, self.told = 0, set[str]()

    def chat(self, *, chat_ctx: Any, tools: Any = None, conn_options: Any = DEFAULT_API_CONNECT_OPTIONS, **more: Any):  # type: ignore[no-untyped-def]
        return Words(self, chat_ctx=chat_ctx, tools=tools or [], conn_options=conn_options)


class Words(LLMStream):
    async def _run(self) -> None:
        items = self.chat_ctx.items
        outputs = [each for each in items if each.type == "function_call_output" and each.reply_required]
        news = [each for each in outputs if each.call_id not in self._llm.told]
        talk = [each for each in items if each.type != "message" or each.role in ("user", "assistant")]
        last = talk[-1].text_content if talk[-1].type == "message" and talk[-1].role == "user" else ""
        if not last:
            self._llm.told |= {each.call_id for each in news}
            delta = ChoiceDelta(role="assistant", content=" | ".join(each.output for each in news))
        else:
            self._llm.calls += 1
            name, arguments = "ask_coach", {"question": last}
            if last == "stop":
                call = next(each for each in items if each.type == "function_call")
                name, arguments = "lk_agents_cancel_task", {"call_id": call.call_id}
            asked = FunctionToolCall(name=name, arguments=json.dumps(arguments), call_id=f"call{self._llm.calls}")
            delta = ChoiceDelta(role="assistant", tool_calls=[asked])
        self._event_ch.send_nowait(ChatChunk(id="1", delta=delta))


class Line:
    """A user in a call: sends messages and receives speech."""

    def __init__(self, session: AgentSession[Any]) -> None:
        self.session, self.heard, self.ended, self._more = session, list[str](), 0, asyncio.Event()
        session.on("conversation_item_added", self._add)
        session.on("tool_execution_updated", self._count)

    def _add(self, event: Any) -> None:
        if event.item.type == "message" and event.item.role == "assistant":
            self.heard.append(event.item.text_content)
            self._more.set()

    def _count(self, event: Any) -> None:
        self.ended += event.update.type == "tool_call_ended"
        self._more.set()

    async def say(self, text: str) -> None:
        await self.session.run(user_input=text)

    async def until(self, text: str, times: int = 1, ended: int = 0) -> None:
        async with asyncio.timeout(100):
            while sum(each.count(text) for each in self.heard) < times or self.ended < ended:
                self._more.clear()
                await self._more.wait()


@asynccontextmanager
async def calling(mind: Mind) -> AsyncIterator[Line]:
    async with AgentSession(llm=Voice(), tools=[CoachToolset(mind)]) as session:
        line = Line(session)
        await session.start(Agent(instructions="Pass it on."))
        yield line


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[tuple[Mind, Slow]]:
    slow = Slow()
    async with Mind.open(folder, user="ann", responder=answer_with(at_once), reasoners=[slow]) as mind:
        yield mind, slow


async def heard_by(mind: Mind) -> list[str]:
    return [row.event.text async for row in mind.memory.log(kinds=["heard"])]  # type: ignore[attr-defined]


async def test_the_talker_answers_at_once_and_follow_ups_are_spoken_unasked(tmp_path: Path) -> None:
    async with opened(tmp_path) as (mind, slow), calling(mind) as line:
        await line.say("hills")
        assert (
            line.heard[0].startswith("The coach says: At once about hills\n")
            and len(line.heard) == 1
            and slow.acts == []
        )
        slow.go.set()
        await line.until("Later about hills")
        assert await heard_by(mind) == ["hills"] and slow.acts == ["hills"]


async def test_a_repeated_question_is_processed_and_acted_on_once(tmp_path: Path) -> None:
    async with opened(tmp_path) as (mind, slow), calling(mind) as line:
        slow.go.set()
        await line.say("hills")
        await line.until("Later about hills", ended=1)
        await line.say("Hills")
        await line.until("At once about hills", 2, ended=2)
        assert await heard_by(mind) == ["hills"] and slow.acts == ["hills"]
        await line.say("shoes")
        await line.until("Later about shoes")
        assert await heard_by(mind) == ["hills", "shoes"]


async def test_a_cancelled_question_stops_the_reasoners_and_is_not_spoken(tmp_path: Path) -> None:
    async with opened(tmp_path) as (mind, slow), calling(mind) as line:
        await line.say("hills")
        await line.say("stop")
        await mind.settled()
        slow.go.set()
        assert slow.stopped == ["hills"]
        await line.say("shoes")
        await line.until("Later about shoes")
        assert not any("Later about hills" in each for each in line.heard) and slow.acts == ["shoes"]


async def test_a_message_heard_before_hanging_up_is_processed(tmp_path: Path) -> None:
    async with opened(tmp_path) as (mind, slow):
        async with calling(mind) as line:
            await line.say("hills")
        slow.go.set()
        await mind.settled()
        assert slow.acts == ["hills"] and not slow.stopped
