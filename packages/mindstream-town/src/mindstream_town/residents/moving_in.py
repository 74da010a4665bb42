"""Write the beginning of a town: the residents' positions, known places, and memories from before the town began."""

from __future__ import annotations

from mindstream.log.events import Remembered
from mindstream.memory.lifecycle.importance import RateImportance
from mindstream.memory.store.record import RecordDraft
from mindstream.memory.store.store import Commit, Entry, Store
from mindstream.together import together
from mindstream_town.events import JOURNAL, TOWN, MovedIn, TownBegan
from mindstream_town.residents.person import KEY
from mindstream_town.residents.places import find_home
from mindstream_town.residents.turn import Resident, ResidentTurn
from mindstream_town.setting import Setting
from mindstream_town.source import dump_source

SECRET = "secret"
"""Keyword of secret memories, and the key that is true in their data."""


async def move_in(store: Store, setting: Setting, residents: dict[str, Resident]) -> None:
    """Write the residents' positions, known places, and memories from before the town began, in one transaction.

    Raises:
        Conflict: another process has begun a town in this store.
    """
    profile, source = setting.profile.dump(), dump_source(setting)
    began = TownBegan(step=0, seed=setting.seed, start=setting.start, profile=profile, source=source)
    entries: tuple[Entry, ...] = (Entry(began, TOWN),)
    commits = [Commit(mind=store.key(JOURNAL), at=setting.start, entries=entries, unique="began")]
    commits += await together(*(_settle_in(setting, resident) for resident in residents.values()))
    await store.commit(*commits)


async def _settle_in(setting: Setting, resident: Resident) -> Commit:
    """Set a resident's position and known places; return the commit with these and the resident's first memories."""
    name = resident.name
    spot, knows = find_home(setting, resident.person)
    moved = MovedIn(step=0, spot=spot, knows=knows)
    memories = resident.person.first_memories()
    turn = ResidentTurn(resident, 0, setting, resident.state)
    rated = await turn.ask(RateImportance(who=name, memories=tuple(each.text for each in memories)))
    news = [
        RecordDraft(
            text=each.text,
            kind="note",
            by=name,
            importance=float(each.weight or rating),
            keywords=(name.lower(), *([KEY] if each.appointment else []), *([SECRET] if each.secret else [])),
            data=each.data,
        )
        for each, rating in zip(memories, rated.ratings, strict=True)
    ]
    records = tuple(await resident.memory.build_records(news))
    told = Remembered(count=len(records), kinds={"note": len(records)})
    resident.state = resident.state.model_copy(update={"home": spot, "knows": frozenset(knows)})
    entries = (Entry(moved, name), *turn.rows, Entry(told, name, records))
    return Commit(mind=resident.memory.key, at=setting.start, entries=entries)
