"""A contest between the coach and plain agents, judged blind, in both orders; all steps are stored, so a run can be
resumed.

The conversations are scripted: each line is sent on its day, once the previous line is answered and reasoned about.
"""

from __future__ import annotations

import asyncio
import json
import random
import tempfile
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from mindstream import chance
from mindstream.clock import DAY_S, Moment, SystemClock
from mindstream.coach.coach import Coach
from mindstream.coach.packs.load import SHIPPED
from mindstream.coach.packs.pack import Pack
from mindstream.errors import InputError, SettingsError, prefixed
from mindstream.frozen import Frozen
from mindstream.log.events import FollowUp, Piece
from mindstream.memory.conversation import Line
from mindstream.minds.mind import Mind
from mindstream.minds.responder import Part, Timeouts, fit
from mindstream.models.model import Message, Model, estimate_tokens
from mindstream.models.prompt import Prompt, ask, complaints, speak
from mindstream.models.roles import Models
from mindstream.models.rules import Rules
from mindstream.models.wrappers.meter import Metered
from mindstream.models.wrappers.override import MAX_BYTES
from mindstream.paths import read_text

MOST_BYTES = 20_000_000


class SaidLine(Frozen):
    """A scripted line of the user.

    Attributes:
        days: in the first line of a session, the number of days since the last line of the previous session. Ignored in
            other lines.
        key: the content that a right answer must have. Neither side sees the key. "": the line is not graded.
    """

    text: str = Field(min_length=1)
    session: int = 1
    days: int = Field(1, ge=0)
    key: str = ""


class Script(Frozen):
    """The user's side of a conversation; `who`: a description of the user for judges."""

    id: str = Field(pattern=r"^[\w-]{1,40}$")
    lines: tuple[SaidLine, ...] = Field(min_length=1)
    who: str = ""
    language: str = ""


class Turn(BaseModel):
    """An utterance and its answer, follow-ups included.

    Attributes:
        before: time since the previous turn, such as "the next day"; "" in the same session.
        first_s: seconds until the first part of the answer (without fillers).
        tokens: input and output tokens of all calls of the turn. cached: input tokens that a provider read from a
            cache.
    """

    before: str = ""
    heard: str
    said: str
    first_s: float = 0.0
    tokens: int = 0
    cached: int = 0
    cost_usd: float = 0.0


class Played(BaseModel):
    """A conversation with the answers of one side."""

    id: str
    side: str
    turns: list[Turn]

    def written(self) -> str:
        """Return the transcript for a judge."""
        lines: list[str] = []
        for turn in self.turns:
            lines += [f"--- {turn.before} ---"] if turn.before else []
            lines += [f"USER: {turn.heard}", f"COACH: {turn.said}"]
        return "\n\n".join(lines)


def read_talks(path: Path) -> list[Script]:
    """Read conversations from a JSON file: a list of objects with the fields of `Script`.

    Raises:
        InputError: the file cannot be read, has another form, or contains two conversations with the same id.
    """
    with prefixed(f"{path}:"):
        text = read_text(path, MOST_BYTES)
    try:
        found = TypeAdapter(list[Script]).validate_python(json.loads(text))
    except json.JSONDecodeError as error:
        raise InputError(f"{path} is not valid JSON: {error}") from None
    except ValidationError as error:
        form = '{"id": …, "lines": [{"text": …, "session": 1}]}'
        raise InputError(f"{path}: expected a list of {form}; {complaints(error)}") from None
    if len({each.id for each in found}) < len(found):
        raise InputError(f"{path}: two conversations have the same id; give each its own")
    return found


def passed(before: SaidLine, line: SaidLine) -> str:
    """Return the time between two lines in words; "" in the same session."""
    if line.session == before.session:
        return ""
    return {0: "later that day", 1: "the next day"}.get(line.days, f"{line.days} days later")


RECENT_TOKENS = 8_000
"""Tokens of the newest part of the conversation that the opponent `recent` is shown."""


class PlainAgent(Prompt[str]):
    """Answer the utterance, as a good agent without memory, beliefs and plans would."""

    constitution: str
    history: tuple[Line, ...]
    utterance: str

    def dialogue(self) -> Sequence[Message]:
        return [line.message for line in (*self.history, Line(by_user=True, text=self.utterance))]


