"""The prompt of a mini-reasoner (the reasoner in one phase), which decides with tools what to believe, plan and say.

Beliefs must be supported by utterances, notes or tool results (`ground_patch`). Resources and links must come from the
pack, the plan or tool results. After a tool result, the mini-reasoner may note an interim belief, on which its next
call can be based. Interim beliefs are logged, and combined into the next belief at the end of the run.

Without a model, a rule notes topics and plans steps by topic (`note_topics_and_plan_steps`).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, overload

from pydantic import BaseModel, Field, JsonValue, model_validator

from mindstream.arrays import Floats
from mindstream.coach.belief.plan import CoachingPlan, NamedResource, PlanStep, StepEdit
from mindstream.coach.events import Believed
from mindstream.coach.packs.load import phrases, say
from mindstream.coach.packs.pack import Pack, Phase, Resource, Step, Topic, all_texts, in_language, topics_in
from mindstream.coach.packs.safety import find_alarm, spoke_of_danger
from mindstream.errors import InputError, ReplyInvalid, ToolError
from mindstream.json_values import JsonObject, texts_in
from mindstream.memory.conversation import Line, Note, user_statements
from mindstream.memory.store.store import Entry, Revision
from mindstream.memory.stream import Belief, merged
from mindstream.models.embedders.embedder import vectors
from mindstream.models.model import JsonSchema, Message
from mindstream.models.prompt import Prompt, rule
from mindstream.reasoners.reasoner import Briefing, RunContext, Writing
from mindstream.text.classifier import Support, complaint, named
from mindstream.text.links import bare, has_links, links, without_links
from mindstream.text.words import Language, sentences, terms
from mindstream.tools.tool import FunctionTool, Tool, tool

T = TypeVar("T")
STEPS, RESOURCES = 4, 4
"""Maximum number of steps, and of resources, that a search returns."""
LIKE, ENOUGH, LEAST = 0.6, 0.45, 0.15
"""LIKE: weight of similarity in meaning in the score of a step or resource, in addition to common topics and words.
ENOUGH: score that a result must exceed. LEAST: score that it must exceed if no result exceeds ENOUGH."""


def find_in(pack: Pack, query: str, language: Language, count: int, kinds: tuple[str, ...] = ()) -> list[NamedResource]:
    """Return the best resources for a query, in the user's language or the pack's first language.

    Args:
        kinds: the wanted kinds; (): any.
    """
    topics, asked, alike = _asked(pack, query, "resources")
    understood = {language, pack.languages[0]}

    def fit(at: int, resource: Resource) -> float:
        about = len(topics & set(resource.topics)) * (1.0 + 0.5 / len(resource.topics))
        found = about + _shared(asked, _words(resource)) + LIKE * max(0.0, alike[at])
        return found + (OWN if found > ENOUGH and resource.language == language else 0.0)

    ranked = sorted(((fit(n, r), -n, r) for n, r in enumerate(pack.resources)), reverse=True)
    fitting = [
        (score, resource)
        for score, _, resource in ranked
        if resource.language in understood
        if not kinds or resource.kind in kinds
    ]
    return [
        NamedResource(
            title=r.title, publisher=r.publisher, link=r.link, why=in_language(r.why, language), language=r.language
        )
        for r in _found(fitting)[:count]
    ]


def _found(ranked: Sequence[tuple[float, T]]) -> list[T]:
    """Return the results with a score above ENOUGH. If there are none, return the results with a score above LEAST."""
    return [item for score, item in ranked if score > ENOUGH] or [item for score, item in ranked if score > LEAST]


OWN = 1.0
"""Bonus of a resource in the user's own language, if its score exceeds ENOUGH."""


def _asked(pack: Pack, query: str, of: str) -> tuple[set[str], set[str], list[float]]:
    """Return a query's topics, its terms, and its similarity to each step or resource of the pack.

    Args:
        of: "steps": compare with the steps; otherwise with the resources.
    """
    topics = set(topics_in(pack, query)) | {topic.id for topic in pack.topics if topic.id in query.split()}

    def embedded() -> Floats:
        return vectors([_words(each) for each in (pack.steps if of == "steps" else pack.resources)])

    return topics, set(terms(query)), (pack.cached(("vectors", of), embedded) @ vectors([query])[0]).tolist()


