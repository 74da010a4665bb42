"""A mind with some weeks of history for the pages: messages, notes, thoughts, and a night of sleep."""

from __future__ import annotations

from pathlib import Path

from mindstream import ManualClock, SqliteStore
from mindstream.clock import DAY_S, HOUR_S, SystemClock
from mindstream.memory.forgetting_curve import DECAY
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import RecordDraft
from mindstream.models.embedders.embedder import embedder
from mindstream.models.rules import Rules

SAID = "I told Ida on the bridge that the boat is sold."
NOTE = "Ann has sold the boat."
THOUGHT = "Ann is giving up the sea, and tells her sister first."
FADED = "The ferry was late by four minutes."
DAYS = 40


async def live_some_weeks(data: Path, user: str = "ann") -> None:
    """Write the history into a data folder, up to now."""
    clock = ManualClock(SystemClock().now() - DAYS * DAY_S)
    async with SqliteStore(data) as store:
        memory = Memory(store, user, embedder("wordllama"), clock, seed=7, strength=DECAY)
        await memory.retain(FADED, "note")
        for day in range(DAYS):
            clock.advance(DAY_S - HOUR_S)
            if day % 3 == 0:
                await memory.retain(
                    f"On day {day} she walked to the harbour and counted {day + 3} gulls.", "chat", by=user
                )
            clock.advance(HOUR_S)
        said = await memory.retain(SAID, "chat", by=user, episode="the bridge")
        note = await memory.retain(NOTE, "note", evidence=[said.id], by="sleep", importance=6)
        other = await memory.retain("Ida was the first to hear of it.", "note", evidence=[said.id])
        await memory.retain(THOUGHT, "thought", evidence=[note.id, other.id], importance=8)
        await memory.retain_all([RecordDraft(text=f"gull number {n} had a ring", kind="observation") for n in range(3)])
        await memory.sleep(Rules(), 20)
        await memory.close()
