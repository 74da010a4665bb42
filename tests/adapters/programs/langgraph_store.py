"""A language tutor that stores facts about its learners in LangGraph's long-term store."""
import asyncio
import re
import zlib
from dataclasses import dataclass

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import GetOp, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore  # <- here

DIMS = 512


def embed(texts):
    """Bag of words, hashed: deterministic and local."""
    vectors = [[0.0] * DIMS for _ in texts]
    for vector, text in zip(vectors, texts):
        for word in re.findall(r"[a-z]{4,}", text.lower()):
            vector[zlib.crc32(word.encode()) % DIMS] += 1.0
    return vectors


store = InMemoryStore(index={"embed": embed, "dims": DIMS, "fields": ["text"]})  # <- here


class TutorModel(BaseChatModel):
    """Scripted: repeats the notes it was given in the system message."""

    _llm_type = property(lambda self: "tutor")

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        notes = messages[0].content
        text = f"Let us practise. {notes}" if notes else "Nice to meet you!"
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])


@dataclass
class Context:
    user_id: str


def remember(state: MessagesState, runtime: Runtime[Context]):
    """Files what the learner asks to be remembered."""
    text = state["messages"][-1].content
    if text.lower().startswith("remember:"):
        note = text.split(":", 1)[1].strip()
        namespace = ("learners", runtime.context.user_id, "notes")
        key = f"note-{len(runtime.store.search(namespace, limit=100)) + 1}"
        runtime.store.put(namespace, key, {"text": note, "kind": "note", "level": 1})
    return {}


def answer(state: MessagesState, runtime: Runtime[Context]):
    question = state["messages"][-1].content
    found = runtime.store.search(("learners", runtime.context.user_id), query=question, limit=3)
    notes = "; ".join(item.value["text"] for item in found)
    return {"messages": [TutorModel().invoke([("system", notes), ("user", question)])]}


builder = StateGraph(MessagesState, context_schema=Context)
builder.add_sequence([remember, answer])
builder.add_edge(START, "remember")
builder.add_edge("answer", END)
graph = builder.compile(store=store)


def say(user, text):
    result = graph.invoke({"messages": [("user", text)]}, context=Context(user_id=user))
    return result["messages"][-1].content


# --- two learners talk to the tutor
assert "Nice to meet you" in say("mona", "Good evening!")
for note in ("I confuse the Spanish verbs ser and estar",
             "My holiday in Valencia starts in August",
             "I learn best with songs and lyrics"):
    say("mona", f"remember: {note}")
say("piet", "remember: I need French vocabulary for the kitchen")
assert "ser and estar" in say("mona", "Which Spanish verbs do I confuse?")
assert "kitchen" in say("piet", "Which French vocabulary?") and "Valencia" not in say("piet", "Valencia in August?")

# --- the stored items, read directly
mona = ("learners", "mona", "notes")
item = store.get(mona, "note-2")
assert item.key == "note-2" and tuple(item.namespace) == mona and item.created_at <= item.updated_at
assert item.value == {"text": "My holiday in Valencia starts in August", "kind": "note", "level": 1}
assert store.get(mona, "note-99") is None
hits = store.search(mona, query="songs and lyrics to learn", limit=3)
assert "note-3" in [h.key for h in hits] and all(h.score is not None for h in hits)

# --- an update replaces the value whole
store.put(mona, "note-2", {"text": "My holiday in Lisbon starts in September", "kind": "note", "level": 2})
changed = store.get(mona, "note-2")
assert changed.value["level"] == 2 and changed.updated_at >= item.updated_at
assert "note-2" in [h.key for h in store.search(mona, query="holiday in Lisbon, September", limit=3)]

# --- lesson results: a batch of writes, then filters, pages and reads in one batch
lessons = ("learners", "mona", "lessons")
store.batch([PutOp(lessons, f"l{n}", {"text": f"lesson {n} about {topic}", "kind": "lesson", "level": n, "done": n < 4})
             for n, topic in enumerate(["greetings", "numbers", "weather", "markets", "trains"], 1)])
store.put(lessons, "draft", {"text": "not to be searched by meaning", "kind": "draft", "level": 0}, index=False)
got, missing, done, hard, spaces = store.batch([
    GetOp(lessons, "l4"), GetOp(lessons, "l9"),
    SearchOp(lessons, filter={"kind": "lesson", "done": True}),
    SearchOp(("learners", "mona"), filter={"kind": "lesson", "level": {"$gte": 3, "$lt": 5}}),
    ListNamespacesOp(match_conditions=(MatchCondition("prefix", ("learners", "mona")),)),
])
assert got.value["text"] == "lesson 4 about markets" and missing is None
assert {i.key for i in done} == {"l1", "l2", "l3"} and {i.key for i in hard} == {"l3", "l4"}
assert set(spaces) == {mona, lessons}
assert store.get(lessons, "draft").value["kind"] == "draft"
assert {i.key for i in store.search(lessons, filter={"kind": {"$ne": "lesson"}})} == {"draft"}
both = store.search(("learners",), query="lesson about trains", filter={"kind": "lesson"}, limit=3)
assert "l5" in [i.key for i in both] and {i.value["kind"] for i in both} == {"lesson"}
pages = [[i.key for i in store.search(lessons, limit=4, offset=o)] for o in (0, 4, 8)]
assert [len(p) for p in pages] == [4, 2, 0] and len(set(sum(pages, []))) == 6

# --- namespaces
assert set(store.list_namespaces(prefix=("learners",), max_depth=2)) == {("learners", "mona"), ("learners", "piet")}
assert set(store.list_namespaces(suffix=("notes",))) == {mona, ("learners", "piet", "notes")}
assert set(store.list_namespaces(prefix=("learners", "*", "lessons"))) == {lessons}
assert len(store.list_namespaces(limit=2)) == 2


async def evening():
    """The same from asynchronous code; at the end piet leaves the school."""
    piet = ("learners", "piet", "notes")
    await store.aput(piet, "goal", {"text": "open a bistro in Lyon", "kind": "goal", "level": 3})
    await store.abatch([PutOp(piet, "tmp", {"text": "scratch", "kind": "tmp"}), PutOp(piet, "note-1", None)])
    assert await store.aget(piet, "note-1") is None and (await store.aget(piet, "tmp")).value["text"] == "scratch"
    found = await store.asearch(("learners", "piet"), query="a bistro in Lyon", limit=3)
    assert "goal" in [i.key for i in found]
    result = await graph.ainvoke({"messages": [("user", "Where is my bistro?")]}, context=Context(user_id="piet"))
    assert "Lyon" in result["messages"][-1].content
    for old in await store.asearch(piet, limit=50):
        await store.adelete(piet, old.key)
    assert await store.asearch(piet) == [] and mona in await store.alist_namespaces(prefix=("learners", "mona"))


asyncio.run(evening())
for _ in range(2):  # deleting twice is no error
    store.delete(lessons, "l1")
assert store.get(lessons, "l1") is None and len(store.search(lessons, filter={"kind": "lesson"})) == 4
assert say("piet", "Hello again").startswith("Nice to meet you")
assert "songs" in say("mona", "Do I learn best with songs?")
print("ok")
