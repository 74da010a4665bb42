"""Estimate the model calls of a town: run it for a while with rules, and count calls and tokens."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import astuple, dataclass, field, replace
from tempfile import TemporaryDirectory
from types import MappingProxyType

from mindstream import chance
from mindstream.memory.lifecycle.importance import Importance, RateImportance
from mindstream.models.model import Distribution, Part, Piece, Request, estimate_tokens
from mindstream.models.providers.adapter import price
from mindstream.models.providers.address import Address
from mindstream.models.roles import Models
from mindstream.models.rules import Rules
from mindstream.reasoners.reflect.reflect import Found, Insight, Insights, Questions, SalientQuestions
from mindstream_town.paper.prompts import Line, PaperTask, PaperTasks, PlanStrokes, PlanTasks, SayNext, Stroke, Strokes
from mindstream_town.prompts.conduct import Agreed, TakeFromTalk, Taken
from mindstream_town.scenes.prompts import PlanScenes, Scene, SceneDay, SceneItem, SceneLine, SceneMemory, TalkScene
from mindstream_town.setting import Setting
from mindstream_town.town import Town


@dataclass
class CallCount:
    """Calls of one prompt: their number, input and output tokens, and the tokens of the static beginning of the
    prompt."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    static: int = 0


LIVED = "estimate"
"""Name of the simulated model. It differs from the name of the rules, so that residents behave as with a language
model."""
ROLES = ("planner", "decider", "talker", "reasoner", "importance")
REPLIES = {
    "plan_strokes": 440, "plan_hours": 140, "plan_tasks": 190, "meet_person": 1, "say_next": 80, "take_from_talk": 200,
    "sum_up_relation": 45, "renew_identity": 110, "rewrite_day": 460, "plan_day": 270, "break_down": 70, "utter": 50,
    "insights": 60, "salient_questions": 50, "answer_interview": 35, "see_to": 60,
    "plan_scenes": 1560, "talk_scene": 660, "reflect_scenes": 360, "let_on": 25, "what_came": 60, "settle": 130,
}  # fmt: skip
"""Average output tokens of real replies, by prompt; replies of rules are shorter."""
A_TASK, LINES, AGREE = 12, 5, 0.2
"""Assumed minutes of a task in a plan, lines of a talk, and share of talks with an agreement for today."""
BUSY, OPEN = 0.3, 0.15
"""Assumed shares of the parts of a resident's day. BUSY: parts in which it cannot be spoken to. OPEN: parts whose
result is open."""
BED = "22:30"
SOMETHING = "a thing or two of what is to be done now"
"""A text with the length of a typical task."""
MUNDANE = 3
"""Typical importance (1 to 10) that a model gives to a memory. The estimate uses it because the rule that rates without
a model gives higher values."""


@dataclass
class Counting:
    """A model that answers by rules and counts calls and tokens by prompt (`by_kind`)."""

    name: str = Rules.name
    by_kind: dict[str, CallCount] = field(default_factory=dict)
    role_of: dict[str, str] = field(default_factory=dict)
    _rules: Rules = field(default_factory=Rules)

    @property
    def calls(self) -> int:
        """Number of all calls."""
        return sum(each.calls for each in self.by_kind.values())

    @property
    def tokens(self) -> int:
        """Number of all input and output tokens."""
        return sum(each.tokens_in + each.tokens_out for each in self.by_kind.values())

    def without_rules(self, models: Mapping[str, str]) -> Counting:
        """Return only the calls that language models would answer; `models`: model name by role, as in
        `Models.named`."""
        asked = {label: each for label, each in self.by_kind.items() if self.model_of(label, models) != Rules.name}
        return replace(self, by_kind=asked)

    def scaled(self, factor: float, once: Collection[str]) -> Counting:
        """Return the counts for a time that is `factor` times as long. The counts of the prompts in `once` stay the
        same, because they are sent only at the beginning."""
        kinds = {
            label: each if label in once else CallCount(*(round(count * factor) for count in astuple(each)))
            for label, each in self.by_kind.items()
        }
        return replace(self, by_kind=kinds)

    def model_of(self, label: str, models: Mapping[str, str]) -> str:
        """Return the name of the model that answers a prompt."""
        return models.get(self.role_of[label], models.get("default", Rules.name))

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        label = request.prompt.label()
        kind = self.by_kind.setdefault(label, CallCount())
        self.role_of[label] = request.role or request.prompt.role
        first, *_ = messages = request.messages
        kind.calls += 1
        kind.tokens_in += sum(estimate_tokens(message.text) for message in messages)
        kind.static += estimate_tokens(first.text) if first.role == "system" else 0
        async with aclosing(
            _reply(self._rules, request) if self.name == LIVED else self._rules.reply(request)
        ) as parts:
            written = 0
            async for part in parts:
                if isinstance(part, Piece):
                    written += estimate_tokens(part.text)
                elif isinstance(part, Distribution):
                    written += 1
                yield part
            kind.tokens_out += max(written, REPLIES.get(label, 0) if self.name == LIVED else 0)


def _a_day_out(who: str, date: str, places: Sequence[str]) -> list[tuple[str, str]]:
    """Return times and places of a typical day: work, noon, work, evening, and at other times home ("").

    The places for noon and evening are drawn for the date, and are the same for all residents.
    """
    work = chance.pick(places, who, "work") if places else ""
    noon, evening = (chance.pick(places, date, hour) if places else "" for hour in ("noon", "evening"))
    return [("06:30", ""), ("08:30", work), ("12:00", noon), ("13:00", work), ("17:00", evening), ("18:30", "")]


