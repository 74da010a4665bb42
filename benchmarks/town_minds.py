"""Compare the behaviour of residents with a recorded day: our code must reproduce the record.

Recall, keywords and depth are read from streams that hold the recorded memories; the times of reflections and the
lengths of conversations are computed by the town's own rules and by the published formulas.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np
from mindstream_town.events import Perceived
from mindstream_town.formats.saves import STRENGTH, ConceptNode, PersonaSave
from mindstream_town.formats.town_file import STAMP, parse_time
from mindstream_town.residents.reflection import is_due
from mindstream_town.residents.sight import is_in_sight, nearest
from mindstream_town.residents.turn import Percept
from mindstream_town.saves.importing import KINDS
from mindstream_town.setting import Setting
from mindstream_town.state import ResidentState, applied
from mindstream_town.world.tree import Spot
from numpy.typing import NDArray
from town_recorded import Figure, Measure, Recorded, figure, nothing, stream_of, wait

from mindstream.log.events import Reflected
from mindstream.memory.memory import Memory
from mindstream.memory.recall.ranking import Candidates, Ranking, Rows, best, rated
from mindstream.memory.recall.ranking import spread as scaled
from mindstream.memory.recall.recall import Recalled
from mindstream.memory.store.columns import KIND_CODES

LONG_CHAT = 2_500
"""Characters of a chat above which its recorded end may be a minute before the formula's."""
FOCAL_POINTS, RETURNED = 12, 30
CLOSE = 0.01
"""Largest difference between a score and the formula's: streams store vectors in half precision."""
Floats = NDArray[np.float64]


IDLE = "idle"
"""The keyword under which the published code stores idle objects as percepts."""


@dataclass(frozen=True, slots=True)
class ByRank:
    """The ranking of the published code: recency by rank instead of hours, relevance by vectors alone.

    Its rank begins at the memory that was returned longest ago, so the oldest memory counts as the most recent. This is
    a defect; `newest_first` is the intended order.

    Attributes:
        without: rows that are not candidates.
        thoughts: rows that follow percepts of the same moment.
    """

    decay: float
    newest_first: bool
    without: tuple[int, ...] = ()
    thoughts: tuple[int, ...] = ()

    async def within(self, stream: Memory) -> ByRank:
        """Return the ranking for a stream, without conversations and idle objects."""
        columns = await stream.columns()
        chats = np.flatnonzero(columns.kind.values == KIND_CODES["chat"]).tolist()
        thoughts = np.flatnonzero(columns.kind.values != KIND_CODES["observation"]).tolist()
        return replace(self, without=(*chats, *columns.keywords.of(IDLE).tolist()), thoughts=tuple(thoughts))

    def rank(self, candidates: Candidates, n: int) -> Ranking:
        rows = np.setdiff1d(candidates.rows, self.without)
        signals = candidates.signals(rows)
        parts = {
            "recency": 0.5 * scaled(self._recency(rows, signals.accessed)),
            "importance": 2.0 * scaled(rated(signals.importance)),
            "relevance": 3.0 * scaled(candidates.cosines(rows)),
        }
        return best(rows, parts["recency"] + parts["importance"] + parts["relevance"], n, parts)

    def _recency(self, rows: Rows, accessed: Floats) -> Floats:
        order = np.lexsort((-rows, np.isin(rows, self.thoughts), accessed))
        places = np.empty(len(order))
        places[order[::-1] if self.newest_first else order] = np.arange(1, len(order) + 1)
        return np.power(self.decay, places)


def moment_of(stamp: str) -> float:
    return parse_time(stamp, STAMP)


def recorded_reflections(persona: PersonaSave) -> list[str]:
    """Return the times of a resident's reflections: of thoughts with evidence other than a conversation."""
    kinds = {node.node_id: node.type for node in persona.memory.nodes}
    return sorted(
        {
            node.created
            for node in persona.memory.nodes
            if node.type == "thought" and node.evidence and "chat" not in {kinds[each] for each in node.evidence}
        }
    )


def reflection_times(recorded: Recorded) -> Figure:
    """A5: reflections start when the poignancy of events uses up the trigger; the remainder equals the saved one."""
    cases, differ = 0, []
    for name, persona in recorded.save.personas.items():
        trigger = persona.scratch.importance_trigger_max
        profile = recorded.setting.profile.model_copy(update={"reflect_at": trigger})
        state, times, sums = ResidentState(name=name), [], Counter[str]()
        for node in persona.memory.in_order():
            if node.type == "event":
                sums[node.created] += int(node.poignancy)
        for time, poignancy in sums.items():
            state = applied(state, Perceived(step=0, seen=(), gathered=poignancy), profile)
            if is_due(state, profile):
                state = applied(state, Reflected(upto="", questions=(), thoughts=(), model=""), profile)
                times.append(time)
        found, left = recorded_reflections(persona), trigger - state.gathered
        cases += len(found) + 1
        differ += [f"{name}: {time}" for time in set(times) ^ set(found)]
        if left != persona.scratch.importance_trigger_curr:
            differ.append(f"{name}: {left:.0f} left, {persona.scratch.importance_trigger_curr} saved")
    return figure(cases, differ)


