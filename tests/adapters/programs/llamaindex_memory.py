"""An allotment club's adviser: LlamaIndex chat engines with a memory for each gardener, over the club's notes."""
import asyncio
import re
import zlib

from llama_index.core import VectorStoreIndex
from llama_index.core.base.llms.types import CompletionResponse, TextBlock
from llama_index.core.chat_engine import ContextChatEngine, SimpleChatEngine
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.llms import ChatMessage, MessageRole, MockLLM
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.memory import Memory  # <- here
from llama_index.core.schema import TextNode

memories = {}


def memory_of(gardener):
    if gardener not in memories:
        memories[gardener] = Memory.from_defaults(session_id=gardener, token_limit=600)  # <- here
    return memories[gardener]


class WordEmbedding(BaseEmbedding):
    """Bag of words, hashed: deterministic and local."""

    def _get_text_embedding(self, text):
        vector = [0.0] * 512
        for word in re.findall(r"[a-z]{4,}", text.lower()):
            vector[zlib.crc32(word.encode()) % 512] += 1.0
        return vector

    def _get_query_embedding(self, query):
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query):
        return self._get_text_embedding(query)


class AdviserLLM(MockLLM):
    """Scripted: name the gardener's plants from the prompt, and the number of notes in it."""

    def answer(self, prompt):
        grows, notes = (sorted(set(re.findall(p, prompt))) for p in (r"user: I grow (\w+)", r"note: (\w+)"))
        return f"You have {' and '.join(grows) or 'nothing'} in your beds ({len(notes)} notes read)."

    @llm_completion_callback()
    def complete(self, prompt, formatted=False, **kwargs):
        return CompletionResponse(text=self.answer(prompt))

    @llm_completion_callback()
    def stream_complete(self, prompt, formatted=False, **kwargs):
        pieces = re.findall(r"\S+\s*", self.answer(prompt))
        return (CompletionResponse(text="".join(pieces[:n + 1]), delta=piece) for n, piece in enumerate(pieces))


nodes = [TextNode(id_=key, text=text, metadata={"note": key, "month": month}) for key, month, text in [
    ("slugs", 5, "Slugs are kept off lettuce by copper rings and by watering in the morning."),
    ("blight", 7, "Blight on tomatoes: remove brown leaves, never water the foliage."),
    ("compost", 10, "Compost wants two parts of brown leaves to one part of kitchen scraps."),
    ("pruning", 2, "Apple trees are pruned in late winter on a dry frostless day."),
    ("beans", 5, "Runner beans climb poles and are sown after the last frost."),
    ("keys", 1, "The tool shed opens with the club's key from eight until dusk."),
]]
retriever = VectorStoreIndex(nodes, embed_model=WordEmbedding()).as_retriever(similarity_top_k=3)  # <- retriever


def engine_of(gardener):
    return ContextChatEngine.from_defaults(
        retriever=retriever, memory=memory_of(gardener), llm=AdviserLLM(), system_prompt="You advise the allotment club.")


def contents(messages):
    return [m.content for m in messages]


# --- the retriever
found = retriever.retrieve("When are apple trees pruned?")
assert "pruning" in [f.node.node_id for f in found] and 1 <= len(found) <= 3
best = next(f.node for f in found if f.node.node_id == "pruning")
assert best.metadata == {"note": "pruning", "month": 2} and "late winter" in best.get_content()

# --- two gardeners, turn and turn about
olga, sven = engine_of("olga"), engine_of("sven")
reply = olga.chat("I grow tomatoes, how do I see blight?")
assert "You have tomatoes in your beds" in reply.response and "(0 notes" not in reply.response
assert "blight" in [s.node.metadata["note"] for s in reply.source_nodes]
assert "You have nothing" in sven.chat("When does the tool shed open?").response
assert "You have beans and tomatoes" in olga.chat("I grow beans too, when are they sown?").response
assert "You have beans and tomatoes" in engine_of("olga").chat("What was it that I have?").response  # a new engine
assert "tomatoes" not in sven.chat("And what do I have?").response
history = olga.chat_history
assert [m.role for m in history] == [MessageRole.USER, MessageRole.ASSISTANT] * 3
assert history[0].content == "I grow tomatoes, how do I see blight?" and history[1].content == reply.response
assert len(sven.chat_history) == 4 and contents(memory_of("sven").get_all()) == contents(sven.chat_history)

