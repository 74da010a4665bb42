"""The belief reasoner: hierarchical, one mini-reasoner per phase, tools in the loop.

A mini-reasoner is the prompt of one phase of the conversation. Source: Christakopoulou 2024, 3.2.2 and 4.2.

In one run, the mini-reasoner of the believed phase thinks, with tools, and returns the next belief (with its phase),
the plan, and a briefing for the talker. It reads the utterances and the talker's answers.

If the mini-reasoner changes to a phase with planning but writes no plan, the mini-reasoner of the new phase thinks as
well. This happens only if a language model thinks and the talker waits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from typing import Any

from pydantic import JsonValue

from mindstream.clock import format_spoken
from mindstream.coach.belief.plan import CoachingPlan, calibration_of, read_coaching_plan
from mindstream.coach.belief.think import InterimBelief, Think, Thinking, WithBelief, notes_of, resource_tool, step_tool
from mindstream.coach.events import Alarmed
from mindstream.coach.packs.pack import Pack, zone_in
from mindstream.coach.packs.safety import find_hint, look_over
from mindstream.errors import ModelError
from mindstream.json_values import JsonObject
from mindstream.log.events import PlanChanged, Thought
from mindstream.memory.conversation import Line, Note, lines, lines_of_talks, note
from mindstream.memory.memory import Memory
from mindstream.memory.recall.ranking import LOW_CERTAINTY
from mindstream.memory.store.record import Kind, Record, RecordDraft
from mindstream.memory.store.store import Entry, Revision
from mindstream.memory.stream import Belief, merged
from mindstream.minds.responder import Part, fit
from mindstream.models.model import Model
from mindstream.models.rules import Rules
from mindstream.models.untrusted import cut
from mindstream.reasoners.reasoner import EVERY_TURN, REMEMBERED, Briefing, RunContext, RunResult, Trigger, Writing
from mindstream.text.words import language_of, sentences
from mindstream.tools.call import run_tool_loop
from mindstream.tools.named import recall_tool
from mindstream.tools.tool import Tool

LINES, TALK_TOKENS, RECALLED, RECALLED_TOKENS = 8, 700, 4, 300
"""Limits of the prompt.

- LINES: maximum number of lines before the utterances. A belief may rest on these lines; belief, plan and the last
  briefing cover older lines. TALK_TOKENS: maximum number of tokens of all these lines together.
- RECALLED: maximum number of recalled memories. RECALLED_TOKENS: maximum number of tokens of all these memories
  together.
"""
SHOWN = 2
"""Number of lines directly before the utterances that the prompt (think.md) shows.

Questions in these lines are not listed among the coach's earlier questions. A belief may also rest on older lines, up
to LINES lines back.
"""
QUESTIONS, LONGEST_QUESTION = 5, 120
"""Maximum number of the coach's earlier questions in the prompt, and their maximum length in characters."""