def keyword_strength(recorded: Recorded) -> Figure:
    """A6: the number of times each keyword occurs in events and thoughts that are not idle, by our index."""
    cases, differ = 0, []
    for name, persona in recorded.save.personas.items():
        saved, columns = persona.memory.strength, recorded.minds[name].columns
        idle = {
            columns.position[record.id]
            for records in recorded.minds[name].records.values()
            for record in records
            if record.about and f"{record.about.predicate} {record.about.object}" == "is idle"
        }
        for kind, expected in (("event", saved.kw_strength_event), ("thought", saved.kw_strength_thought)):
            code = KIND_CODES[KINDS[kind]]
            words = {
                word.lower()
                for records in recorded.minds[name].records.values()
                for record in records
                for word in record.keywords
            }
            counted = {
                word: sum(
                    columns.kind.values[at] == code and at not in idle for at in columns.keywords.of(word).tolist()
                )
                for word in words
            }
            if STRENGTH in persona.memory.absent:
                continue
            cases += len(expected)
            differ += [
                f"{name}: {kind}: {word}"
                for word in counted.keys() | expected
                if counted.get(word, 0) != expected.get(word, 0)
            ]
    return figure(cases, differ) if cases or differ else nothing("kw_strength.json is missing, or counts nothing")


def spots_in_sight(recorded: Recorded, persona: PersonaSave, people: Mapping[str, Spot]) -> list[Percept]:
    """Return the residents and objects visible to a resident, each at its nearest place."""
    me, spot, world = persona.name, people[persona.name], recorded.world
    profile = recorded.setting.profile.model_copy(update={"vision": persona.scratch.vision_r})
    setting = replace(recorded.setting, profile=profile)
    things: dict[str, Spot] = {}
    for at, number in world.objects_in(world.arena_of(spot)):
        thing = str(world.places[number])
        if is_in_sight(setting, spot, at):
            things[thing] = min(things.get(thing, at), at, key=lambda each: world.distance(each, spot))
    others = {name: at for name, at in people.items() if name == me or is_in_sight(setting, spot, at)}
    return [Percept(name, "is", "", at) for name, at in (others | things).items()]


def percepts(recorded: Recorded) -> Figure:
    """A7: everything perceived was in the square box, in the same arena, and among the nearest."""
    cases, differ, steps = 0, [], 0
    for name, persona in recorded.save.personas.items():
        by_step: defaultdict[int, list[ConceptNode]] = defaultdict(list)
        for node in persona.memory.in_order():
            if node.type == "event":
                by_step[recorded.setting.step_at_moment(moment_of(node.created))].append(node)
        for step, nodes in by_step.items():
            people = recorded.standing.get(step, {})
            if name not in people:
                continue
            seen = spots_in_sight(recorded, persona, people)
            taken_in = {each.subject for each in nearest(seen, people[name], persona.scratch.att_bandwidth)}
            steps, cases = steps + 1, cases + len(nodes)
            differ += [f"{name}: step {step}: {node.subject}" for node in nodes if node.subject not in taken_in]
            if len(nodes) > persona.scratch.att_bandwidth:
                differ.append(f"{name}: step {step}: {len(nodes)} events at once")
    if not recorded.standing:
        return nothing("no step is recorded, so no resident's position is known")
    return figure(cases, differ, steps=steps) if cases else nothing("no event was kept at a recorded step")


def evidence_depth(recorded: Recorded) -> Figure:
    """A8: a thought is one deeper than its deepest evidence; no evidence is newer than the thought."""
    cases, differ = 0, []
    for name, persona in recorded.save.personas.items():
        nodes = {node.node_id: node for node in persona.memory.nodes}
        for node in nodes.values():
            cases += bool(node.evidence)
            if any(nodes[each].node_count >= node.node_count for each in node.evidence):
                differ.append(f"{name}: {node.node_id} rests on what came later")
            if {record.depth for record in recorded.minds[name].records[node.node_id]} != {node.depth}:
                differ.append(f"{name}: {node.node_id} has depth {node.depth}")
    return figure(cases, differ) if cases else nothing("no node rests on another")


def lines_of(chat: ConceptNode) -> list[tuple[str, str]]:
    return [(line[0], line[1]) for line in chat.filling or () if isinstance(line, tuple)]


