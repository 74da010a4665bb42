"""Play scripted conversations: send each line on its day, once the previous line is answered and reasoned about."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from mindstream import chance
from mindstream.clock import DAY_S, Moment, SystemClock
from mindstream.coach.coach import Coach
from mindstream.coach.packs.pack import Pack
from mindstream.errors import InputError, prefixed
from mindstream.frozen import Frozen
from mindstream.log.events import FollowUp, Piece
from mindstream.memory.conversation import Line
from mindstream.minds.mind import Mind
from mindstream.minds.responder import Timeouts
from mindstream.models.ask import ask, speak
from mindstream.models.model import Message, Model
from mindstream.models.prompt import Prompt, complaints
from mindstream.models.roles import Models
from mindstream.models.wrappers.meter import Metered
from mindstream.paths import read_text
from mindstream.text.context import Part, fit

MOST_BYTES = 20_000_000


class SaidLine(Frozen):
    """A scripted line of the user. A session with a higher number takes place `days` after the one before.

    `key`: the content that a right answer must have, if the line is graded; neither side sees it.
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
        tokens: input and output tokens of all calls of the turn; cached: those that a provider read from a cache.
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
    """Read conversations from a JSON file: a list of {"id", "lines": [{"text", "session"}], "who", "language"}.

    Raises:
        InputError: the file has another form.
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
        raise InputError(f"{path}: two talks have the same id; give each its own")
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
        """Yield the answer in parts."""
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
"""Opponents: shown the whole conversation, its newest tokens, or the current session and a summary of earlier ones."""


COACH = "coach"
TALKS_AT_ONCE = 4
PATIENCE_S = 3_600.0
"""Timeout of an answer in seconds; long, because the contest does not compare speed."""


class DaysLater(SystemClock):
    """The system clock, shifted by a number of days."""

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
    """Plays conversations with all sides and stores each in a file; a repeated run plays only the missing ones.

    Args:
        folder: one file per conversation and side, `ID.SIDE.json`.
        constitution: constitution of the opponents. against: names of the opponents.
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
        """Play all conversations with all sides.

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
    """Return the text, and the seconds until its first piece."""
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
    """Return a number that replaces an opponent's name on the page, so that judges do not learn which opponent it
    is."""
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
        except (OSError, ValueError) as error:
            raise InputError(f"{path} is not a result saved from judge.html: {error}") from None
        if not isinstance(found, dict):
            raise InputError(
                f"{path} is not a result saved from judge.html: expected a JSON object of talks with A, B or same"
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
