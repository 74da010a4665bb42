"""A bicycle workshop answers questions from its own manual pages, one collection per branch."""
import asyncio
import re
import zlib

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnablePassthrough
from langchain_core.tools import create_retriever_tool
from langchain_core.vectorstores import InMemoryVectorStore  # <- here


class WordEmbeddings(Embeddings):
    """Bag of words, hashed: deterministic and local."""

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text):
        vector = [0.0] * 512
        for word in re.findall(r"[a-z]{4,}", text.lower()):
            vector[zlib.crc32(word.encode()) % 512] += 1.0
        return vector


def open_manual(pages, k):
    retriever = InMemoryVectorStore.from_documents(pages, embedding=WordEmbeddings()).as_retriever(search_kwargs={"k": k})  # <- here
    return retriever


def page(text, source, number, **more):
    return Document(page_content=text, metadata={"source": source, "page": number, **more})


city = open_manual([
    page("Bleeding hydraulic brakes: use mineral oil, never brake fluid meant for cars.", "brakes.md", 1, topic="brakes"),
    page("Replace brake pads when less than one millimetre of material is left.", "brakes.md", 2, topic="brakes"),
    page("A worn chain stretches; measure it with a gauge every 500 kilometres.", "drivetrain.md", 1, topic="chain"),
    page("Clean the cassette with degreaser and a stiff brush before mounting a new chain.", "drivetrain.md", 2, topic="chain"),
    page("Tubeless tyres need sealant topped up twice a year.", "wheels.md", 1, topic="tyres", tags=["winter", "service"]),
    page("Spoke tension is checked by plucking; a dull sound means a loose spoke.", "wheels.md", 2, topic="wheels"),
    page("The battery of an electric bicycle is stored half charged in a dry cool room.", "electric.md", 1, topic="battery"),
], k=3)
harbour = open_manual([
    page("Salt water corrodes aluminium rims: rinse the wheels with fresh water after every ride.", "salt.md", 1, topic="wheels"),
    page("Rental bicycles are returned before eight in the evening at the harbour office.", "rental.md", 1, topic="rental"),
    page("A lost padlock key costs twelve euros.", "rental.md", 2, topic="rental"),
], k=2)


class MechanicModel(BaseChatModel):
    """Scripted: quotes from the context every line that shares a longer word with the question."""

    _llm_type = property(lambda self: "mechanic")

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        context, question = messages[0].content, messages[-1].content
        words = set(re.findall(r"[a-z]{5,}", question.lower()))
        lines = [line for line in context.splitlines()[1:] if words & set(re.findall(r"[a-z]{5,}", line.lower()))]
        text = "\n".join(lines) or "I do not know."
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])


def format_docs(docs):
    return "\n".join(f"[{d.metadata['source']} p. {d.metadata['page']}] {d.page_content}" for d in docs)


prompt = ChatPromptTemplate.from_messages([
    ("system", "Answer from these pages only:\n{context}"), ("human", "{question}")])
answer = prompt | MechanicModel() | StrOutputParser()


def chain_over(retriever):
    return {"context": retriever | format_docs, "question": RunnablePassthrough()} | answer


# --- the retriever alone
docs = city.invoke("How do I store the battery of an electric bicycle?")
assert 1 <= len(docs) <= 3 and all(isinstance(d, Document) for d in docs)
battery = next(d for d in docs if d.metadata["source"] == "electric.md")
assert battery.metadata == {**battery.metadata, "page": 1, "topic": "battery"}
assert battery.page_content == "The battery of an electric bicycle is stored half charged in a dry cool room."
tyres = next(d for d in city.invoke("sealant for tubeless tyres") if d.metadata["topic"] == "tyres")
assert tyres.metadata["tags"] == ["winter", "service"]
assert len(harbour.invoke("rental bicycles at the harbour")) <= 2
assert {d.metadata["source"] for d in harbour.invoke("hydraulic brakes")} <= {"salt.md", "rental.md"}

# --- in a chain
ask_city, ask_harbour = chain_over(city), chain_over(harbour)
assert "[brakes.md p. 1] Bleeding hydraulic brakes: use mineral oil" in ask_city.invoke("Which oil for hydraulic brakes?")
assert "[rental.md p. 2]" in ask_harbour.invoke("I lost my padlock key, what does it cost?")
assert ask_harbour.invoke("unicorns") == "I do not know."

# --- answers with their sources
with_sources = RunnableParallel({"docs": city, "question": RunnablePassthrough()}).assign(
    answer={"context": lambda x: format_docs(x["docs"]), "question": lambda x: x["question"]} | answer)
result = with_sources.invoke("When do I replace the brake pads?")
assert set(result) == {"docs", "question", "answer"} and "one millimetre" in result["answer"]
assert ("brakes.md", 2) in [(d.metadata["source"], d.metadata["page"]) for d in result["docs"]]

# --- a filter on the metadata, behind the retriever
only_chain = city | RunnableLambda(lambda docs: [d for d in docs if d.metadata["topic"] == "chain"])
assert {d.metadata["topic"] for d in only_chain.invoke("measure a worn chain with a gauge")} == {"chain"}

# --- both branches at once, and in batches
both = RunnableParallel(city=city, harbour=harbour) | (lambda found: found["city"] + found["harbour"])
assert {"wheels.md", "salt.md"} <= {d.metadata["source"] for d in both.invoke("loose spoke tension, wheels in salt water")}
chain_docs, spoke_docs = city.batch(["a worn chain stretches", "loose spoke, dull sound"])
assert "drivetrain.md" in [d.metadata["source"] for d in chain_docs]
assert "wheels.md" in [d.metadata["source"] for d in spoke_docs]


class Log(BaseCallbackHandler):
    def __init__(self):
        self.queries, self.counts = [], []

    def on_retriever_start(self, serialized, query, **kwargs):
        self.queries.append((query, kwargs.get("tags")))

    def on_retriever_end(self, documents, **kwargs):
        self.counts.append(len(documents))


# --- callbacks, and the retriever as an agent's tool
log = Log()
city.invoke("spoke tension", config={"callbacks": [log], "tags": ["night"]})
assert log.queries[0][0] == "spoke tension" and "night" in log.queries[0][1] and 1 <= log.counts[0] <= 3
tool = create_retriever_tool(harbour, "harbour_manual", "Searches the harbour branch's manual.")
assert tool.name == "harbour_manual" and "twelve euros" in tool.invoke({"query": "lost padlock key"})


async def busy_day():
    docs = await city.ainvoke("clean the cassette with degreaser")
    assert ("drivetrain.md", 2) in [(d.metadata["source"], d.metadata["page"]) for d in docs] and len(docs) <= 3
    one, two = await asyncio.gather(ask_city.ainvoke("mineral oil?"), ask_harbour.ainvoke("When are rental bicycles returned?"))
    assert "brakes.md" in one and "before eight in the evening" in two
    many = await city.abatch(["hydraulic brakes", "tubeless tyres", "battery"])
    assert len(many) == 3 and "tyres" in [d.metadata["topic"] for d in many[1]]
    streamed = "".join([piece async for piece in ask_city.astream("How is the battery stored?")])
    assert "half charged" in streamed


asyncio.run(busy_day())
print("ok")