@dataclass(frozen=True)
class BeliefReasoner:
    """Update the belief about the user, and the plan. The reasoner's slot is the pack's name.

    Attributes:
        notes: whether the reasoner also writes new beliefs as notes; False if another reasoner extracts facts.
        steps: maximum number of model calls of a mini-reasoner in its tool loop.
        zone: the user's time zone, unless the user names another one.
    """

    model: Model
    pack: Pack
    notes: bool = True
    steps: int = 8
    trigger: Trigger = EVERY_TURN
    timeout_s: float = 180.0
    zone: tzinfo | None = None

    @property
    def slot(self) -> str:
        return self.pack.name

    async def think(self, context: RunContext) -> RunResult:
        belief = await context.memory.belief(self.slot, self.pack.belief)
        question = await self._question(context, belief)
        believing = InterimBelief(context, belief, question)
        patches, before, plan, found = list[JsonObject](), question.plan, question.plan, Thinking(thought="")
        thinks_twice = self.model.name != Rules.name
        for _ in range(2):  # again if the first pass entered a phase that needs a plan, made none, and the talker waits
            tools = WithBelief(self._tools(question, context), believing, context)
            newest = await run_tool_loop(self.model, question, tools, context, steps=self.steps)
            found, patches, plan = _joined(found, newest), [*patches, newest.patch], plan.edit(newest.plan)
            phase = found.phase or question.phase.name
            plans = self.pack.phase(phase).plans and not found.plan
            if phase == question.phase.name or not (thinks_twice and plans and context.waits):
                break
            value = merged(belief, believing.compose(*patches))[0].model_dump(mode="json", exclude={"phase"})
            question = question.model_copy(
                update={
                    "phase": self.pack.phase(phase),
                    "belief": _held(value),
                    "plan": plan,
                    "first": str(found.briefing),
                }
            )

        found, asked = ask_once_more(found, question.briefing.asked)
        briefing = replace(found.briefing, asked=asked)

        async def write() -> Writing:
            patch = {"phase": phase, **believing.compose(*patches)}
            return await self._writing(context, patch, found, plan if plan != before else None)

        thought = f"{phase}: {found.thought}"
        return RunResult(thought, self.model.name, write=write, briefing=briefing, follow_up=found.follow_up)

    async def _question(self, context: RunContext, belief: Belief[Any]) -> Think:
        """Build the prompt of the reasoner for the phase of the conversation that the belief names."""
        stream, pack = context.memory, self.pack
        value: JsonObject = belief.value.model_dump(mode="json")
        phase = str(value.pop("phase"))
        utterances = tuple(utterance.text for utterance in context.utterances)
        plan, talk, zone = await plan_of(stream, pack), await _talk(context), zone_in(pack, value) or self.zone
        before = [record for record in talk if record.seq < context.utterances[0].seq] if context.utterances else talk
        return Think(
            pack=pack,
            phase=pack.phase(phase),
            belief=_held(value),
            version=belief.version,
            plan=plan,
            kept=str(calibration_of(plan.steps)),
            briefing=(briefing := await read_briefing(stream, self.slot)),
            asked=(*_shown(briefing.asked), *_asked_by_coach(context, before[-SHOWN:])),
            recalled=await _recalled(context, talk),
            conversation=lines_of_talks(before, context.session, stream.clock.now()),
            newest=await _newest(context),
            utterances=utterances,
            reply=context.reply,
            waits=context.waits,
            hint=await _hinted(context, pack),
            language=language_of(" ".join(utterances), pack.languages),
            now=format_spoken(stream.clock.now(), zone) if zone else "",
        )

    def _tools(self, question: Think, context: RunContext) -> list[Tool]:
        """Return the tools of the mini-reasoner: `recall`, those of the mind, and the pack's library.

        The library is offered in phases that plan, and while the talker waits.
        """
        planned, library = [step.title for step in question.plan.steps], list[Tool]()
        if question.phase.plans or question.waits:
            library = [step_tool(self.pack, question.language, planned), resource_tool(self.pack, question.language)]
        taken = {tool.spec.name for tool in context.tools}
        return [*library, *([] if "recall" in taken else [recall_tool(context.memory)]), *context.tools]

    async def _writing(
        self, context: RunContext, patch: JsonObject, found: Thinking, plan: CoachingPlan | None
    ) -> Writing:
        stream, evidence = context.memory, context.evidence
        revision = await stream.revision(self.slot, patch, self.pack.belief, evidence=evidence, by=self.slot)
        entries, revisions = [revision] if revision else [], list[Revision]()
        if revision and self.notes:
            before = (await stream.belief(self.slot, self.pack.belief)).value.model_dump(mode="json")
            after = revision.records[0].data["value"]
            assert isinstance(after, dict)
            noted, ended = await notes_of(context, self.slot, before, after)
            entries, revisions = [*entries, *noted], list(ended)
        if plan is not None:
            entries.append(await self._plan(stream, plan, found, evidence))
        reports = [edit for edit in found.plan if edit.report or edit.did is not None]
        if reports:
            news = []
            for each in reports:
                text = f"{each.title}: {each.report or ('done' if each.did else 'not done')}"
                data: JsonObject = {"step": each.title, "did": each.did}
                news.append(RecordDraft(text=text, kind="feedback", by="user", evidence=evidence, data=data))
            entries.append(Entry.remembered(await stream.build_records(news), self.slot))
        return entries, revisions

    async def _plan(self, stream: Memory, plan: CoachingPlan, found: Thinking, evidence: tuple[str, ...]) -> Entry:
        slot = plan_slot(self.pack)
        before = await stream.version(slot)
        version = (before.version or 0) + 1 if before else 1
        new = RecordDraft(
            text=plan.written() or "no steps",
            kind="plan",
            by=self.slot,
            evidence=evidence,
            slot=slot,
            version=version,
            data={"plan": plan.model_dump(mode="json")},
        )
        event = PlanChanged(version=version, text=plan.written(), changed=found.changed)
        return Entry(event, self.slot, tuple(await stream.build_records([new])))


