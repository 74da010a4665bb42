"""A garden shop's assistant with a session per customer (OpenAI Agents SDK, offline).

The model is a scripted subclass of the SDK's Model interface: it orders through a tool, and answers
from its input, so that a forgotten history shows in the answers.
"""
import asyncio
from collections.abc import AsyncIterator

from agents import (
    Agent, Model, ModelResponse, RunConfig, Runner, SessionSettings, Usage, function_tool, set_tracing_disabled,
)
from openai.types.responses import (
    Response, ResponseCompletedEvent, ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText,
)

from agents import SQLiteSession

open_session = SQLiteSession  # <- here    open_session("customer id") gives that customer's session

set_tracing_disabled(True)


def text_of(item) -> str:
    content = item.get("content", "")
    return content if isinstance(content, str) else " ".join(part.get("text", "") for part in content)


class ShopModel(Model):
    """Understands three sentences: 'My name is X', 'I'd like N PLANT', and questions about both."""

    def __init__(self) -> None:
        self.inputs: list[list] = []
        self.calls = 0

    def _answer(self, items: list) -> list:
        self.calls += 1
        users = [text_of(i) for i in items if i.get("role") == "user"]
        last = items[-1]
        if last.get("type") == "function_call_output":
            return [self._message(str(last["output"]))]
        said = users[-1]
        if said.startswith("I'd like "):
            number, plant = said.removeprefix("I'd like ").rstrip(".").split(" ", 1)
            return [ResponseFunctionToolCall(
                type="function_call", id=f"fc_{self.calls}", call_id=f"call_{self.calls}", name="order",
                arguments=f'{{"plant": "{plant}", "number": {number}}}',
            )]
        if said.startswith("What is my name"):
            names = [u.removeprefix("My name is ").rstrip(".") for u in users if u.startswith("My name is ")]
            return [self._message(f"You are {names[-1]}." if names else "I don't know your name.")]
        if said.startswith("What have I ordered"):
            outputs = [str(i["output"]) for i in items if i.get("type") == "function_call_output"]
            return [self._message("So far: " + "; ".join(outputs) if outputs else "Nothing yet.")]
        return [self._message("Welcome to the garden shop!")]

    def _message(self, text: str) -> ResponseOutputMessage:
        return ResponseOutputMessage(
            id=f"msg_{self.calls}", type="message", role="assistant", status="completed",
            content=[ResponseOutputText(type="output_text", text=text, annotations=[])],
        )

    async def get_response(self, system_instructions, input, *args, **kwargs) -> ModelResponse:
        items = [{"role": "user", "content": input}] if isinstance(input, str) else list(input)
        self.inputs.append(items)
        return ModelResponse(output=self._answer(items), usage=Usage(), response_id=None)

    async def stream_response(self, system_instructions, input, *args, **kwargs) -> AsyncIterator:
        response = await self.get_response(system_instructions, input)
        yield ResponseCompletedEvent(type="response.completed", sequence_number=0, response=Response(
            id="resp_1", created_at=0, model="scripted", object="response", output=response.output,
            tool_choice="auto", tools=[], parallel_tool_calls=False,
        ))


@function_tool
def order(plant: str, number: int) -> str:
    """Order plants for the customer."""
    return f"{number} x {plant} ordered"


model = ShopModel()
agent = Agent(name="Garden shop", instructions="You sell plants.", model=model, tools=[order])


async def turn(text: str, session, **kwargs) -> str:
    return (await Runner.run(agent, text, session=session, **kwargs)).final_output


async def main() -> None:
    ida, tom = open_session("ida"), open_session("tom")
    assert ida.session_id == "ida" and await ida.get_items() == [] and await ida.pop_item() is None

    # Several turns; the history comes from the session, not from the caller.
    await turn("My name is Ida.", ida)
    assert await turn("I'd like 3 lavender.", ida) == "3 x lavender ordered"
    assert await turn("What is my name?", ida) == "You are Ida."
    items = await ida.get_items()
    kinds = [i.get("role") or i.get("type") for i in items]
    assert kinds == ["user", "assistant", "user", "function_call", "function_call_output", "assistant",
                     "user", "assistant"], kinds
    assert items[3]["call_id"] == items[4]["call_id"] and items[3]["arguments"] == '{"plant": "lavender", "number": 3}'

    # get_items(limit) gives the newest ones, in chronological order.
    assert await ida.get_items(limit=2) == items[-2:]
    assert await ida.get_items(limit=100) == items
    assert text_of((await ida.get_items(limit=1))[0]) == "You are Ida."

    # The other customer's session is another history; both may run at the same time.
    assert await turn("What is my name?", tom) == "I don't know your name."
    await asyncio.gather(turn("My name is Tom.", tom), turn("I'd like 1 rosemary.", ida))
    assert await turn("What is my name?", tom) == "You are Tom."
    assert await turn("What have I ordered?", tom) == "Nothing yet."
    assert await turn("What have I ordered?", ida) == "So far: 3 x lavender ordered; 1 x rosemary ordered"

    # Correction: remove the last question and its answer, then ask again.
    await turn("My name is Tim.", tom)
    answer, question = await tom.pop_item(), await tom.pop_item()
    assert answer["role"] == "assistant" and text_of(question) == "My name is Tim."
    assert await turn("What is my name?", tom) == "You are Tom."

    # Items of an earlier conversation, added by hand (an import from the shop's old system).
    await tom.add_items([
        {"role": "user", "content": "My name is Thomas."},
        {"role": "assistant", "content": "Grüß Gott, Thomas 🌱"},
    ])
    assert (await tom.get_items(limit=1))[0] == {"role": "assistant", "content": "Grüß Gott, Thomas 🌱"}
    assert await turn("What is my name?", tom) == "You are Thomas."

    # A run can be limited to the newest items: the model then sees only those, the session keeps all.
    before = len(await ida.get_items())
    limited = RunConfig(session_settings=SessionSettings(limit=2))
    assert await turn("What is my name?", ida, run_config=limited) == "I don't know your name."
    assert len(model.inputs[-1]) == 3
    assert len(await ida.get_items()) == before + 2

    # A streamed run stores its turn, too.
    streamed = Runner.run_streamed(agent, "I'd like 2 thyme.", session=ida)
    async for _ in streamed.stream_events():
        pass
    assert streamed.final_output == "2 x thyme ordered"
    assert text_of((await ida.get_items(limit=4))[0]) == "I'd like 2 thyme."

    # clear_session empties this session only, and it can be used again.
    await ida.clear_session()
    assert await ida.get_items() == [] and len(await tom.get_items()) > 0
    assert await turn("What have I ordered?", ida) == "Nothing yet."


asyncio.run(main())
print("ok")
