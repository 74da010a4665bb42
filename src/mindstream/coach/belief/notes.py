"""What is believed of a user, kept as notes, too: each item one, from when it was said until it is so no longer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mindstream.log.events import Remembered
from mindstream.memory.store.record import RecordDraft, Triple
from mindstream.memory.store.store import Entry, Revision
from mindstream.reasoners.reasoner import RunContext, Writing

LOOKED_BACK = 400
"""So many notes, the newest, are looked through for those that are so no longer."""


async def notes_of(context: RunContext, by: str, before: Mapping[str, object], after: Mapping[str, object]) -> Writing:
    """Make the notes that a change of belief asks for: new items are noted, notes of items that went are ended."""
    had, has = dict.fromkeys(_items(before)), dict.fromkeys(_items(after))
    new, gone = [each for each in has if each not in had], {each for each in had if each not in has}
    stream, evidence = context.memory, tuple(utterance.record for utterance in context.utterances)
    drafts = [
        RecordDraft(
            text=f"{field.replace('_', ' ')}: {item}",
            kind="note",
            by=by,
            evidence=evidence,
            depth=1,
            about=Triple("user", field, item),
            created=context.utterances[-1].at,
        )
        for field, item in new
    ]
    records = await stream.build_records(drafts)
    instead = {field: record.id for (field, _), record in zip(new, records, strict=True)}
    notes = await stream.latest("note", LOOKED_BACK) if gone else []
    revisions = [
        Revision(id=note.id, valid_until=stream.clock.now(), superseded_by=instead.get(note.about.predicate))
        for note in notes
        if note.about and (note.about.predicate, note.about.object) in gone
    ]
    event = Remembered(count=len(records), kinds={"note": len(records)})
    return [Entry(event, by, tuple(records))] if records else [], revisions


def _items(value: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for field, held in value.items():
        if field != "phase":
            for item in held if isinstance(held, list) else [held]:
                if item not in (None, ""):
                    yield field, str(item)
