"""Plays scripted conversations: a line is sent once the previous one is answered and reasoned about, on its day."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path

from mindstream.clock import DAY_S, Moment, SystemClock
from mindstream.coach.coach import Coach
from mindstream.coach.contest.plain_agent import OPPONENTS, PLAIN
from mindstream.coach.contest.talks import Played, Script, Turn, passed
from mindstream.coach.packs.pack import Pack
from mindstream.log.events import FollowUp, Piece
from mindstream.minds.mind import Mind
from mindstream.minds.responder import Timeouts
from mindstream.models.roles import Models
from mindstream.models.wrappers.meter import Metered

COACH = "coach"
TALKS_AT_ONCE = 4
PATIENCE_S = 3_600.0
"""Maximum time of an answer, in seconds; generous, because patience is not what is measured."""


class DaysLater(SystemClock):
    """The system clock, shifted by a number of days."""

    def __init__(self) -> None:
        self.ahead_s = 0.0

    def now(self) -> Moment:
        return super().now() + self.ahead_s


@dataclass
class Tally:
    """Tokens of the model calls of a turn."""

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
    """Plays conversations with both sides and stores them: a resumed run plays only the missing ones.

    Args:
        folder: one file a talk and a side, `ID.SIDE.json`.
        constitution: of the opponents. against: which of them play (plain_agent.OPPONENTS).
        told: is told of each talk that is over.
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
        """Play all talks with all sides.

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
                    models=models,
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
    """Return the pack without time zone fields: a scripted conversation has no hour."""
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
