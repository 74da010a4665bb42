"""A language tutor that remembers its students from lesson to lesson (pydantic-ai, offline).

The memory is a capability of the agent: it brings its own tools and instructions. The model is a
FunctionModel that behaves like a small rule-following model: it looks at the tools it was offered,
calls one when the student's sentence asks for it, and then answers from the tool's result.
"""
import asyncio
from dataclasses import dataclass

from pydantic_ai import Agent, RunContext, capture_run_messages
from pydantic_ai.messages import (
    ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.tools import ToolDefinition

from inprocess_memory import InProcessMemory


@dataclass
class Student:
    name: str


def student_of(ctx: RunContext[Student]) -> str:
    return ctx.deps.name


memory = InProcessMemory(user=student_of)  # <- here


RULES = [  # the beginning of what the student says -> what the tool the model reaches for should be about
    ("please note that ", ("remember", "save", "store", "add")),
    ("do you still know ", ("recall", "search", "find", "look up")),
    ("please forget ", ("forget", "delete", "remove")),
]


def tool_for(verbs: tuple[str, ...], tools: list[ToolDefinition]) -> ToolDefinition:
    """The offered tool that speaks of one of the verbs, in its name or else in its description."""
    texts = [lambda t: t.name, lambda t: (t.description or "").lower()]
    return next(t for text in texts for verb in verbs for t in tools if verb in text(t))


def tutor_model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    last = messages[-1]
    assert isinstance(last, ModelRequest)
    for part in last.parts:
        if isinstance(part, ToolReturnPart):
            return ModelResponse(parts=[TextPart(f"[{part.tool_name}] {part.model_response_str()}")])
    said = next(p.content for m in reversed(messages) for p in reversed(m.parts) if isinstance(p, UserPromptPart))
    for start, verbs in RULES:
        if said.lower().startswith(start):
            tool = tool_for(verbs, info.function_tools)
            required = tool.parameters_json_schema["required"]
            return ModelResponse(parts=[ToolCallPart(tool.name, {required[0]: said[len(start):]})])
    if said.lower().startswith("what do you know"):
        return ModelResponse(parts=[TextPart(info.instructions or "")])
    return ModelResponse(parts=[TextPart("Let's go on with the lesson.")])


agent = Agent(
    FunctionModel(tutor_model),
    deps_type=Student,
    instructions="You are a patient tutor of Portuguese.",
    capabilities=[memory],
)


async def say(student: Student, text: str) -> str:
    """One lesson's sentence: a run of its own, without message history."""
    return (await agent.run(text, deps=student)).output


async def main() -> None:
    ana, ben = Student("ana"), Student("ben")

    # A first lesson: the tutor notes what lasts.
    assert "lesson" in await say(ana, "Bom dia!")
    await say(ana, "Please note that Ana confuses ser and estar.")
    await say(ana, "Please note that Ana travels to Lisbon in June.")
    await say(ana, "Please note that Ana likes exercises with songs.")
    await say(ben, "Please note that Ben is afraid of the subjunctive.")
    # Several students at once.
    await asyncio.gather(
        say(ana, "Please note that Ana's dog is called Pipoca."),
        say(ben, "Please note that Ben's daughter speaks Portuguese."),
    )

    # The next lesson is another run: nothing but the memory carries over.
    trip = await say(ana, "Do you still know when Ana travels to Lisbon")
    assert "June" in trip, trip
    verbs = await say(ana, "Do you still know what Ana confuses, ser or estar")
    assert "ser and estar" in verbs, verbs
    fear = await say(ben, "Do you still know what Ben is afraid of")
    assert "subjunctive" in fear, fear

    # One student's memory is not another's.
    assert "Lisbon" not in await say(ben, "Do you still know when the travels to Lisbon begin")
    assert "Pipoca" not in await say(ben, "Do you still know the dog called Pipoca")

    # Memories appear in the instructions of a new run, next to the agent's own.
    known = await say(ana, "What do you know about me?")
    assert "patient tutor" in known
    assert "Lisbon" in known and "Pipoca" in known, known
    assert "subjunctive" not in known
    stranger = await say(Student("cleo"), "What do you know about me?")
    assert "Lisbon" not in stranger and "subjunctive" not in stranger

    # Correction: forget the old, note the new.
    await say(ana, "Please forget that Ana travels to Lisbon in June.")
    assert "June" not in await say(ana, "Do you still know when Ana travels to Lisbon")
    await say(ana, "Please note that Ana travels to Lisbon in September.")
    trip = await say(ana, "Do you still know when Ana travels to Lisbon")
    assert "September" in trip and "June" not in trip, trip
    known = await say(ana, "What do you know about me?")
    assert "September" in known and "June" not in known and "songs" in known

    # A conversation of two turns with message history uses the same memory.
    first = await agent.run("Please note that Ana is preparing for an exam in October.", deps=ana)
    second = await agent.run(
        "Do you still know what exam Ana is preparing for", deps=ana, message_history=first.all_messages()
    )
    assert "October" in second.output
    assert len(second.all_messages()) == len(first.all_messages()) + len(second.new_messages())

    # TestModel calls every tool it is offered once: the capability's tools are there and take plain arguments.
    test_model = TestModel(call_tools="all")
    with capture_run_messages() as messages:
        result = await agent.run("Try everything.", deps=Student("test"), model=test_model)
    offered = {t.name for t in test_model.last_model_request_parameters.function_tools}
    called = {p.tool_name for m in messages for p in m.parts if isinstance(p, ToolCallPart)}
    assert len(offered) >= 3 and offered == called, (offered, called)
    assert isinstance(result.output, str)
    assert "Lisbon" in await say(ana, "What do you know about me?")


asyncio.run(main())
print("ok")
