"""Run the same graphs with LangGraph, in the shape of its published ReWOO graph, and with pydantic-ai's agent."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any, TypedDict

from planning_graphs import Graph

Runner = Callable[[], Awaitable[str]]
STEP = re.compile(r"#(E\d+) = (\w+)\[([^\]]+)\]")


async def search(query: str) -> str:
    """Search for a thing."""
    return f"{len(query)}"


async def add(numbers: str) -> str:
    """Add numbers up."""
    return f"{len(numbers)}"


TOOLS = {"search": search, "add": add}


class _State(TypedDict, total=False):
    task: str
    plan: str
    steps: list[tuple[str, str, str]]
    results: dict[str, str]
    answer: str


def langgraph_rewoo(graph: Graph) -> Runner:
    """Build a graph of three nodes: plan, run one step (repeated), solve.

    Raises:
        ImportError: langgraph is not installed.
    """
    from langgraph.graph import END, START, StateGraph

    text = "".join(graph.lines())

    async def plan(state: _State) -> _State:  # noqa: ARG001
        return {"plan": text, "steps": STEP.findall(text)}

    async def run_step(state: _State) -> _State:
        done = dict(state.get("results") or {})
        name, called, given = state["steps"][len(done)]
        for before, found in done.items():
            given = given.replace(f"#{before}", found)
        return {"results": {**done, name: await TOOLS[called](given)}}

    async def answer(state: _State) -> _State:
        lines = [f"{name} = {state['results'][name]}" for name, _, _ in state["steps"]]
        return {"answer": "42" if lines else ""}

    def route(state: _State) -> str:
        return "solve" if len(state.get("results") or {}) == len(state["steps"]) else "tool"

    builder: Any = StateGraph(_State)
    for name, node in (("plan", plan), ("tool", run_step), ("solve", answer)):
        builder.add_node(name, node)
    builder.add_edge(START, "plan")
    builder.add_edge("plan", "tool")
    builder.add_conditional_edges("tool", route)
    builder.add_edge("solve", END)
    compiled = builder.compile()

    async def run() -> str:
        return str((await compiled.ainvoke({"task": "What?"}))["answer"])

    return run


def pydantic_agent(graph: Graph) -> Runner:
    """Build an agent that calls the tools one after another (ReAct), its intended use.

    Raises:
        ImportError: pydantic-ai is not installed.
    """
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    async def reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:  # noqa: ARG001
        made = sum(isinstance(message, ModelResponse) for message in messages)
        if made == graph.steps:
            return ModelResponse(parts=[TextPart("42")])
        if made == graph.steps - 1:
            return ModelResponse(parts=[ToolCallPart("add", {"numbers": "what was found"})])
        return ModelResponse(parts=[ToolCallPart("search", {"query": f"thing {made + 1}"})])

    agent = Agent(FunctionModel(reply), tools=[search, add])

    async def run() -> str:
        return str((await agent.run("What?")).output)

    return run


PEERS: dict[str, Callable[[Graph], Runner]] = {"langgraph": langgraph_rewoo, "pydantic_ai": pydantic_agent}