async def _hinted(context: RunContext, pack: Pack) -> str:
    """Return the id of the alarm that the utterances of this run hint at; "": none.

    The log is searched first, then the words of the utterances.
    """
    about, store, key = {utterance.seq for utterance in context.utterances}, context.memory.store, context.memory.key
    since, newest = min(about, default=0), await store.last(key, Alarmed.kind)
    raised = await store.events(key, since, [Alarmed.kind]) if newest and newest.seq > since else []
    for row in raised:
        if isinstance(row.event, Alarmed) and row.event.strength == "hint" and row.event.answers in about:
            return row.event.alarm
    for utterance in context.utterances:
        await look_over(pack, utterance.text)
        if (hint := find_hint(pack, utterance.text)) and hint.basis == "words":
            return hint.alarm.id
    return ""


async def _talk(context: RunContext) -> list[Record]:
    """Return the last LINES lines before the newest utterance, without the utterances of this run.

    If this conversation has fewer lines, lines of earlier conversations come before them. At most TALK_TOKENS tokens
    are kept, the newest ones.
    """
    talk = list(context.conversation[-LINES:])
    if len(talk) < LINES and context.utterances:
        began = min([talk[0].seq if talk else context.utterances[0].seq, context.utterances[0].seq])
        newest = await context.memory.latest("chat", 2 * LINES)
        before = [record for record in newest if record.seq < began and record.episode != context.session]
        talk = [*before[len(talk) - LINES :], *talk]
    return list(fit([Part("talk", lines(talk), "last")], TALK_TOKENS).kept("talk", talk))


async def _newest(context: RunContext) -> tuple[Line, ...]:
    """Return the utterances of this run and the answers between and after them, as lines in order.

    Utterances of an earlier conversation that were postponed to this run are included. Return () if the run has no
    utterances.
    """
    if not context.utterances:
        return ()
    first, last = context.utterances[0].seq, context.utterances[-1].seq
    talks = {utterance.session for utterance in context.utterances}
    found = await context.memory.latest("chat", REMEMBERED)
    newest = [each for each in found if each.seq >= first and each.episode in talks]
    said = [each for each in newest if each.seq <= last or not each.data.get("by_user")]
    return lines_of_talks(said, context.session, context.memory.clock.now())


def _asked_by_coach(context: RunContext, shown: Sequence[Record]) -> list[str]:
    """Return the coach's newest questions in this conversation, without those in the records `shown`."""
    seen = {record.id for record in shown}
    older = [each for each in context.conversation if each.id not in seen and not each.data.get("by_user")]
    first = min((utterance.seq for utterance in context.utterances), default=0)
    said = [each for record in older if record.seq < first for each in sentences(record.text)]
    return [f"coach: {cut(text, LONGEST_QUESTION)}" for text in said if text.endswith(("?", "？"))][-QUESTIONS:]


