"""A bakery takes orders by chat; every customer's conversation is a chat message history."""
import asyncio
import re

from langchain_core.chat_history import InMemoryChatMessageHistory  # <- here
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, SystemMessage, ToolMessage, trim_messages
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnablePassthrough
from langchain_core.runnables.history import RunnableWithMessageHistory

sessions = {}


def get_session_history(session_id: str):
    if session_id not in sessions:
        sessions[session_id] = InMemoryChatMessageHistory()  # <- here
    return sessions[session_id]


class BakerModel(BaseChatModel):
    """Scripted: adds up what the human messages it sees have ordered."""

    @property
    def _llm_type(self):
        return "baker"

    def reply(self, messages):
        order = {}
        for message in messages:
            if isinstance(message, HumanMessage):
                for count, thing in re.findall(r"(\d+) (\w+)", message.content):
                    order[thing] = order.get(thing, 0) + int(count)
        basket = ", ".join(f"{n} {t}" for t, n in sorted(order.items())) or "nothing yet"
        return f"{messages[0].content} Your order: {basket}."

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        message = AIMessage(self.reply(messages), response_metadata={"model_name": "baker-1"},
                            usage_metadata={"input_tokens": len(messages), "output_tokens": 1,
                                            "total_tokens": len(messages) + 1})
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _stream(self, messages, stop=None, run_manager=None, **kwargs):
        for word in re.findall(r"\S+\s*", self.reply(messages)):
            yield ChatGenerationChunk(message=AIMessageChunk(word))


prompt = ChatPromptTemplate.from_messages([
    ("system", "Bakery Crumb, {branch}."),
    MessagesPlaceholder("history"),
    ("human", "{input}"),
])
chain = prompt | BakerModel()
chat = RunnableWithMessageHistory(
    chain, get_session_history, input_messages_key="input", history_messages_key="history")


def session(name):
    return {"configurable": {"session_id": name}}


def say(name, text):
    return chat.invoke({"branch": "Mill Lane", "input": text}, session(name)).content


# --- two customers, turn and turn about
assert say("ada", "Good morning!") == "Bakery Crumb, Mill Lane. Your order: nothing yet."
assert say("ada", "I take 2 rolls").endswith("Your order: 2 rolls.")
assert say("bob", "1 cake for my daughter").endswith("Your order: 1 cake.")
assert say("ada", "and 3 rolls more, 1 pretzel").endswith("Your order: 1 pretzel, 5 rolls.")
assert say("bob", "What have I ordered?").endswith("Your order: 1 cake.")

ada, bob = get_session_history("ada"), get_session_history("bob")
assert [m.type for m in ada.messages] == ["human", "ai"] * 3 and len(bob.messages) == 4
assert [m.content for m in ada.messages[::2]] == ["Good morning!", "I take 2 rolls", "and 3 rolls more, 1 pretzel"]
assert not any("Bakery Crumb" in m.content for m in ada.messages if m.type == "human")
assert all("cake" not in m.content for m in ada.messages)
last = ada.messages[-1]
assert isinstance(last, AIMessage) and last.response_metadata["model_name"] == "baker-1"
assert last.usage_metadata["input_tokens"] == 6  # system, two turns, the question

# --- streaming: the chunks become one message in the history
text = "".join(c.content for c in chat.stream({"branch": "Station", "input": "2 buns"}, session("bob")))
assert text == "Bakery Crumb, Station. Your order: 2 buns, 1 cake."
assert bob.messages[-1].content == text and len(bob.messages) == 6 and bob.messages[-1].type in ("ai", "AIMessageChunk")

# --- a batch over both sessions
one, two = chat.batch([{"branch": "Mill Lane", "input": "1 tart"}] * 2, [session("ada"), session("bob")])
assert "1 tart" in one.content and "5 rolls" in one.content and "cake" not in one.content
assert "1 tart" in two.content and "1 cake" in two.content and len(ada.messages) == len(bob.messages) == 8

# --- the history by hand: an agreement by telephone, with a tool's call and result
cleo = get_session_history("cleo")
assert cleo.messages == []
call = AIMessage("", tool_calls=[{"name": "stock", "args": {"item": "brezel", "shops": [1, 2]}, "id": "call-1"}])
by_phone = [SystemMessage("By telephone"), HumanMessage("4 croissants, für Cléo 🥐", name="cleo", id="m-1"), call,
            ToolMessage("12 left", tool_call_id="call-1"), AIMessage("Noted.", additional_kwargs={"clerk": "jo"})]
cleo.add_messages(by_phone)
cleo.add_user_message("Thank you")
cleo.add_ai_message("You are welcome")
assert [m.type for m in cleo.messages] == ["system", "human", "ai", "tool", "ai", "human", "ai"]
assert cleo.messages[:5] == by_phone and cleo.messages[1].id == "m-1"
assert cleo.messages[2].tool_calls[0]["args"] == {"item": "brezel", "shops": [1, 2]}
assert cleo.messages[4].additional_kwargs == {"clerk": "jo"}
assert "Human: Thank you\nAI: You are welcome" in str(cleo)
assert say("cleo", "plus 1 roll").endswith("Your order: 4 croissants, 1 roll.")

# --- a forgetful counter: only the last two messages reach the model, the history keeps all
trim = RunnablePassthrough.assign(history=lambda x: trim_messages(
    x["history"], max_tokens=2, token_counter=len, strategy="last", start_on="human"))
short = RunnableWithMessageHistory(
    trim | chain, get_session_history, input_messages_key="input", history_messages_key="history")
for text in ("1 bagel", "2 scones", "3 muffins"):
    reply = short.invoke({"branch": "Harbour", "input": text}, session("dora")).content
assert reply.endswith("Your order: 3 muffins, 2 scones.") and len(get_session_history("dora").messages) == 6


async def afternoon():
    """The same from asynchronous code, two customers at once."""
    ask = {"branch": "Mill Lane", "input": "6 eclairs"}
    first, second = await asyncio.gather(chat.ainvoke(ask, session("eve")), chat.ainvoke(ask, session("finn")))
    assert first.content == second.content and first.content.endswith("Your order: 6 eclairs.")
    streamed = [c.content async for c in chat.astream({"branch": "Mill Lane", "input": "1 eclair"}, session("eve"))]
    assert "1 eclair, 6 eclairs" in "".join(streamed)
    eve, finn = get_session_history("eve"), get_session_history("finn")
    await eve.aadd_messages([HumanMessage("And a bag?"), AIMessage("Of course.")])
    assert len(await eve.aget_messages()) == 6 and (await eve.aget_messages())[-1].content == "Of course."
    await eve.aclear()
    assert await eve.aget_messages() == [] and len(await finn.aget_messages()) == 2


asyncio.run(afternoon())

# --- correcting: the last turn is removed by rewriting the history
kept = list(ada.messages)[:-2]
ada.clear()
ada.add_messages(kept)
assert say("ada", "That is all").endswith("Your order: 1 pretzel, 5 rolls.")
bob.clear()
assert bob.messages == [] and say("bob", "Hello again").endswith("nothing yet.") and len(ada.messages) == 8
print("ok")