class Summarise(Prompt[str]):
    """What is worth keeping of a finished conversation and of the earlier summary?"""

    role = "talker"

    before: str
    talk: tuple[Line, ...]


class Agent:
    """A plain agent, whose only memory is the text of the conversation.

    Args:
        window: number of newest tokens of the conversation in the prompt; 0: all.
    """

    def __init__(self, model: Model, constitution: str, window: int = 0) -> None:
        self._model, self._constitution, self._window = model, constitution, window
        self._said: list[Line] = []

    async def note(self, text: str) -> None:
        """Note the time between two sessions, such as "the next day"."""
        self._said.append(Line(by_user=True, text=f"({text})"))

    async def hear(self, text: str) -> AsyncGenerator[str]:
        """Yield the answer in parts; then add the utterance and the answer to the conversation."""
        history = tuple(self._said)
        if self._window:
            history = fit([Part("history", history, "last")], self._window).kept("history", history)
        prompt, said = PlainAgent(constitution=self._constitution, history=history, utterance=text), ""
        async with aclosing(speak(self._model, prompt, "talker")) as pieces:
            async for piece in pieces:
                said += piece
                yield piece
        self._said += [Line(by_user=True, text=text), Line(by_user=False, text=said)]


class SummingUp(Agent):
    """An agent with the current session and a summary of earlier ones, which it updates when a new session begins."""

    async def note(self, text: str) -> None:
        before = self._said[0].text if self._said and self._said[0].by == "summary" else ""
        talk = tuple(line for line in self._said if line.by != "summary")
        summary = await ask(self._model, Summarise(before=before, talk=talk))
        self._said = [Line(by_user=True, text=f"(What was said before, summed up: {summary})", by="summary")]
        await super().note(text)


PLAIN, RECENT, SUMMARY = "plain", "recent", "summary"
OPPONENTS: dict[str, Callable[[Model, str], Agent]] = {
    PLAIN: Agent,
    RECENT: lambda model, constitution: Agent(model, constitution, RECENT_TOKENS),
    SUMMARY: SummingUp,
}
"""The coach's opponents by name. Their models are shown the whole conversation, its newest tokens, or the current
session and a summary of earlier ones."""


COACH = "coach"
TALKS_AT_ONCE = 4
PATIENCE_S = 3_600.0
"""Timeout of an answer in seconds; long, because the contest does not compare speed."""


class DaysLater(SystemClock):
    """The system clock, set forward by `ahead_s` seconds (the days between scripted sessions)."""

    def __init__(self) -> None:
        self.ahead_s = 0.0

    def now(self) -> Moment:
        return super().now() + self.ahead_s


@dataclass
class Tally:
    """Tokens and cost of the model calls of one turn."""

    tokens: int = 0
    cached: int = 0
    cost_usd: float = 0.0

    def take(self, call: Metered) -> None:
        if call.usage:
            self.tokens += call.usage.input_tokens + call.usage.output_tokens
            self.cached += call.usage.cached_tokens
            self.cost_usd += call.usage.cost_usd or 0.0