async def _recalled(context: RunContext, talk: Sequence[Record]) -> tuple[Note, ...]:
    """Return memories that match the utterances, without notes and without lines of this conversation."""
    shown = {record.id for record in (*context.conversation, *talk)} | {each.record for each in context.utterances}
    query = "\n".join(utterance.text for utterance in context.utterances)
    if not query.strip():
        return ()
    kinds: tuple[Kind, ...] = ("chat", "thought", "observation", "document", "feedback")
    try:
        found = await context.memory.recall(query, k=RECALLED, kinds=kinds, floor=LOW_CERTAINTY, touch=False)
    except ModelError:  # the embedder is unavailable
        return ()
    now, earlier = context.memory.clock.now(), (each.record for each in found if each.record.id not in shown)
    notes = [note(record, now) for record in earlier if record.episode != context.session]
    return fit([Part("recalled", notes)], RECALLED_TOKENS).kept("recalled", notes)


def _held(value: Mapping[str, JsonValue]) -> JsonObject:
    return {name: each for name, each in value.items() if each not in (None, [], "")}


def _joined(first: Thinking, then: Thinking) -> Thinking:
    """Return the combined result of two mini-reasoners: the second result, with the plan edits of both. Fields in
    `stands` that are empty in the second result are taken from the first one. The caller combines the patches of the
    belief."""
    stands = ("ask", "ask_about", "offer", "care", "follow_up", "phase", "changed")
    said = {name: getattr(then, name) or getattr(first, name) for name in stands}
    return then.model_copy(update={**said, "plan": [*first.plan, *then.plan]})


def plan_slot(pack: Pack) -> str:
    """Return the slot of a pack's plan."""
    return f"{pack.name}.plan"


async def plan_of(stream: Memory, pack: Pack) -> CoachingPlan:
    """Return the current plan; empty if there is none."""
    return plan_from(await stream.version(plan_slot(pack)))


def plan_from(record: Record | None) -> CoachingPlan:
    """Return the plan in a record; empty if there is none."""
    return read_coaching_plan(record.data.get("plan")) if record else CoachingPlan()


LOOKED_BACK = 100
"""Number of log rows that are searched for the last thought of a slot (a reasoner's name)."""


async def read_briefing(stream: Memory, slot: str) -> Briefing:
    """Return the briefing for the talker in a slot's last thought.

    Only the newest thought of any slot and about LOOKED_BACK log rows before it are searched. If the slot has no
    thought among them, return an empty briefing.
    """
    last = await stream.store.last(stream.key, Thought.kind)
    rows = [] if last is None else [last]
    if last and not (isinstance(last.event, Thought) and last.event.slot == slot):
        rows = await stream.store.events(stream.key, max(0, last.seq - LOOKED_BACK), [Thought.kind])
    own = (row.event for row in reversed(rows) if isinstance(row.event, Thought) and row.event.slot == slot)
    thought = next(own, None)
    if thought is None:
        return Briefing()
    last_heard = max(thought.about, default=0)
    return Briefing(thought.stands, thought.ask, thought.offer, thought.care, thought.asked, last_heard)


MAX_TIMES, MAX_ASKED = 2, 24
"""MAX_TIMES: maximum number of briefings that ask a question about the same subject. Several briefings in a row count
once.
MAX_ASKED: number of newest subjects that are counted."""


def ask_once_more(found: Thinking, asked: Sequence[str]) -> tuple[Thinking, tuple[str, ...]]:
    """Remove the question from a result if MAX_TIMES earlier briefings asked about its subject.

    Return the result and the updated list of subjects. A subject that two briefings in a row ask about counts once,
    because the talker may not have asked the question yet.

    Args:
        asked: the subjects of earlier questions (`Briefing.asked`).
    """
    about = (found.ask_about.strip() or found.ask.strip()).casefold() if found.ask.strip() else ""
    if about and asked.count(about) >= MAX_TIMES:
        found, about = found.model_copy(update={"ask": "", "ask_about": ""}), ""
    same = bool(asked) and asked[-1] == about
    return found, (*asked, *(() if same else (about,)))[-MAX_ASKED:]


def _shown(asked: Sequence[str]) -> tuple[str, ...]:
    """Return the subjects of earlier questions as the prompt shows them, each once.

    A subject that was asked about at least MAX_TIMES times has a mark.
    """
    return tuple(
        f"{about} (twice: not again)" if asked.count(about) >= MAX_TIMES else about
        for about in dict.fromkeys(asked)
        if about
    )
