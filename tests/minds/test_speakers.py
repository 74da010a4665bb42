"""A mind without a coach: nobody speaks, or somebody else does."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import pytest
from keys import key_of

from mindstream import InputError, Mind, RunContext, RunResult, Trigger, tool
from mindstream.coach.coach import Coach, coach, coach_of
from mindstream.coach.packs.load import load
from mindstream.log.events import Failed, Heard, Logged, Said
from mindstream.memory.store.record import RecordDraft
from mindstream.memory.store.store import Entry
from mindstream.reasoners.reasoner import Reasoner


class Echo:
    """A speaker of one's own: says everything back, and has one reasoner."""

    name = title = "echo"
    belief = plan = None

    def __init__(self, mind: Mind) -> None:
        self.mind = mind
        self.reasoners: Sequence[Reasoner] = [Notes()]
        self.spoke_up: list[str] = []

    async def begin(self) -> None:
        pass

    async def hear(self, text: str, *, one_answer: bool = False) -> AsyncGenerator[Logged]:
        heard = await self.mind.take_in(text, phase="echoing", hold=True)
        yield heard
        new = RecordDraft(text=text, kind="chat", by="echo", episode=self.mind.session, data={"by_user": False})
        (record,) = await self.mind.stream.build_records([new])
        said = Said(text=text, answers=heard.seq, belief_version=0, model="echo", record=record.id)
        yield (await self.mind.stream.commit(Entry(said, "echo", (record,))))[0]
        self.mind.reasoners.release(heard.seq)

    async def speak_up(self, context: RunContext, result: RunResult, written: Sequence[Entry]) -> Sequence[Entry]:
        self.spoke_up.append(f"{context.slot}: {result.thought} {len(written)}")
        return ()

    async def close(self) -> None:
        pass


class Notes:
    """Keeps what it was shown."""

    slot, trigger, timeout_s = "notes", Trigger(phases=("echoing",)), 5.0

    def __init__(self) -> None:
        self.seen: list[RunContext] = []

    async def think(self, context: RunContext) -> RunResult:
        self.seen.append(context)

        async def write() -> Any:
            return (), ()

        return RunResult("noted", "nobody", write)


@tool
def clock() -> str:
    """Tell the time."""
    return "noon"


async def test_nobody_answers_and_all_is_remembered_and_thought_about(tmp_path: Path) -> None:
    reasoner = Notes()
    reasoner.trigger = Trigger()
    async with Mind.open(tmp_path, user="ann", responder=None, reasoners=[reasoner], tools=[clock]) as mind:
        events = [logged async for logged in mind.hear("The spare key hangs behind the door.")]
        await mind.settled()
        assert [type(logged.event) for logged in events] == [Heard]
        assert (await mind.stream.recall("the key"))[0].record.text == "The spare key hangs behind the door."
        assert [each.text for seen in reasoner.seen for each in seen.utterances] == [events[0].event.text]  # type: ignore[attr-defined]
        assert [each.spec.name for each in reasoner.seen[0].tools] == ["clock"]
        with pytest.raises(InputError, match="nobody speaks"):
            await mind.say("Hello?")
        with pytest.raises(InputError, match="no speaker"):
            _ = mind.belief
        rows = await mind.stream.store.events(key_of("ann"))
        assert not any(row.by == "coach" for row in rows)
        assert not any(record.by == "coach" for record in (await mind.stream.store.changes(key_of("ann"), 0)).records)
        assert not [row for row in rows if isinstance(row.event, Failed)]


async def test_a_speaker_of_ones_own_is_handed_over(tmp_path: Path) -> None:
    async with Mind.open(tmp_path, user="ann", responder=Echo) as mind:
        assert await mind.say("Hello!") == "Hello!"
        await mind.settled()
        assert isinstance(mind.responder, Echo)
        assert mind.responder.spoke_up == ["notes: noted 0"]
        (seen,) = mind.responder.reasoners[0].seen  # type: ignore[attr-defined]
        assert seen.reply == "Hello!"
        assert (await mind.stream.store.events(key_of("ann"), kinds=["opened"]))[0].event.pack == "echo"  # type: ignore[attr-defined]
        with pytest.raises(InputError, match="no coach"):
            coach_of(mind)


async def test_the_coach_is_there_by_name_and_by_hand(tmp_path: Path) -> None:
    for more in ({}, {"pack": "sleep"}, {"speaker": "coach", "gate": "belief"}, {"speaker": coach(load("sleep"))}):
        async with Mind.open(tmp_path, user="ann", **more) as mind:
            assert isinstance(coach_of(mind), Coach)
            assert await mind.say("Hello!")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"pakc": "sleep"}, "pakc.*pack, gate"),
        ({"speaker": "parrot"}, "parrot.*coach"),
        ({"speaker": None, "pack": "sleep"}, "pack: said of a speaker by name"),
        ({"tools": [clock, clock]}, "two tools are called 'clock'"),
        ({"reasoners": [Notes(), Notes()]}, "two reasoners write the slot 'notes'"),
    ],
)
async def test_what_would_be_passed_over_is_refused(tmp_path: Path, more: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        async with Mind.open(tmp_path, user="ann", **more):
            pass
