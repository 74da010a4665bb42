"""The other way: one agent that reasons before it speaks, with the same pack, tools, belief and plan."""

from __future__ import annotations

from pydantic import BaseModel, Field, JsonValue

from mindstream.clock import SystemClock, format_spoken
from mindstream.coach.belief.library import resource_tool, step_tool
from mindstream.coach.belief.plan import CoachingPlan, StepEdit
from mindstream.coach.packs.pack import Pack
from mindstream.errors import InputError, ReplyInvalid
from mindstream.memory.belief import Belief, merged
from mindstream.models.model import Call, Model
from mindstream.models.prompt import Prompt
from mindstream.reasoners.conversation import Line
from mindstream.text.language import language_of
from mindstream.tools.call import Observation
from mindstream.tools.loop import run_tool_loop


class Answer(BaseModel):
    """What the agent has come to."""

    thought: str = Field("", description="Your conclusion in one or two sentences.")
    phase: str = Field("", description="The phase now.")
    patch: dict[str, JsonValue] = Field(default_factory=dict, description="Belief fields that change.")
    plan: list[StepEdit] = Field(default_factory=list, description="Steps that are new or change.")
    words: str = Field(min_length=1, description="Your answer to the user.")


class SingleAgent(Prompt[Answer]):
    """Think, then answer."""

    pack: Pack
    phase: str
    belief: dict[str, JsonValue]
    plan: CoachingPlan
    conversation: tuple[Line, ...]
    utterance: str
    now: str

    def parse(self, text: str) -> Answer:
        found = super().parse(text)
        try:
            merged(Belief("belief", 1, self.pack.belief.model_validate(self.belief)), _own(found.patch))
        except InputError as error:
            raise ReplyInvalid(f"The patch does not fit: {error}") from None
        return found


class Agent:
    """Holds a conversation; all state in memory."""

    def __init__(self, model: Model, pack: Pack) -> None:
        self.model, self.pack = model, pack
        self.phase, self.plan = pack.phases[0].name, CoachingPlan()
        self.belief: dict[str, JsonValue] = {}
        self.lines: list[Line] = []

    async def hear(self, text: str) -> str:
        """Answer an utterance."""
        language = language_of(text, self.pack.languages)
        prompt = SingleAgent(
            pack=self.pack, phase=self.phase, belief=self.belief, plan=self.plan, conversation=tuple(self.lines),
            utterance=text, now=format_spoken(SystemClock().now()),
        )  # fmt: skip
        planned = [step.title for step in self.plan.steps]
        tools = [step_tool(self.pack, language, planned), resource_tool(self.pack, language)]
        found = await run_tool_loop(self.model, prompt, tools, self)
        value, _ = merged(Belief("belief", 1, self.pack.belief.model_validate(self.belief)), _own(found.patch))
        held = value.model_dump(mode="json")
        self.belief = {name: each for name, each in held.items() if name != "phase" and each not in (None, [], "")}
        self.phase, self.plan = found.phase or self.phase, self.plan.edit(found.plan)
        self.lines += [Line(by_user=True, text=text), Line(by_user=False, text=found.words)]
        return found.words

    async def recorded_result(self, call: Call) -> str | None:  # noqa: ARG002
        return None

    async def log_call(self, call: Call) -> None:
        """Nobody watches."""

    async def log_observation(self, call: Call, found: Observation) -> None:
        """Nobody watches."""

    async def take_newer(self) -> str:
        """Nothing comes up meanwhile."""
        return ""


def _own(patch: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return {name: value for name, value in patch.items() if name != "phase"}