@dataclass
class Contest:
    """Plays each conversation once with each side (the coach, or an opponent) and stores it in a file.

    A repeated run plays only the conversations that have no file.

    Args:
        folder: one file per conversation and side, `ID.SIDE.json`.
        constitution: constitution (system prompt) of the opponents.
        against: names of the opponents.
        told: called after each finished conversation.
    """

    models: Models
    pack: Pack
    constitution: str
    folder: Path
    gate: str = ""
    against: Sequence[str] = (PLAIN,)
    told: Callable[[Played], None] = lambda _: None
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(TALKS_AT_ONCE))

    async def play(self, scripts: Sequence[Script]) -> list[Played]:
        """Play each conversation once with the coach and once with each opponent.

        Raises:
            ModelError: a model is not available; finished conversations are stored.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        sides = [(script, side) for script in scripts for side in (COACH, *self.against)]
        return list(await asyncio.gather(*(self._kept(*each) for each in sides)))

    async def _kept(self, script: Script, side: str) -> Played:
        path = self.folder / f"{script.id}.{side}.json"
        if path.is_file():
            return Played.model_validate_json(path.read_text("utf-8"))
        async with self._slots:
            played = await (self._coach(script) if side == COACH else self._opponent(script, side))
        part = path.with_suffix(".part")
        part.write_text(json.dumps(played.model_dump(), ensure_ascii=False, indent=1), "utf-8")
        part.replace(path)
        self.told(played)
        return played

    async def _opponent(self, script: Script, side: str) -> Played:
        turns, before, tally = list[Turn](), script.lines[0], Tally()
        models = self.models.with_listener(lambda call: tally.take(call))
        agent = OPPONENTS[side](models.of("talker"), self.constitution)
        for line in script.lines:
            tally = Tally()
            if gap := passed(before, line):
                await agent.note(gap)
            said, first_s = await _timed(agent.hear(line.text))
            turns.append(Turn(before=gap, heard=line.text, said=said, first_s=first_s, **vars(tally)))
            before = line
        return Played(id=script.id, side=side, turns=turns)

    async def _coach(self, script: Script) -> Played:
        turns, before, tally, clock = list[Turn](), script.lines[0], Tally(), DaysLater()
        models = self.models.with_listener(lambda call: tally.take(call))
        lines, timeouts = list(script.lines), Timeouts(deadline_s=PATIENCE_S, thinking_s=PATIENCE_S)
        with tempfile.TemporaryDirectory() as data:
            while lines:
                session = lines[0].session
                clock.ahead_s += lines[0].days * DAY_S if session != before.session else 0.0
                opened = Mind.open(
                    data,
                    user="person",
                    session=f"{session}",
                    model=models,
                    clock=clock,
                    timeouts=timeouts,
                    responder=Coach.using(_without_hours(self.pack), self.gate),
                )
                async with opened as mind:
                    while lines and lines[0].session == session:
                        line, tally = lines.pop(0), Tally()
                        said, first_s = await _timed(_heard(mind, line.text))
                        gap = passed(before, line)
                        turns.append(Turn(before=gap, heard=line.text, said=said, first_s=first_s, **vars(tally)))
                        before = line
        return Played(id=script.id, side=COACH, turns=turns)


def _without_hours(pack: Pack) -> Pack:
    """Return the pack without time zone fields, because a scripted conversation has no real time of day."""
    fields = {name: field for name, field in pack.fields.items() if field.type != "zone"}
    return Pack(**{**{name: getattr(pack, name) for name in Pack.model_fields}, "fields": fields})


async def _heard(mind: Mind, text: str) -> AsyncGenerator[str]:
    """Yield the text of an answer and of its follow-ups."""
    heard = 0
    async with aclosing(mind.hear(text)) as rows:
        async for row in rows:
            heard = heard or row.seq
            if isinstance(row.event, Piece):
                yield row.event.text
    await mind.settled()
    for row in await mind.memory.store.events(mind.memory.key, heard, [FollowUp.kind]):
        if isinstance(row.event, FollowUp):
            yield f"\n\n{row.event.text}"


async def _timed(pieces: AsyncGenerator[str]) -> tuple[str, float]:
    """Return the text, and the seconds until its first piece (0 if there is none)."""
    clock, said, first_s = SystemClock(), "", 0.0
    began = clock.elapsed()
    async with aclosing(pieces):
        async for piece in pieces:
            first_s = first_s or clock.elapsed() - began
            said += piece
    return said.strip(), round(first_s, 3)


def write_page(folder: Path, scripts: Sequence[Script], played: Sequence[Played]) -> None:
    texts = {(each.id, each.side): each.written() for each in played}
    sides = [side for side in dict.fromkeys(each.side for each in played) if side != COACH]
    pairs = "".join(_pair(script, side, texts) for script in scripts for side in sides)
    (folder / "judge.html").write_text(PAGE.replace("{{pairs}}", pairs), "utf-8")


def _order(id_: str, side: str) -> tuple[str, str]:
    return (COACH, side) if chance.fraction("contest", id_, side) < 0.5 else (side, COACH)


def _hidden(side: str) -> str:
    """Return the number that replaces an opponent's name on the page, which hides the name from the judges."""
    return f"{chance.fraction('contest', side):.6f}"[2:]


