"""A shop's refund desk: a LangGraph graph whose threads are stored in a checkpointer."""
import asyncio
import operator
from typing import Annotated

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver  # <- here
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

checkpointer = InMemorySaver()  # <- here

model = GenericFakeChatModel(messages=(AIMessage(f"letter no. {n}") for n in range(1, 100)))
paid = []  # the bank, outside the graph


class Refund(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    log: Annotated[list[str], operator.add]
    order: str
    amount: float
    decision: str


def assess(state: Refund):
    return {"log": [f"assessed {state['order']}"], "decision": "auto" if state["amount"] < 50 else "ask"}


def manager(state: Refund):
    verdict = interrupt({"question": "Approve this refund?", "order": state["order"], "amount": state["amount"]})
    return {"decision": "approved" if verdict["yes"] else "refused", "log": [f"manager: {verdict['why']}"]}


def pay(state: Refund):
    if state["decision"] != "refused":
        paid.append((state["order"], state["amount"]))
    return {"log": ["paid" if state["decision"] != "refused" else "not paid"]}


def write(state: Refund):
    return {"messages": [model.invoke(state["messages"])], "log": ["letter written"]}


builder = StateGraph(Refund)
for node in (assess, manager, pay, write):
    builder.add_node(node.__name__, node)
builder.add_edge(START, "assess")
builder.add_conditional_edges("assess", lambda s: "manager" if s["decision"] == "ask" else "pay", ["manager", "pay"])
builder.add_edge("manager", "pay")
builder.add_edge("pay", "write")
builder.add_edge("write", END)
graph = builder.compile(checkpointer=checkpointer)


def thread(name):
    return {"configurable": {"thread_id": name}}


def claim(order, amount):
    return {"messages": [HumanMessage(f"Refund for {order}, please")], "order": order, "amount": amount}


# --- a small refund passes by itself; a second turn in the same thread adds to it
small = thread("kettle")
out = graph.invoke(claim("kettle", 20.0), small)
assert out["decision"] == "auto" and out["log"] == ["assessed kettle", "paid", "letter written"]
out = graph.invoke(claim("kettle", 5.0), small)
assert len(out["messages"]) == 4 and len(out["log"]) == 6 and paid == [("kettle", 20.0), ("kettle", 5.0)]

# --- a large one stops and waits
big = thread("piano")
out = graph.invoke(claim("piano", 900.0), big)
assert out["__interrupt__"][0].value == {"question": "Approve this refund?", "order": "piano", "amount": 900.0}
state = graph.get_state(big)
assert state.next == ("manager",) and state.values["decision"] == "ask" and state.created_at
assert state.tasks[0].name == "manager" and state.tasks[0].interrupts[0].value["amount"] == 900.0
assert graph.get_state(small).next == () and graph.get_state(small).values["order"] == "kettle"
assert graph.get_state(thread("nobody")).values == {}

# --- another process: a newly compiled graph over the same checkpointer resumes it
desk = builder.compile(checkpointer=checkpointer)
out = desk.invoke(Command(resume={"yes": True, "why": "scratched on delivery"}), big)
assert out["decision"] == "approved" and ("piano", 900.0) in paid
assert out["log"] == ["assessed piano", "manager: scratched on delivery", "paid", "letter written"]
assert isinstance(out["messages"][0], HumanMessage) and isinstance(out["messages"][1], AIMessage)

# --- the history, newest first, each linked with its parent
history = list(graph.get_state_history(big))
assert [s.next for s in history] == [(), ("write",), ("pay",), ("manager",), ("assess",), ("__start__",)]
assert [s.metadata["step"] for s in history] == [4, 3, 2, 1, 0, -1]
assert history[-1].metadata["source"] == "input" and history[-1].parent_config is None
for newer, older in zip(history, history[1:]):
    assert newer.parent_config["configurable"]["checkpoint_id"] == older.config["configurable"]["checkpoint_id"]
assert [s.config for s in graph.get_state_history(big, limit=2)] == [s.config for s in history[:2]]
assert [s.config for s in graph.get_state_history(big, before=history[2].config)] == [s.config for s in history[3:]]
assert [s.metadata["step"] for s in graph.get_state_history(big, filter={"source": "input"})] == [-1]
assert graph.get_state(history[3].config).values["log"] == ["assessed piano"]

# --- time travel: replay from before the manager asks again
before_manager = history[3]
out = graph.invoke(None, before_manager.config)
assert out["__interrupt__"][0].value["order"] == "piano"
out = graph.invoke(Command(resume={"yes": False, "why": "out of warranty"}), big)
assert out["decision"] == "refused" and out["log"][-2:] == ["not paid", "letter written"]

# --- fork: the same claim with another amount, from before it was assessed
fork = graph.update_state(history[2].config, {"amount": 450.0, "log": ["amount corrected"]})
assert fork["configurable"]["thread_id"] == "piano" and graph.get_state(fork).metadata["source"] == "update"
assert graph.get_state(fork).next == ("pay",)
out = graph.invoke(None, fork)
assert out["amount"] == 450.0 and paid[-1] == ("piano", 450.0) and "amount corrected" in out["log"]
assert graph.get_state(history[0].config).values["amount"] == 900.0  # the first course is still there
assert graph.get_state(big).values["amount"] == 450.0  # the newest is the fork
assert len(list(graph.get_state_history(big))) > len(history) + 4

# --- the checkpointer itself
saved = checkpointer.get_tuple(big)
assert saved.config["configurable"]["thread_id"] == "piano" and saved.checkpoint["channel_values"]["amount"] == 450.0
assert saved.metadata["step"] >= 4 and saved.parent_config
assert {t.config["configurable"]["thread_id"] for t in checkpointer.list(None)} == {"kettle", "piano"}


async def night_shift():
    """The same from asynchronous code, two customers at once."""
    a, b = thread("lamp"), thread("sofa")
    one, two = await asyncio.gather(graph.ainvoke(claim("lamp", 60.0), a), graph.ainvoke(claim("sofa", 700.0), b))
    assert one["__interrupt__"][0].value["order"] == "lamp" and two["__interrupt__"][0].value["order"] == "sofa"
    two = await graph.ainvoke(Command(resume={"yes": False, "why": "sat upon"}), b)
    assert two["decision"] == "refused" and (await graph.aget_state(a)).next == ("manager",)
    steps = [s.metadata["step"] async for s in graph.aget_state_history(b)]
    assert steps == [4, 3, 2, 1, 0, -1]
    await graph.aupdate_state(a, {"decision": "approved"}, as_node="manager")  # by hand, past the question
    one = await graph.ainvoke(None, a)
    assert one["log"] == ["assessed lamp", "paid", "letter written"]
    await checkpointer.adelete_thread("lamp")
    assert (await graph.aget_state(a)).values == {} and (await graph.aget_state(b)).values["order"] == "sofa"


asyncio.run(night_shift())
checkpointer.delete_thread("piano")
assert checkpointer.get_tuple(big) is None and list(graph.get_state_history(big)) == []
assert graph.get_state(small).values["order"] == "kettle"
out = graph.invoke(claim("piano", 10.0), big)  # the name is free again
assert out["log"] == ["assessed piano", "paid", "letter written"]
print("ok")