def talk_end(setting: Setting, step: int, lines: Sequence[tuple[str, str]]) -> int:
    """Return the last step of a conversation that starts at a step, by the published formula."""
    letters = sum(len(f"{name}: {text}\n") for name, text in lines)
    minute = -int(-setting.moment(step) // 60)
    return setting.step_at_moment((minute + math.ceil(letters // 8 / 30)) * 60)


def chat_ends(recorded: Recorded) -> Figure:
    """A9: conversations end at the formula's time; one step earlier, both residents record its meaning to them."""
    cases, shorter, differ, setting = 0, 0, [], recorded.setting
    for name, persona in recorded.save.personas.items():
        nodes = persona.memory.nodes
        for chat in (node for node in nodes if node.type == "chat"):
            after = [node.created for node in nodes if node.type == "thought" and chat.node_id in node.evidence]
            if not after:
                continue
            cases += 1
            began, ended = setting.step_at_moment(moment_of(chat.created)) - 1, min(map(moment_of, after))
            ended += setting.profile.step_s
            lines = lines_of(chat)
            expected = setting.moment(talk_end(setting, began, lines))
            if ended == expected - 60 and sum(len(f"{who}: {said}\n") for who, said in lines) > LONG_CHAT:
                shorter += 1
            elif ended != expected:
                said = [datetime.fromtimestamp(each, UTC).strftime(STAMP) for each in (ended, expected)]
                differ.append(f"{name}: {chat.node_id} ended {said[0]}, by the formula {said[1]}")
    if not cases:
        return nothing("no thought rests on a chat, so when one ended is not known")
    return figure(cases, differ, a_minute_shorter=shorter)


def spread(values: Sequence[float]) -> Floats:
    found = np.array(values, dtype=np.float64)
    width = found.max() - found.min()
    return (found - found.min()) / width if width else np.full(len(found), 0.5)


def formula(persona: PersonaSave, focal: str, newest_first: bool) -> dict[str, float]:
    """Return the published code's score of each event and thought that is not idle, computed from the nodes."""
    newest = sorted(persona.memory.nodes, key=lambda node: -node.node_count)
    listed = [node for kind in ("event", "thought") for node in newest if node.type == kind]
    nodes = sorted((node for node in listed if IDLE not in node.embedding_key), key=lambda node: node.created)
    if not nodes:
        return {}
    vectors = persona.memory.embeddings.by_key()
    places = range(len(nodes), 0, -1) if newest_first else range(1, len(nodes) + 1)
    recency = [float(persona.scratch.recency_decay) ** place for place in places]
    asked = vectors[focal] / np.linalg.norm(vectors[focal])
    relevance = [float(vectors[node.embedding_key] @ asked) for node in nodes]
    importance = [float(node.poignancy) for node in nodes]
    scores = 0.5 * spread(recency) + 3 * spread(relevance) + 2 * spread(importance)
    return {node.node_id: float(score) for node, score in zip(nodes, scores, strict=True)}


async def recalled(
    persona: PersonaSave, now: float, focal_points: Sequence[str], newest_first: bool
) -> list[list[Recalled]]:
    async with stream_of(persona, now) as stream:
        policy = await ByRank(float(persona.scratch.recency_decay), newest_first).within(stream)
        return [await stream.recall(focal, RETURNED, policy=policy, touch=False) for focal in focal_points]


def focal_points(persona: PersonaSave) -> list[str]:
    """Return some thoughts with recorded vectors to use as queries: the first, the last, and some between."""
    keys = list(dict.fromkeys(node.embedding_key for node in persona.memory.in_order() if node.type == "thought"))
    known = [key for key in keys if key in persona.memory.embeddings.keys]
    return known[:: max(1, len(known) // FOCAL_POINTS)]


def has_vectors(persona: PersonaSave) -> bool:
    """Return for each memory whether its vector was recorded."""
    keys = set(persona.memory.embeddings.keys)
    return all(node.embedding_key in keys for node in persona.memory.nodes)


def retrieval(recorded: Recorded) -> Figure:
    """A11: recall gives 0.5 recency + 3 relevance + 2 importance, with recency as published and as intended."""
    cases, differ, farthest = 0, [], 0.0
    for name, persona in recorded.save.personas.items():
        if not has_vectors(persona):
            continue
        asked = focal_points(persona)
        for newest_first in (False, True):
            for focal, found in zip(asked, wait(recalled(persona, recorded.now, asked, newest_first)), strict=True):
                expected = formula(persona, focal, newest_first)
                least = sorted(expected.values())[-RETURNED:][0] if expected else 0.0
                scores = [(each.score, expected.get(str(each.record.data["node"]), -1.0)) for each in found]
                apart = max((abs(ours - theirs) for ours, theirs in scores), default=0.0)
                cases += len(found)
                farthest = max(farthest, apart)
                if apart > CLOSE or any(theirs < least - CLOSE for _, theirs in scores):
                    differ.append(f"{name}: {focal!r:.60}: {apart:.4f} apart")
    if not cases:
        return nothing("no resident's nodes all have vectors (embeddings.json), or no resident has a thought")
    left_out = [name for name in recorded.save.personas if not has_vectors(recorded.save.personas[name])]
    return figure(cases, differ, farthest=round(farthest, 4), residents_without_vectors=len(left_out))


MINDS: dict[str, Measure] = {
    "A5 reflection times": reflection_times,
    "A6 keyword strength": keyword_strength,
    "A7 percepts": percepts,
    "A8 evidence depth": evidence_depth,
    "A9 chat ends": chat_ends,
    "A11 retrieval": retrieval,
}