def _pair(script: Script, side: str, texts: dict[tuple[str, str], str]) -> str:
    columns = "".join(
        f"<article><h3>{name}</h3><pre>{escape(texts[script.id, each])}</pre></article>"
        for name, each in zip("AB", _order(script.id, side), strict=True)
    )
    choices = "".join(
        f'<label><input type="radio" name="{script.id}/{_hidden(side)}" value="{value}"> {label}</label>'
        for value, label in (("A", "A"), ("same", "no difference"), ("B", "B"))
    )
    asked = f"<p>I would rather go back to: {choices}</p>"
    return f"<section><p>{escape(script.who)}</p><div>{columns}</div>{asked}</section>"


def by_people(folder: Path) -> dict[str, dict[str, list[str]]]:
    """Read the choices that people saved from the page (files `people*.json` in the folder), by opponent and
    conversation."""
    cast: dict[str, dict[str, list[str]]] = {}
    sides = {_hidden(side): side for side in OPPONENTS}
    for pair, chosen in _chosen(folder):
        id_, _, hidden = pair.partition("/")
        if side := sides.get(hidden):
            preferred = dict(zip("AB", _order(id_, side), strict=True)).get(chosen, "same")
            cast.setdefault(side, {}).setdefault(id_, []).append(preferred)
    return cast


def _chosen(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.glob("people*.json")):
        try:
            found = json.loads(path.read_text("utf-8"))
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}") from None
        except ValueError as error:
            raise InputError(f"{path} cannot be read, or is not a result saved from judge.html: {error}") from None
        if not isinstance(found, dict):
            raise InputError(
                f"{path} is not a result saved from judge.html: expected a JSON object with A, B or same for each pair"
                " of talks"
            )
        yield from ((str(id_), str(chosen)) for id_, chosen in found.items())


PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Which coach?</title><style>
:root{color-scheme:light dark;--line:color-mix(in srgb,currentColor 18%,transparent)}
body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0 1rem}
section{border-top:1px solid var(--line);padding:1.5rem 0}div{display:flex;gap:2rem;flex-wrap:wrap}
article{flex:1 1 22rem;min-width:0}pre{white-space:pre-wrap;overflow-wrap:anywhere;font:inherit}
label{margin-right:1.2rem;white-space:nowrap}textarea{width:100%;height:7rem}
</style><h1>Which coach would this person rather go back to?</h1>
<p>The same person talks to two coaches. Read both columns and choose one in each pair. When you are done, save the text
at the end as people1.json next to this page.</p>
{{pairs}}<section><h2>Your choices</h2><textarea readonly aria-label="Your choices"></textarea></section>
<script>addEventListener("change",()=>{document.querySelector("textarea").value=JSON.stringify(
Object.fromEntries([...document.querySelectorAll("input:checked")].map(e=>[e.name,e.value])),null,1)})</script></html>
"""


DRAWS = 2_000


def score(votes: Sequence[str]) -> float:
    """Return the preference for the coach in one conversation, the mean of its votes: from -1 to 1."""
    values = [0.0 if vote == "same" else 1.0 if vote == COACH else -1.0 for vote in votes]
    return sum(values) / max(1, len(values))


def interval(values: Sequence[float], seed: int = 0) -> tuple[float, float]:
    """Return the 95 % confidence interval of the mean of values, one per conversation, by bootstrap."""
    draw = random.Random(seed)
    means = sorted(sum(draw.choices(values, k=len(values))) / len(values) for _ in range(DRAWS))
    return means[int(0.025 * DRAWS)], means[int(0.975 * DRAWS) - 1]


def summarise(
    played: Sequence[Played], votes: Mapping[str, Mapping[str, Sequence[str]]], points: Mapping[str, Sequence[float]]
) -> dict[str, Any]:
    """Return the results of each side (contestant): cost per turn and share of right answers.

    For an opponent, the results also have the preference for the coach.

    Args:
        votes: by opponent and conversation, the preferred sides.
        points: by side, the grades of the side's answers to lines with a reference answer (`key`).
    """
    found: dict[str, Any] = {}
    for side in dict.fromkeys(each.side for each in played):
        turns = [turn for each in played if each.side == side for turn in each.turns]
        scores = {id_: score(cast) for id_, cast in votes.get(side, {}).items() if cast}
        found[side] = _cost(turns) | (_preference(scores) if scores else {})
        if graded := points.get(side):
            found[side] |= {"questions": len(graded), "right": round(sum(graded) / len(graded), 3)}
    return found


def _preference(scores: Mapping[str, float]) -> dict[str, Any]:
    low, high = interval(list(scores.values()))
    return {
        "talks": len(scores),
        "coach_preferred": sum(each > 0 for each in scores.values()),
        "coach_worse": sum(each < 0 for each in scores.values()),
        "preference": round(sum(scores.values()) / len(scores), 3),
        "interval": [round(low, 3), round(high, 3)],
        "by_talk": dict(scores),
    }


def _cost(turns: Sequence[Turn]) -> dict[str, float]:
    def mean(of: Callable[[Turn], float]) -> float:
        return sum(map(of, turns)) / max(1, len(turns))

    seconds = sorted(turn.first_s for turn in turns)
    return {
        "turns": len(turns),
        "tokens_a_turn": round(mean(lambda turn: turn.tokens)),
        "cached_at_a_tenth": round(mean(lambda turn: turn.tokens - 0.9 * turn.cached)),
        "usd_a_turn": round(mean(lambda turn: turn.cost_usd), 6),
        "first_s": seconds[len(seconds) // 2] if seconds else 0.0,
    }


COACH_TURN, PLAIN_TURN, COACH_TALK = 1_700, 700, 1.1
"""Constants of the cost estimate (`benchmarks/coach_tokens.py`). COACH_TURN, PLAIN_TURN: tokens of a turn of the coach,
and of a plain agent, without the conversation. COACH_TALK: how many times the coach reads the conversation."""


@dataclass(frozen=True)
class Terms:
    """The options of a contest.

    Attributes:
        talks: file of the conversations.
        out: folder of the results. If the folder has results, the contest resumes.
        judge: model that judges; "": people judge on a page.
        against: names of the opponents.
        constitution: file with the opponents' constitution. None: the pack's file `plain_agent.md`; if there is no such
            file, the pack's own constitution.
    """

    talks: Path
    out: Path
    judge: str = ""
    against: Sequence[str] = (PLAIN,)
    constitution: Path | None = None


def opponent(pack: Pack, terms: Terms) -> str:
    """Return the constitution (system prompt) of the opponents.

    It is the file named in `terms`, else the pack's `plain_agent.md` if this file exists, else the pack's own
    constitution.
    """
    # A pack may ship a constitution for the plain agent next to its own.
    beside = SHIPPED / pack.name / "plain_agent.md"
    path = terms.constitution or (beside if beside.is_file() else None)
    with prefixed(path):
        return read_text(path, MAX_BYTES) if path else pack.constitution


def estimate(scripts: Sequence[Script]) -> dict[str, int]:
    """Count the turns, and estimate the tokens of the coach and of a plain agent that is shown the whole
    conversation."""
    lengths = [(len(each.lines), sum(estimate_tokens(line.text) + 90 for line in each.lines)) for each in scripts]
    talk = sum(length * turns // 2 for turns, length in lengths)
    turns = sum(turns for turns, _ in lengths)
    return {"turns": turns, COACH: turns * COACH_TURN + round(COACH_TALK * talk), PLAIN: turns * PLAIN_TURN + talk}


async def run_contest(
    models: Models, pack: Pack, terms: Terms, told: Callable[[str], None], gate: str = ""
) -> dict[str, Any]:
    """Play and judge the conversations that have no stored result yet, and return all results.

    Without `terms.judge`, no model judges. Instead, write the page on which people judge, and use the verdicts that
    people have saved in the folder.

    Raises:
        InputError: the conversations or the folder cannot be used.
        SettingsError: no model is set for the talker.
        ModelError: a model is not available; results until then are stored.
    """
    scripts = read_talks(terms.talks)
    if models.of("talker").name == Rules.name:
        raise SettingsError("a contest needs a model for both sides: name one with --model")

    def say(played: Played) -> None:
        told(f"played {played.id} by {played.side}: {len(played.turns)} turns")

    played = await Contest(models, pack, opponent(pack, terms), terms.out, gate, terms.against, say).play(scripts)
    if not terms.judge:
        write_page(terms.out, scripts, played)
        return summarise(played, by_people(terms.out), {})
    judge = models.of("judge")
    votes = {
        side: dict(await asyncio.gather(*(_judged(judge, terms.out, each, side, played, told) for each in scripts)))
        for side in terms.against
    }
    return summarise(played, votes, await _graded(judge, terms.out, scripts, played))


async def _judged(
    model: Model, folder: Path, script: Script, side: str, played: Sequence[Played], told: Callable[[str], None]
) -> tuple[str, list[str]]:
    """Judge a conversation twice, once in each order of the two sides, or read its stored verdicts.

    Return the id of the conversation, and for each order the side that the judge prefers (or "same").
    """
    path = folder / f"{script.id}.{side}.votes.json"
    if not path.is_file():
        texts = {each.side: each.written() for each in played if each.id == script.id}
        orders = ((COACH, side), (side, COACH))
        votes = [await vote(model, (a, texts[a]), (b, texts[b]), script.who) for a, b in orders]
        path.write_text(json.dumps([each.model_dump() for each in votes], ensure_ascii=False, indent=1), "utf-8")
        told(f"judged {script.id} against {side}")
    found = [Vote.model_validate(each) for each in json.loads(path.read_text("utf-8"))]
    return script.id, [each.preferred for each in found]


async def _graded(
    model: Model, folder: Path, scripts: Sequence[Script], played: Sequence[Played]
) -> dict[str, list[float]]:
    """Return, for each side, the points of its answers to lines with a reference answer (`key`).

    Stored grades are reused.
    """
    keys = {(each.id, line.text): line.key for each in scripts for line in each.lines if line.key}
    path = folder / "grades.json"
    kept: dict[str, str] = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    points: dict[str, list[float]] = {}
    for each in played:
        for turn in each.turns:
            if not (key := keys.get((each.id, turn.heard))):
                continue
            name = f"{each.id}.{each.side}: {turn.heard}"
            if name not in kept:
                found: Grade = await ask(model, GradeAnswer(question=turn.heard, key=key, answer=turn.said))
                kept[name] = found.grade
                path.write_text(json.dumps(kept, ensure_ascii=False, indent=1), "utf-8")
            points.setdefault(each.side, []).append(POINTS[kept[name]])
    return points


class Preference(Frozen):
    """Which of two transcripts is better."""

    why: str = Field("", max_length=4_000)
    preferred: Literal["A", "B", "same"]


class Judge(Prompt[Preference]):
    """Which coach would this person prefer to return to?"""

    role = "judge"

    a: str
    b: str
    who: str = ""


class Vote(BaseModel):
    """A judge's verdict on a pair of conversations, with the names of the contestants ("sides") in place of A and B.

    Attributes:
        first: the side that the prompt showed as A.
        preferred: the better side, or "same".
    """

    first: str
    preferred: str
    why: str


async def vote(model: Model, first: tuple[str, str], second: tuple[str, str], who: str) -> Vote:
    """Ask a model which of two transcripts is better, without naming the sides.

    Each transcript is given as (side, transcript).
    """
    found = await ask(model, Judge(a=first[1], b=second[1], who=who))
    sides = {"A": first[0], "B": second[0], "same": "same"}
    return Vote(first=first[0], preferred=sides[found.preferred], why=found.why)


POINTS = {"right": 1.0, "partly": 0.5, "wrong": 0.0}


class Grade(Frozen):
    """How much of the key (the reference answer) an answer contains."""

    why: str = Field("", max_length=2_000)
    grade: Literal["right", "partly", "wrong"]


class GradeAnswer(Prompt[Grade]):
    """How much of the reference answer (`key`) does an answer contain?"""

    role = "judge"

    question: str
    key: str
    answer: str
