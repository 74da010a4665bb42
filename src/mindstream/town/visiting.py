"""A person talks with a resident: it answers at once, thinks behind, and the talk stands in the stream it lives by.

async with visit(town, "Isabella Rodriguez", by="Maya") as mind:
    print(await mind.say("Is there a party?"))
    await mind.settled()
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Any

from mindstream.clock import ManualClock
from mindstream.errors import InputError
from mindstream.log.events import Logged, Remembered, Said
from mindstream.memory.recall import recaller_of
from mindstream.memory.record import Kind, New
from mindstream.memory.store import Entry
from mindstream.minds.mind import Mind
from mindstream.models.ask import ask
from mindstream.reasoners.reasoner import Conclusion, Occasion, Reasoner, Writing
from mindstream.reasoners.trigger import EVERY_TURN, Trigger
from mindstream.town.interview import Interviewer
from mindstream.town.journal import TownState
from mindstream.town.prompts.take_from_talk import TakeFromTalk, Taken
from mindstream.town.ranking import policy_of
from mindstream.town.town import Town
from mindstream.town.turn import Resident

IMPORTANCE = 5.0
"""As what is kept of talks among residents."""


@contextlib.asynccontextmanager
async def visit(town: Town, name: str, by: str = "a visitor") -> AsyncIterator[Mind]:
    """Open a resident's mind for somebody who talks with it; the town stands still meanwhile.

    Raises:
        InputError: nobody is called so, or a resident is called as the visitor.
    """
    if name not in town.residents:
        raise InputError(f"nobody in {town.setting.name} is called {name!r}: {', '.join(town.residents)}")
    if by in town.residents:
        raise InputError(f"{by!r} lives there: say who you are by another name")
    resident, step = town.residents[name], max(town.step, 0)
    await resident.written()
    state = TownState(town.setting.profile, {each.name: each.state for each in town.residents.values()}, step=step)
    recaller = recaller_of(town.store, resident.stream.embedder)
    policy = policy_of(town.setting.profile)
    interviewer = Interviewer(town.setting, state, recaller, policy, resident.models, step)
    async with Mind.open(
        town.store, user=name, models=resident.models, clock=ManualClock(town.setting.moment(step)),
        embed=resident.stream.embedder, speaker=lambda mind: ResidentSpeaker(mind, resident, interviewer, by),
        session=f"visit {step} {by}",
    ) as mind:  # fmt: skip
        yield mind


class ResidentSpeaker:
    """Answers for a resident, from its stream.

    Args:
        by: who talks with it.
    """

    def __init__(self, mind: Mind, resident: Resident, interviewer: Interviewer, by: str) -> None:
        self.name, self.title = "resident", resident.name
        self.reasoners: Sequence[Reasoner] = (KeepVisit(resident, interviewer, by),)
        self._mind, self._interviewer, self._by = mind, interviewer, by
        self._lines: list[str] = []

    @property
    def belief(self) -> Any:
        raise InputError("a resident believes nothing of its visitors: see its stream")

    @property
    def plan(self) -> Any:
        raise InputError("a resident plans its day with nobody: see `Resident.state`")

    async def begin(self) -> None:
        pass

    async def hear(self, text: str) -> AsyncGenerator[Logged]:
        """Take it in, answer, and let it be thought about."""
        mind = self._mind
        heard = await mind.take_in(text, by=self._by)
        yield heard
        mind.reasoners.wake()
        found = await self._interviewer.ask(self.title, text, lines=self._lines)
        self._lines += [f"{self._by}: {text}", f"{self.title}: {found.answer}"]
        new = New(text=found.answer, kind="chat", by=self.title, episode=mind.session, data={"by_user": False})
        records = await mind.stream.build_records([new])
        said = Said(
            text=found.answer, answers=heard.seq, belief_version=0, model=mind.models.of("talker").name,
            record=records[0].id,
        )  # fmt: skip
        (logged,) = await mind.stream.commit(Entry(said, self.title, tuple(records)))
        yield logged

    async def speak_up(self, *_: object) -> Sequence[Entry]:
        return ()

    async def close(self) -> None:
        pass


class KeepVisit:
    """Keeps what a visitor says that weighs, and what it means for one's plans."""

    slot = "visit"
    trigger: Trigger = EVERY_TURN
    patience_s = 180.0

    def __init__(self, resident: Resident, interviewer: Interviewer, by: str) -> None:
        self._resident, self._setting, self._step = resident, interviewer.setting, interviewer.step
        self._by = by

    async def think(self, occasion: Occasion) -> Conclusion:
        """Think about what was said."""
        when, models = self._setting.when(self._step), self._resident.models
        said = tuple(f"{self._by}: {each.text}" for each in occasion.utterances)
        before = tuple(f"{each.by}: {each.text}" for each in occasion.conversation)
        person, model = self._resident.person, models.of(TakeFromTalk.role)
        taken = await ask(
            model,
            TakeFromTalk(
                who=person.name, other=self._by, identity=person.identity(self._resident.state.currently),
                date=f"{when:%A, %B} {when.day}, {when.year}", lines=(*before, *said),
            ),
        )  # fmt: skip

        async def write() -> Writing:
            return await self._entries(occasion, taken), ()

        return Conclusion(taken.memo or f"about {taken.about}", model.name, write)

    async def _entries(self, occasion: Occasion, taken: Taken) -> Sequence[Entry]:
        about = f"{self._resident.name} talked with {self._by} about {taken.about}"
        kinds: tuple[tuple[str, Kind], ...] = ((about, "observation"), (taken.memo, "thought"), (taken.plan, "thought"))
        evidence = tuple(each.record for each in occasion.utterances)
        news = [
            New(
                text=text, kind=kind, by=self._resident.name, importance=IMPORTANCE, evidence=evidence,
                keywords=(self._by.lower(),),
            )
            for text, kind in kinds
            if text.strip()
        ]  # fmt: skip
        records = tuple(await occasion.stream.build_records(news))
        count = {kind: sum(record.kind == kind for record in records) for kind in ("observation", "thought")}
        return [Entry(Remembered(count=len(records), kinds=count), self._resident.name, records)]
