"""A running club's voice agent with a slow coach, tested by text in LiveKit's own harness (offline).

The runner hears at once that the coach is thinking, then an update, then the answer, and may call it
off. The LLM is a scripted subclass of LiveKit's LLM.
"""
import asyncio
import json
import logging
from contextlib import asynccontextmanager

from livekit.agents import Agent, AgentSession
from livekit.agents.llm import LLM, ChatChunk, ChoiceDelta, FunctionToolCall, LLMStream
from livekit.agents.types import DEFAULT_API_CONNECT_OPTIONS

from livekit_coach import CoachToolset

new_toolset = CoachToolset  # <- here    new_toolset(coach) makes the tools of one session

logging.getLogger("livekit.agents").setLevel(logging.CRITICAL)
log: list[tuple[str, str]] = []  # what happened to the coach: (event, question)


async def coach(question: str, tell) -> str:
    """The slow one. (A real one would ask a large model.)"""
    log.append(("asked", question))
    try:
        if "broken" in question:
            await asyncio.sleep(0.1)
            raise RuntimeError("no connection")
        await asyncio.sleep(0.4)
        await tell("The coach looked at your last four weeks.")
        await asyncio.sleep(0.4)
    except asyncio.CancelledError:
        log.append(("cancelled", question))
        raise
    log.append(("answered", question))
    return f"Advice on {question}: three easy runs and one long run."


class ClubLLM(LLM):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def chat(self, *, chat_ctx, tools=None, conn_options=DEFAULT_API_CONNECT_OPTIONS, **kwargs) -> LLMStream:
        return ClubStream(self, chat_ctx=chat_ctx, tools=tools or [], conn_options=conn_options)


class ClubStream(LLMStream):
    """Delegates 'plan …', calls it off at 'never mind', reports tool outputs, and answers the rest itself."""

    async def _run(self) -> None:
        items = [i for i in self.chat_ctx.items if i.type != "message" or i.role in ("user", "assistant")]
        last = items[-1]
        deferred = self.chat_ctx.items[-1].type == "message" and self.chat_ctx.items[-1].role in ("system", "developer")
        if deferred or last.type == "function_call_output":
            output = next(i for i in reversed(items) if i.type == "function_call_output")
            self._say(f"News: {output.output.splitlines()[0]}")
        elif "plan " in last.text_content:
            self._call("ask_coach", question=last.text_content.split("plan ", 1)[1])
        elif "never mind" in last.text_content.lower():
            running = next(i for i in reversed(items) if i.type == "function_call" and i.name == "ask_coach")
            self._call("lk_agents_cancel_task", call_id=running.call_id.split("_update")[0])
        else:
            self._say("We meet at six at the bridge.")

    def _say(self, text: str) -> None:
        self._event_ch.send_nowait(ChatChunk(id="text", delta=ChoiceDelta(role="assistant", content=text)))

    def _call(self, name: str, **arguments) -> None:
        self._llm.calls += 1
        call = FunctionToolCall(name=name, arguments=json.dumps(arguments), call_id=f"call{self._llm.calls}")
        self._event_ch.send_nowait(ChatChunk(id="call", delta=ChoiceDelta(role="assistant", tool_calls=[call])))


class Phone:
    """A session with a runner on the line; keeps what the agent said and how its tool calls ended."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.ended: list[tuple[str, str]] = []
        self.session = AgentSession(llm=ClubLLM())
        self.session.on("conversation_item_added", self._on_item)
        self.session.on("tool_execution_updated", self._on_tool)

    def _on_item(self, event) -> None:
        if event.item.type == "message" and event.item.role == "assistant":
            self.said.append(event.item.text_content)

    def _on_tool(self, event) -> None:
        if event.update.type == "tool_call_ended":
            self.ended.append((event.update.call_id, event.update.status))

    @asynccontextmanager
    async def call(self):
        async with self.session:
            await self.session.start(Agent(instructions="You help runners.", tools=[new_toolset(coach)]))
            yield self

    def heard(self, text: str) -> bool:
        return any(text in sentence for sentence in self.said)

    async def until_heard(self, text: str) -> None:
        async with asyncio.timeout(5):
            while not self.heard(text):
                await asyncio.sleep(0.02)


async def main() -> None:
    async with Phone().call() as phone:
        # Delegated: the run is over at once, with a word about it, long before the coach is.
        result = await asyncio.wait_for(phone.session.run(user_input="Please plan my week"), 0.35)
        result.expect.next_event().is_function_call(name="ask_coach", arguments={"question": "my week"})
        output = result.expect.next_event().is_function_call_output(is_error=False)
        assert "my week" in output.event().item.output
        message = result.expect.next_event().is_message(role="assistant")
        assert "my week" in message.event().item.text_content
        result.expect.no_more_events()
        assert log == [("asked", "my week")]

        # The conversation continues.
        result = await phone.session.run(user_input="When do we meet?")
        assert result.expect.next_event().is_message(role="assistant").event().item.text_content.startswith("We meet at six")
        result.expect.no_more_events()
        # A second question while the coach is thinking is not passed on.
        result = await phone.session.run(user_input="Please plan my year")
        result.expect.contains_function_call(name="ask_coach")
        assert log == [("asked", "my week")] and not phone.heard("Advice")

        # Then the update, then the answer, of the agent's own accord.
        await phone.until_heard("last four weeks")
        assert not phone.heard("Advice")
        await phone.until_heard("Advice on my week: three easy runs")
        assert log == [("asked", "my week"), ("answered", "my week")]
        assert ("call1", "done") in phone.ended

        # Called off: the coach is cancelled, and nothing more comes of it.
        log.clear()
        await phone.session.run(user_input="Please plan my month")
        result = await phone.session.run(user_input="Never mind!")
        result.expect.next_event().is_function_call(name="lk_agents_cancel_task")
        result.expect.next_event().is_function_call_output(is_error=False)
        assert log == [("asked", "my month"), ("cancelled", "my month")]
        said = len(phone.said)
        await asyncio.sleep(1.0)
        assert len(phone.said) == said and not phone.heard("Advice on my month")
        assert "cancelled" in [status for _, status in phone.ended]

        # After that the coach can be asked again; a failing coach leaves the conversation alive.
        log.clear()
        await phone.session.run(user_input="Please plan a broken thing")
        await asyncio.sleep(0.5)
        assert [status for _, status in phone.ended][-1] == "error"
        await phone.session.run(user_input="Please plan my race")
        await phone.until_heard("Advice on my race")

    # Two runners at once have each their own coach's answer; hanging up cancels.
    log.clear()
    async with Phone().call() as one, Phone().call() as two:
        await asyncio.gather(one.session.run(user_input="Please plan hills"), two.session.run(user_input="Please plan rest"))
        await two.session.run(user_input="Never mind!")
        await one.until_heard("Advice on hills")
        assert not one.heard("rest") and not two.heard("hills") and not two.heard("Advice")
        await two.session.run(user_input="Please plan shoes")
    assert log[-1] == ("cancelled", "shoes") and ("cancelled", "rest") in log and ("answered", "hills") in log, log


asyncio.run(main())
print("ok")