def _words(item: Step | Resource) -> str:
    """Return the text of a step or resource for comparison, in English if available."""
    about = " ".join(item.topics).replace("_", " ")
    if isinstance(item, Step):
        return f"{in_language(item.title, 'en')}. {in_language(item.do, 'en')} {about}"
    return f"{item.title}. {in_language(item.why, 'en')} {about} {item.kind}"


def _shared(asked: set[str], words: str) -> float:
    return len(asked & set(terms(words))) / (len(asked) or 1)


def steps_in(
    pack: Pack, query: str, language: Language, count: int, besides: Sequence[str] = ()
) -> list[dict[str, str]]:
    """Return the library's steps that fit a query best, at most `count`, as text fields.

    If a step is only for users with certain topics, or not for them, its text fields name these topics (`only_for`,
    `not_for`).

    Args:
        besides: titles of steps that are left out.
    """
    topics, asked, alike = _asked(pack, query, "steps")

    def fit(at: int, step: Step) -> float:
        about = len(topics & set(step.topics)) / math.sqrt(len(step.topics))
        own = f"{in_language(step.title, language)} {in_language(step.do, language)}"
        return about + _shared(asked, f"{own} {_words(step)}") + LIKE * max(0.0, alike[at])

    left_out = {title.casefold() for title in besides}
    ranked = sorted(
        (
            (fit(at, step), -at, step)
            for at, step in enumerate(pack.steps)
            if in_language(step.title, language).casefold() not in left_out
        ),
        reverse=True,
    )
    return [_told(pack, step, language) for step in _found([(score, step) for score, _, step in ranked])[:count]]


def _told(pack: Pack, step: Step, language: Language) -> dict[str, str]:
    """Return a step's texts, and its intended users if they are restricted."""
    texts = {name: in_language(getattr(step, name), language) for name in ("title", "do", "why", "caution")}
    whom = {"only_for": pack.only_for(step), "not_for": step.not_for}
    named = {
        key: ", ".join(in_language(topic.name, language) for topic in pack.topics if topic.id in ids)
        for key, ids in whom.items()
        if ids
    }
    return {"id": step.id, **texts, "evidence": step.evidence, **named}


def step_tool(pack: Pack, language: Language, planned: Sequence[str]) -> FunctionTool:
    """Return the tool `find_steps` of a pack; it does not find steps with a title in `planned`."""

    def find_steps(query: str) -> list[dict[str, str]]:
        """How steps on a trouble are done, and whom they are not for."""
        return steps_in(pack, query, language, STEPS, planned)

    return tool(find_steps)


def resource_tool(pack: Pack, language: Language) -> FunctionTool:
    """Return the tool `find_resources` of a pack."""

    def find_resources(query: str) -> list[dict[str, str | None]]:
        """Something to read, watch or hear, where they ask; name no other titles."""
        return [resource.model_dump() for resource in find_in(pack, query, language, RESOURCES)]

    return tool(find_resources)


LOOKED_BACK = 400
"""Maximum number of notes, the newest ones, that are searched for notes of removed items."""


async def notes_of(context: RunContext, by: str, before: Mapping[str, object], after: Mapping[str, object]) -> Writing:
    """Return the changes of notes after the belief has changed: log entries and revisions.

    The log entries have notes of new items. The revisions end the validity of notes about removed items; only the
    newest LOOKED_BACK notes are searched.
    """
    had, has = dict.fromkeys(_items(before)), dict.fromkeys(_items(after))
    new, gone = [each for each in has if each not in had], {each for each in had if each not in has}
    stream = context.memory
    drafts = [context.note_draft(f"{slot.replace('_', ' ')}: {item}", slot, item, by) for slot, item in new]
    records = await stream.build_records(drafts)
    instead = {slot: record.id for (slot, _), record in zip(new, records, strict=True)}
    notes = await stream.latest("note", LOOKED_BACK) if gone else []
    revisions = [
        Revision(id=note.id, valid_until=stream.clock.now(), superseded_by=instead.get(note.about.predicate))
        for note in notes
        if note.about and (note.about.predicate, note.about.object) in gone
    ]
    return [Entry.remembered(records, by)] if records else [], revisions