def _strokes(ask: PlanStrokes) -> Strokes:
    out = [str(number) for number, line in enumerate(ask.places, 1) if "(at home" not in line]
    strokes = [
        Stroke(start=start, what=f"{start} {SOMETHING}", place=[place] if place else [])
        for start, place in _a_day_out(ask.who, ask.date, out)
    ]
    return Strokes(wake="06:30", bed=BED, strokes=strokes)


def _scenes(ask: PlanScenes) -> SceneDay:
    parts = _a_day_out(ask.who, ask.date, [each.words for each in ask.places if not each.home])
    ends = [*(start for start, _ in parts[1:]), BED]
    return SceneDay(
        items=[
            SceneItem.model_validate(
                {"from": start, "to": end, "what": f"{start} {SOMETHING}", "place": place}
                | {"busy": chance.fraction("busy", ask.who, ask.date, start) < BUSY}
                | {"open": SOMETHING if chance.fraction("open", ask.who, ask.date, start) < OPEN else ""}
            )
            for (start, place), end in zip(parts, ends, strict=True)
        ]
    )


def _scene(ask: TalkScene) -> Scene:
    names = [side.who for side in ask.sides]
    lines = [SceneLine(who=names[at % 2], says=SOMETHING) for at in range(LINES)]
    kept = [
        SceneMemory(who=name, text=f"{names[0]} and {names[1]} talked of {SOMETHING}.", weight=MUNDANE)
        for name in names
    ]
    return Scene(talk=True, lines=lines, remember=kept)


async def _answered(rules: Rules, request: Request) -> str:
    async with aclosing(rules.reply(request)) as parts:
        return "".join([part.text async for part in parts if isinstance(part, Piece)])


async def _reply(rules: Rules, request: Request) -> AsyncGenerator[Part]:
    """Answer a prompt as a typical model would, or by the rules.

    A prompt gets a typical model's answer if it has no rule, or if the rule's reply would change how many calls the
    residents make. All other prompts are answered by their rules.
    """
    match request.prompt:
        case SalientQuestions() as ask:
            questions = [f"What matters to {ask.who}? ({number})" for number in range(ask.count)]
            yield Piece(Questions(questions=questions).model_dump_json())
        case Insights() as ask:
            found = [Insight(text=f"{ask.who}: {ask.question} ({len(ask.memories)})"[:500], because=[1])]
            yield Piece(Found(insights=found).model_dump_json())
        case PlanStrokes() as ask if not ask.usual:
            yield Piece(_strokes(ask).model_dump_json())
        case PlanScenes() as ask:
            yield Piece(_scenes(ask).model_dump_json(by_alias=True))
        case TalkScene() as ask:
            yield Piece(_scene(ask).model_dump_json(by_alias=True))
        case PlanTasks() as ask:
            minutes = range(0, max(1, ask.minutes - A_TASK // 2), A_TASK)
            tasks = [PaperTask(minutes=A_TASK, what=f"{ask.when} +{each}: {SOMETHING}") for each in minutes]
            yield Piece(PaperTasks(tasks=tasks[:30]).model_dump_json())
        case SayNext() as ask if len(ask.lines) < LINES - 1:
            said = await _answered(rules, request)
            yield Piece(Line.model_validate_json(said).model_copy(update={"does": "talks"}).model_dump_json())
        case TakeFromTalk() as ask if chance.fraction("agreed", ask.who, ask.other, ask.date) < AGREE:
            taken = Taken.model_validate_json(await _answered(rules, request))
            evening = Agreed(text=f"{ask.who}, {ask.other}", what="meeting", start="19:00", end="20:00")
            yield Piece(taken.model_copy(update={"agreed": [evening]}).model_dump_json())
        case RateImportance() as ask:
            yield Piece(Importance(ratings=[MUNDANE] * len(ask.memories)).model_dump_json())
        case _:
            async with aclosing(rules.reply(request)) as parts:
                async for part in parts:
                    yield part


async def count_calls(
    setting: Setting,
    steps: int,
    on_step: Callable[[int], None] = lambda _: None,
    models: Mapping[str, str] = MappingProxyType({}),
) -> Counting:
    """Run a number of steps from the beginning without a model, and count the calls that models would get.

    Args:
        models: model name by role, as in `Models.named`. A role with a model gets the replies of a typical model
            (`_reply`), which count with their average length. The other roles are answered by rules.
    """
    counting = Counting()
    lived = replace(counting, name=LIVED)  # shares its counts with `counting`
    names = {role: models.get(role, models.get("default", Rules.name)) for role in ROLES}
    table = {role: counting if name == Rules.name else lived for role, name in names.items()}
    with TemporaryDirectory() as scratch:
        async with Town.open(scratch, replace(setting), model=Models(counting, table)) as town:
            await town.run(steps - 1, on_step)
    return counting


def cost_usd(counted: Counting, models: Mapping[str, str]) -> float | None:
    """Return the cost of the counted calls in US dollars; None if a price is unknown. From the second call of a prompt
    on, its static tokens count as cached."""
    total = 0.0
    for label, asked in counted.without_rules(models).by_kind.items():
        name = counted.model_of(label, models)
        vendor, _, model = name.partition(":")
        cached = asked.static - asked.static // max(1, asked.calls)
        cost = price(model, Address(name, vendor, model, None, ""), asked.tokens_in, asked.tokens_out, cached)
        if cost is None:
            return None
        total += cost
    return total
