"""A visit: a user talks with a resident, who answers at once and derives memories in the background.

async with visit(town, "Isabella Rodriguez", by="Maya") as mind:
    print(await mind.send("Is there a party?"))
    await mind.settled()
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from functools import partial

from mindstream.clock import ManualClock
from mindstream.errors import InputError
from mindstream.identifiers import StreamName, checked_name
from mindstream.log.events import Logged, Piece, Said
from mindstream.memory.recall.recall import recaller_of
from mindstream.memory.store.record import Ids, RecordDraft
from mindstream.memory.store.store import Entry
from mindstream.minds.mind import Mind
from mindstream.minds.responder import Handling, Host
from mindstream.models.prompt import speak
from mindstream.reasoners.reasoner import Reasoner
from mindstream_town.journal import TownState
from mindstream_town.prompts.conduct import AnswerInterview
from mindstream_town.residents.interview import Interviewer
from mindstream_town.residents.keep_visit import KeepVisit, finish_visit
from mindstream_town.residents.person import policy_of
from mindstream_town.town import Town

SHOWN = 40
"""Maximum lines of the talk in the prompt."""


class Visit(Mind):
    """A resident's `Mind`, open for a visitor."""

    async def settled(self) -> None:
        """Wait for the background tasks of the visit, and write their results.

        Raises:
            ModelError: a model is not available; the utterances are stored, and processed before the town continues.
        """
        if isinstance(self.responder, ResidentResponder):
            await self.responder.keep_all()


@contextlib.asynccontextmanager
async def visit(town: Town, name: str, by: str = "a visitor") -> AsyncIterator[Mind]:
    """Open a resident's mind for a visitor; the town's clock is stopped during the visit.

    A visitor who returns with the same name before the town continues resumes the same talk.

    Raises:
        InputError: there is no such resident, the visitor's name is invalid, or a resident has that name.
        ModelError: a model is not available; the utterances are stored, and processed before the town continues.
    """
    name = town.resident_name(name)
    if name not in town.residents:
        raise InputError(f"{town.setting.name} has no resident {name!r}; residents: {', '.join(town.residents)}")
    by = checked_name(by, "a visitor's name")
    if by.casefold() in {each.casefold() for each in town.residents}:
        raise InputError(f"{by!r} is the name of a resident: choose another name")
    await town.finish_visits()
    resident, step = town.residents[name], max(town.step, 0)
    state = TownState(town.setting.profile, {each.name: each.state for each in town.residents.values()}, step=step)
    recaller = recaller_of(town.store, resident.memory.embedder)
    policy = policy_of(town.setting.profile)
    interviewer = Interviewer(town.setting, state, recaller, policy, resident.models, step)
    keep = KeepVisit(resident, town.setting, step)
    async with Visit.open(
        town.store,
        user=StreamName("resident", name),
        model=resident.models,
        clock=ManualClock(town.setting.moment(step)),
        embed=resident.memory.embedder,
        responder=lambda host: ResidentResponder(host, keep, interviewer, by),
        session=f"visit {step} {by}"[:100],
    ) as mind:
        yield mind
        await mind.settled()


class ResidentResponder:
    """Answers a visitor for a resident, from the resident's memory; `by` is the visitor's name."""

    def __init__(self, host: Host, keep: KeepVisit, interviewer: Interviewer, by: str) -> None:
        self.name, self.title = "resident", keep.resident.name
        self.reasoners: Sequence[Reasoner] = (keep,)
        self._host, self._keep, self._interviewer, self._by = host, keep, interviewer, by
        self._lines: list[str] = []

    async def begin(self) -> None:
        """Load the earlier lines of this talk."""
        said = await self._host.memory.latest("chat", SHOWN, episode=self._host.session)
        self._lines = [f"{each.by}: {each.text}" for each in said]

    async def attend(self, text: str, *, one_answer: bool) -> Handling:  # noqa: ARG002
        """Return how to answer an utterance: by `_answer`. The utterance is logged under the visitor's name, with ids
        derived from the town's seed."""
        memory = self._host.memory
        number = await memory.store.count(memory.key, "heard")
        memory.ids = Ids(memory.name, f"{self._keep.setting.seed} {memory.name} heard {number}")
        return Handling(partial(self._answer, text), hold=True, by=self._by)

    async def _answer(self, text: str, heard: Logged) -> AsyncGenerator[Logged]:
        """Answer, then start the background task that derives memories from the exchange."""
        memory = self._host.memory
        yield heard
        async with self._host.thinkers.floor:
            prompt, _ = await self._interviewer.prepare(
                self.title, text, lines=self._lines[-SHOWN:], asked_in=getattr(heard.event, "record", "")
            )
            answer, model = "", self._keep.resident.models.of(prompt.role)
            async with aclosing(speak(model, prompt)) as words:
                async for piece in words:
                    answer += piece
                    yield memory.show(Piece(text=piece, answers=heard.seq), self.title)
            yield await self._say(heard, answer.strip())
        self._lines += [f"{self._by}: {text}", f"{self.title}: {answer.strip()}"]
        self._keep.begin(heard, memory)

    async def _say(self, heard: Logged, answer: str) -> Logged:
        stream, model = self._host.memory, self._keep.resident.models.of(AnswerInterview.role)
        new = RecordDraft(text=answer, kind="chat", by=self.title, episode=self._host.session, data={"by_user": False})
        records = tuple(await stream.build_records([new]))
        said = Said(text=answer, answers=heard.seq, belief_version=0, model=model.name, record=records[0].id)
        (logged,) = await stream.commit(Entry(said, self.title, records))
        return logged

    async def keep_all(self) -> None:
        """Write what the resident remembers of the visit."""
        async with self._host.thinkers.floor:
            await finish_visit(self._keep, self._host.memory.feed)

    async def speak_up(self, *_: object) -> Sequence[Entry]:
        return ()

    async def close(self) -> None:
        self._keep.close()