def _items(value: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for slot, held in value.items():
        if slot != "phase":
            for item in held if isinstance(held, list) else [held]:
                if item not in (None, ""):
                    yield slot, str(item)


SHOWN = 400
"""Maximum number of characters of made-up titles and links in a message to the model."""


@dataclass(frozen=True)
class Given:
    """The titles and links that a mini-reasoner's result may contain.

    Attributes:
        links: links of the pack, the previous plan and tool results; a resource may have these.
        said: `links`, and links in the conversation and in notes; texts may repeat these.
        titles: titles of resources of the pack and the plan, in the form that `_letters` returns.
        results: all tool results as one text, in the same form.
    """

    links: frozenset[str]
    said: frozenset[str]
    titles: frozenset[str]
    results: str

    def has_title(self, title: str) -> bool:
        """Return whether the pack, the plan or a tool result has this title; case and punctuation are ignored."""
        plain = _letters(title)
        return bool(plain) and (plain in self.titles or plain in self.results)


@dataclass
class MadeUp:
    """Titles and links in a model's result that no source contains, so that the model must have made them up."""

    titles: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        named = [f"“{title}”" for title in dict.fromkeys(self.titles)] + list(dict.fromkeys(self.links))
        return ", ".join(named)[:SHOWN]


def gather_given(pack: Pack, plan: CoachingPlan, said: Iterable[str], turns: Sequence[Message]) -> Given:
    """Gather the titles and links that a result may contain.

    A link in a tool result does not count if the model itself has put it into a call.
    """
    known: set[str] = set()
    own: set[str] = set()
    results: list[str] = []
    said = list(said)
    for turn in turns:
        if turn.role == "tool":
            known |= links([turn.text]) - own
            results.append(turn.text)
        elif turn.role == "user":
            said.append(turn.text)
        own |= links(f"{call.tool} {call.arguments}" for call in turn.calls) - known
    packs_links, packs_titles = pack.cached(("given", ""), lambda: _named(pack.resources))
    planned_links, planned_titles = _named(resource for step in plan.steps for resource in step.resources)
    known |= packs_links | planned_links | links(texts_in(plan.model_dump(mode="json")))
    titles = packs_titles | planned_titles
    return Given(frozenset(known), links(said) | known, titles, _letters(" ".join(results)))


def _named(resources: Iterable[Resource | NamedResource]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the links and titles of resources, in the forms in which they are compared (`bare`, `_letters`)."""
    links_of, titles = set(), set()
    for resource in resources:
        titles.add(_letters(resource.title))
        if resource.link:
            links_of.add(bare(resource.link))
    return frozenset(links_of), frozenset(titles)


def ground_edits(edits: Sequence[StepEdit], known: Given, made_up: MadeUp) -> list[StepEdit]:
    """Return edits of a plan without made-up resources and links; these are added to `made_up`."""

    def kept(resource: NamedResource) -> NamedResource | None:
        if not known.has_title(resource.title):
            made_up.titles.append(resource.title)
            return None
        if resource.link and bare(resource.link) not in known.links:
            made_up.links.append(bare(resource.link))
            return resource.model_copy(update={"link": None})
        return resource

    return [
        edit.model_copy(update={"resources": [each for resource in edit.resources if (each := kept(resource))]})
        for edit in edits
    ]


def drop_made_up_links(value: Any, known: Given, made_up: MadeUp) -> Any:
    """Return a value from whose texts all links that are not in `Given.said` were removed; these are added to
    `made_up`."""
    if isinstance(value, str):
        text, gone = without_links(value, known.said)
        made_up.links += gone
        return text
    if isinstance(value, list):
        return [drop_made_up_links(item, known, made_up) for item in value]
    if isinstance(value, dict):
        return {key: drop_made_up_links(item, known, made_up) for key, item in value.items()}
    return value


def ground_patch(patch: Mapping[str, JsonValue], rests_on: str, support: Support) -> tuple[JsonObject, list[str]]:
    """Return the supported part of a patch, and the unsupported items as `field: text`.

    If the quotation `rests_on` occurs in the sources, the whole patch is supported. Otherwise an item is supported if
    at least half of its words, and all its numbers, occur in the sources. The phase, values of None, and removals from
    a list always count as supported.
    """
    if support.has_quotation(rests_on):
        return dict(patch), []
    gone: list[str] = []

    def kept(name: str, value: JsonValue) -> bool:
        if support.has_most_words(f"{value:g}" if isinstance(value, float) else str(value)):
            return True
        gone.append(f"{name}: {value}")
        return False

    left: JsonObject = {}
    for name, value in patch.items():
        if value is None or name == "phase":
            left[name] = value
        elif isinstance(value, dict):
            added = value.get("add")
            items = added if isinstance(added, list) else [] if added is None else [added]
            left[name] = {**value, "add": [item for item in items if kept(name, item)]}
        elif isinstance(value, list):
            left[name] = [item for item in value if kept(name, item)]
        elif kept(name, value):
            left[name] = value
    return left, gone


def _letters(text: str) -> str:
    """Return the form in which titles are compared: only letters and digits, in lower case.

    `&lt;`, an escaped `<`, is removed first.
    """
    return re.sub(r"[\W_]+", "", text.casefold().replace("&lt;", ""))


LONGEST_WORDS, LONGEST_PATCH = 6_000, 16_000
"""Maximum length, in characters, of an offer or follow-up to the user, and of a patch of the belief (as JSON)."""
LONGEST_QUOTE = 400
MOST_EDITS = 12
"""Maximum number of plan edits at once."""


class Thinking(BaseModel, frozen=True):
    """The result of a mini-reasoner; fields without a change are empty.

    Attributes:
        phase: the phase of the conversation from now on; "": unchanged.
        patch: belief fields that change.
        rests_on: a quotation of the user or of a tool's result that supports the patch.
        plan: edits of the plan.
        changed: a description of the edits for the log.
        thought, ask, offer, care: the briefing for the talker (see `Briefing`).
        ask_about: the subject of the question `ask`, by which a repeated question is recognised.
        follow_up: a message to the user that corrects or completes the talker's answer; "": none.
    """

    thought: str = Field(max_length=2_000)
    phase: str = Field("", max_length=100)
    patch: JsonObject = {}
    rests_on: str = Field("", max_length=LONGEST_QUOTE)
    plan: list[StepEdit] = Field(default_factory=list, max_length=MOST_EDITS)
    changed: str = Field("", max_length=1_000)
    ask: str = Field("", max_length=300)
    ask_about: str = Field("", max_length=60)
    offer: str = Field("", max_length=LONGEST_WORDS)
    care: str = Field("", max_length=1_000)
    follow_up: str = Field("", max_length=LONGEST_WORDS)

    @model_validator(mode="before")
    @classmethod
    def _unnested(cls, value: Any) -> Any:
        """Move the fields `rests_on` and `phase` out of the patch; some models write them there by mistake."""
        patch = value.get("patch") if isinstance(value, dict) else None
        if not isinstance(patch, dict):
            return value
        beside = {name: patch[name] for name in ("rests_on", "phase") if isinstance(patch.get(name), str)}
        return {**beside, **value, "patch": {name: each for name, each in patch.items() if name not in beside}}

    @property
    def briefing(self) -> Briefing:
        """The briefing for the talker."""
        return Briefing(self.thought, self.ask, self.offer, self.care)


class Think(Prompt[Thinking]):
    """Decide what to believe, plan and say after these utterances, as the phase asks (Christakopoulou 2024, 3.2.2).

    Attributes:
        briefing: the last briefing for the talker.
        conversation: the lines before the utterances.
        newest: all lines from the first of the utterances on, in order.
        reply: the talker's answer.
        waits: whether the talker has not answered yet but waits for this result.
        first: the briefing by the mini-reasoner of the previous phase, if that mini-reasoner has changed the phase in
            this run; "": none.
        hint: the id of the alarm that the newest utterances may hint at; "": none.
        kept: a comparison of the reasoner's forecasts with what the user did (`Calibration`); "": too few steps.
        asked: the subjects of earlier questions, and the coach's questions in lines that the prompt does not show.
    """

    pack: Pack
    phase: Phase
    belief: JsonObject
    version: int = 0
    plan: CoachingPlan
    briefing: Briefing = Briefing()
    recalled: tuple[Note, ...] = ()
    conversation: tuple[Line, ...]
    newest: tuple[Line, ...] = ()
    utterances: tuple[str, ...]
    reply: str = ""
    waits: bool = False
    first: str = ""
    hint: str = ""
    kept: str = ""
    asked: tuple[str, ...] = ()
    language: str = "en"
    now: str = ""

    @property
    def timeline(self) -> tuple[Line, ...]:
        """All lines of the conversation in this prompt, in order."""
        return (*self.conversation, *self.newest)

    def reply_schema(self) -> JsonSchema | None:
        """Return the schema of the reply, in which `phase` is one of the pack's phases; None for free text."""
        schema = super().reply_schema()
        if schema is None:
            return None
        phases = {"type": "string", "enum": [phase.name for phase in self.pack.phases]}
        return {**schema, "properties": {**schema["properties"], "phase": phases}}

    def parse(self, text: str) -> Thinking:
        found = super().parse(text)
        if len(json.dumps(found.patch, ensure_ascii=False)) > LONGEST_PATCH:
            raise ReplyInvalid(
                f"The patch has more than {LONGEST_PATCH:,} characters. Send only the changed fields, shortened."
            )
        names = [phase.name for phase in self.pack.phases]
        if found.phase and found.phase not in names:
            raise ReplyInvalid(f"There is no phase {found.phase!r}. The phases are: {', '.join(names)}.")
        patch = compose_patches([found.patch])
        shape = self.pack.belief
        try:
            merged(Belief("belief", self.version, shape.model_validate(self.belief)), patch)
        except InputError as error:
            raise ReplyInvalid(f"The patch does not fit: {error}") from None
        return found

    def ground(self, reply: Thinking, turns: Sequence[Message]) -> tuple[Thinking, str]:
        """Return the reply without unsupported beliefs and made-up resources and links, and a complaint for the model.

        The removed items are named at the end of the reply's `thought`. The complaint is "" if nothing was removed.
        """
        supported, unsupported = self._supported(reply, turns)
        kept, made_up = self._without_made_up(supported, turns)
        return kept, " ".join(filter(None, (unsupported, made_up)))

    def _supported(self, reply: Thinking, turns: Sequence[Message]) -> tuple[Thinking, str]:
        """Return the reply with only the supported beliefs, and a complaint about the others."""
        given = (turn.text for turn in turns if turn.role in ("tool", "user"))
        patch, gone = ground_patch(reply.patch, reply.rests_on, Support([*self.stated(), *given]))
        if not gone:
            return reply, ""
        thought = f"{reply.thought} (Left out, because it rests on nothing: {named(gone)}.)"
        return reply.model_copy(update={"patch": patch, "thought": thought}), complaint(gone)

    def stated(self) -> Iterator[str]:
        """Yield the texts that can support a belief, apart from tool results.

        They are the user's statements, the recalled memories, and the current belief.
        """
        newest = next((n for n, line in enumerate(reversed(self.newest)) if line.by_user), 0)
        yield from user_statements([*self.conversation, *self.newest[: len(self.newest) - newest]], self.utterances)
        yield from (note.text for note in self.recalled)
        yield json.dumps(self.belief, ensure_ascii=False)

    def _without_made_up(self, reply: Thinking, turns: Sequence[Message]) -> tuple[Thinking, str]:
        whole = reply.model_dump(mode="json")
        resources = any(edit.resources for edit in reply.plan)
        if not resources and not has_links(json.dumps(whole, ensure_ascii=False)):
            return reply, ""
        said = [line.text for line in self.timeline] + [*map(str, self.recalled), *self.utterances, self.reply]
        known, made_up = gather_given(self.pack, self.plan, said, turns), MadeUp()
        edits = ground_edits(reply.plan, known, made_up)
        whole = drop_made_up_links(whole | {"plan": [edit.model_dump() for edit in edits]}, known, made_up)
        if not str(made_up):
            return reply, ""
        thought = f"{whole['thought']} (Left out, because nothing gave it: {made_up}.)"
        kept = type(reply).model_validate(whole).model_copy(update={"thought": thought})
        return kept, f"No tool gave this: {made_up}. Name only resources and links that a tool gave, as it gave them."


def compose_patches(patches: Sequence[Mapping[str, JsonValue]]) -> JsonObject:
    """Combine patches of a belief into one: additions and removals accumulate, later values replace earlier ones.

    The phase is left out.
    """
    whole: dict[str, Any] = {}
    for patch in patches:
        for name, value in patch.items():
            if name == "phase":
                continue
            before = whole.get(name)
            if isinstance(value, list | dict) and isinstance(before, list | dict):
                added, removed = _parts(before)
                more, less = _parts(value)
                kept = [item for item in added if item not in less]
                whole[name] = {
                    "add": [*kept, *(item for item in more if item not in kept)],
                    "remove": [*(item for item in removed if item not in more), *less],
                }
            else:
                whole[name] = value
    return whole


def _parts(change: Any) -> tuple[list[Any], list[Any]]:
    if isinstance(change, list):
        return change, []
    return _listed(change.get("add")), _listed(change.get("remove"))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


MAX_BELIEFS = 12
"""Maximum number of interim beliefs in a run."""


class InterimBelief:
    """The interim beliefs that are noted during a run, as changes of the belief at the beginning of the run.

    Attributes:
        patches: the interim beliefs as patches, in order.
    """

    def __init__(self, context: RunContext, belief: Belief[Any], question: Think) -> None:
        self.patches: list[JsonObject] = []
        self._occasion, self._belief, self._question = context, belief, question

    def compose(self, *more: JsonObject) -> JsonObject:
        """Return the interim beliefs (the patches that were noted so far) and further patches as one patch."""
        return compose_patches([*self.patches, *more])

    def tool(self) -> Tool:
        """Return the tool `believe`, which notes an interim belief between two calls."""

        async def believe(patch: JsonObject, rests_on: str = "") -> str:
            """Write down what a tool's result makes you believe, before a call that rests on it."""
            return await self._believe(patch, rests_on)

        return replace(tool(believe), in_run=True)

    async def _believe(self, patch: JsonObject, rests_on: str) -> str:
        if len(self.patches) >= MAX_BELIEFS:
            raise ToolError(f"At most {MAX_BELIEFS} interim beliefs are stored in one run. Give the final reply now.")
        if len(json.dumps(patch, ensure_ascii=False)) > LONGEST_PATCH:
            raise ToolError(
                f"The patch has more than {LONGEST_PATCH:,} characters. Send only the changed fields, shortened."
            )
        newer = (utterance.text for utterance in self._occasion.utterances)
        support = Support([*self._question.stated(), *newer, *self._occasion.found])
        if unsupported := ground_patch(patch, rests_on, support)[1]:
            raise ToolError(f"{complaint(unsupported)} Nothing was stored.")
        try:
            value, _ = merged(self._belief, compose_patches([*self.patches, patch]))
        except InputError as error:
            raise ToolError(f"The patch does not fit: {error}") from None
        self.patches.append({name: held for name, held in patch.items() if name != "phase"})
        context = self._occasion
        await context.memory.commit(Entry(Believed(slot=context.slot, patch=self.patches[-1]), context.slot))
        held = value.model_dump(mode="json", exclude_defaults=True)
        held.pop("phase", None)
        return f"Believed now, in place of what stands above: {json.dumps(held, ensure_ascii=False)}"


class WithBelief(Sequence[Tool]):
    """A sequence of tools that also contains the tool `believe` once the run has a tool result."""

    def __init__(self, tools: Sequence[Tool], believing: InterimBelief, context: RunContext) -> None:
        self._tools, self._believe, self._context = tools, believing.tool(), context

    def _offered(self) -> list[Tool]:
        return [*self._tools, self._believe] if self._context.found else list(self._tools)

    @overload
    def __getitem__(self, at: int) -> Tool: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Tool]: ...
    def __getitem__(self, at: int | slice) -> Tool | Sequence[Tool]:
        return self._offered()[at]

    def __len__(self) -> int:
        return len(self._offered())


AHEAD = 4
"""Maximum number of open steps in a plan that is made without a model."""


@rule(Think)
def note_topics_and_plan_steps(ask: Think, _: Sequence[Message]) -> Thinking:
    """Think without a model: note the topics that the user's statements name.

    In a planning phase, also plan steps of the library about these topics. Topics are recognised by their words alone,
    so a denied topic is noted, too. Nothing is noted or planned after one of these:
    - a hint of danger,
    - an alarm that stops the conversation,
    - an answer of the coach about danger.
    """
    alarms = [alarm for text in ask.utterances if (alarm := find_alarm(ask.pack, text))]
    said = [line.text for line in ask.timeline if not line.by_user]
    if ask.hint or any(alarm.stops for alarm in alarms) or spoke_of_danger(ask.pack, said):
        return Thinking(
            thought=f"{f'a hint at {ask.hint}' if ask.hint else 'danger'}: nothing is believed of it, nothing planned"
        )
    stated = [each for text in ask.utterances for each in sentences(text) if not each.endswith(("?", "？"))]
    named = set(topics_in(ask.pack, "\n".join(stated)))
    patch: dict[str, Any] = {}
    for topic in ask.pack.topics:
        spec = ask.pack.fields.get(topic.field)
        if topic.id not in named or spec is None or (spec.of and topic.id not in spec.of) or _held(ask) & _names(topic):
            continue
        value = topic.id if spec.of else in_language(topic.name, ask.language)
        if spec.type == "list":
            patch.setdefault(topic.field, []).append(value)
        elif spec.type == "text":
            patch[topic.field] = value
    thought = f"without a model; topics named: {', '.join(sorted(named)) or 'none'}"
    phase = _phase(ask)
    noted = Thinking(thought=thought, phase=phase.name, patch=patch, rests_on=ask.utterances[-1][:LONGEST_QUOTE])
    return noted.model_copy(update=_plan(ask, named)) if phase.plans else noted


def _phase(ask: Think) -> Phase:
    """Return the first phase, from the current one on, that makes plans, requires no fields, or requires an unknown
    field.

    If there is no such phase, return the last phase. A field is known if it has a value, or if an utterance names one
    of its topics. In all phases but the first, a field is also known once the pack's question about the field was
    asked.
    """
    phases, fields = ask.pack.phases, ask.pack.fields
    known = {name for name, held in ask.belief.items() if held not in (None, [], "")}
    named = {id_ for text in ask.utterances for id_ in topics_in(ask.pack, text)}
    known |= {topic.field for topic in ask.pack.topics if topic.id in named}
    said = "\n".join(line.text for line in ask.timeline if not line.by_user)
    asked = {name for name, spec in fields.items() if any(each in said for each in all_texts(spec.ask))}
    phase = ask.phase
    for follower in phases[phases.index(phase) + 1 :]:
        met = known if phase is phases[0] else known | asked
        if phase.plans or not phase.needs or not set(phase.needs) <= met:
            break
        phase = follower
    return phase


def _plan(ask: Think, named: set[str]) -> dict[str, Any]:
    """Return the fields of `Thinking` with the plan's changes.

    - If there is no step to take, return only a text that says so.
    - If the user knows the current step (`told`) and says the pack's phrase for continuing (`next_word`), the current
      step becomes a habit (`going_on`), and the next step becomes the current one.
    - If the talker waits and the user was not told of the current step yet, add a text that tells of the step.
    """
    plan, words = ask.plan, [each.casefold() for each in phrases(ask.pack, "next_word", ask.language)]
    goes_on = any(text.strip(' .!。！“”"').casefold() in words for text in ask.utterances)
    if plan.now and plan.now.told and goes_on:
        plan = plan.edit([StepEdit(title=plan.now.title, state="going_on")])
    if plan.now is None:
        ahead = [*plan.open, *_steps(ask, named)][:AHEAD]
        if not ahead:
            return {"offer": say(ask.pack, "plan_empty", ask.language)}
        first = ahead[0].model_copy(update={"state": "now"})
        plan = plan.edit([*map(StepEdit.of, ahead[1:]), StepEdit.of(first)])
    told = _words_of(ask, plan.now) if ask.waits and plan.now and not plan.now.told else ""
    if told and plan.now:
        plan = plan.edit([StepEdit(title=plan.now.title, told=True)])
    edits = [StepEdit.of(step) for step in plan.steps if step not in ask.plan.steps]
    return {"plan": edits, "offer": told, "changed": "steps by topic" if edits else ""}


def _steps(ask: Think, named: set[str]) -> list[PlanStep]:
    """Return suitable library steps on the known topics, the best first, without those in the plan."""
    known = named | {topic.id for topic in ask.pack.topics if _held(ask) & _names(topic)}

    def fit(step: Step) -> float:
        return len(known & set(step.topics)) / math.sqrt(len(step.topics))

    had = {step.source for step in ask.plan.steps}
    found = [step for step in ask.pack.steps if step.id not in had and fit(step) and ask.pack.suits(step, known)]
    texts = ("title", "do", "why", "caution")
    return [
        PlanStep(
            **{name: in_language(getattr(step, name), ask.language) for name in texts},
            source=step.id,
        )
        for step in sorted(found, key=fit, reverse=True)
    ]


def _words_of(ask: Think, step: PlanStep) -> str:
    """Return the text that tells the user of a step, with its reason and caution."""
    parts = [say(ask.pack, "step_intro", ask.language), f"**{step.title}**", step.do]
    parts += [say(ask.pack, "step_why", ask.language, why=step.why)] if step.why else []
    parts += [say(ask.pack, "step_caution", ask.language, caution=step.caution)] if step.caution else []
    return "\n".join(parts)


def _held(ask: Think) -> set[str]:
    return {str(item) for value in ask.belief.values() for item in (value if isinstance(value, list) else [value])}


def _names(topic: Topic) -> set[str]:
    return {topic.id, *all_texts(topic.name)}