# --- streaming writes the finished answer to the memory, too
stream = sven.stream_chat("I grow leeks. Do slugs eat lettuce?")
text = "".join(stream.response_gen)
said = contents(memory_of("sven").get_all())
assert "You have leeks" in text and said[-1].strip() == text.strip() and len(said) == 6

# --- a plain engine without notes, over the same memory
plain = SimpleChatEngine.from_defaults(llm=MockLLM(max_tokens=3), memory=memory_of("sven"))
assert plain.chat("Thank you").response == "text text text"
assert contents(memory_of("sven").get())[-2:] == ["Thank you", "text text text"]

# --- the memory by hand: put, get, set, reset
mia = memory_of("mia")
assert mia.get() == [] and mia.get_all() == []
mia.put(ChatMessage(role="user", content="I grow kale – Grünkohl 🥬", additional_kwargs={"plot": 12}))
mia.put_messages([ChatMessage(role="assistant", content="Noted."),
                  ChatMessage(role="user", blocks=[TextBlock(text="It is "), TextBlock(text="frosty")])])
got = mia.get(input="What do I grow?")
assert contents(got)[:2] == ["I grow kale – Grünkohl 🥬", "Noted."] and got[0].additional_kwargs == {"plot": 12}
assert [b.text for b in got[2].blocks] == ["It is ", "frosty"] and got[0].role == MessageRole.USER
mia.set([ChatMessage(role="user", content="I grow sprouts"), ChatMessage(role="assistant", content="Fine.")])
assert contents(mia.get_all()) == ["I grow sprouts", "Fine."]
assert "You have sprouts" in engine_of("mia").chat("What do I have?").response
asked = engine_of("mia").chat("Well?", chat_history=[ChatMessage(role="user", content="I grow chard")])
assert "You have chard" in asked.response and contents(mia.get_all())[:2] == ["I grow chard", "Well?"]

# --- a long talk: get() keeps within the token limit, get_all() keeps all
tom = memory_of("tom")
for day in range(60):
    tom.put(ChatMessage(role="user", content=f"Day {day}: I watered the beds by the north fence and picked a few peas."))
    tom.put(ChatMessage(role="assistant", content=f"Well done on day {day}."))
recent, everything = tom.get(), tom.get_all()
assert len(everything) == 120 and 0 < len(recent) < 60 and recent[-1].content == "Well done on day 59."
assert contents(recent) == contents(everything)[-len(recent):]


async def sunday():
    """The same from asynchronous code."""
    one, two = await asyncio.gather(engine_of("uma").achat("I grow mint"), engine_of("vic").achat("I grow dill"))
    assert "You have mint in" in one.response and "You have dill in" in two.response
    assert "You have mint and sage" in (await engine_of("uma").achat("I grow sage")).response
    uma, vic = memory_of("uma"), memory_of("vic")
    await uma.aput(ChatMessage(role="user", content="Goodbye"))
    assert contents(await uma.aget())[-1] == "Goodbye" and len(await uma.aget_all()) == 5
    assert "compost" in [f.node.node_id for f in await retriever.aretrieve("kitchen scraps for compost")]
    await uma.areset()
    assert await uma.aget_all() == [] and len(await vic.aget()) == 2


asyncio.run(sunday())
olga.reset()
assert olga.chat_history == [] and "You have nothing" in olga.chat("What do I have?").response
assert "leeks" in sven.chat("Remind me of my beds").response
print("ok")
