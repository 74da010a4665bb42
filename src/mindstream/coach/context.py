"""What the Talker is given of memory: this talk, what its words bring up, notes, earlier talks; as much as fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mindstream.errors import ModelError
from mindstream.memory.store.record import Kind, Record
from mindstream.memory.stream import Stream
from mindstream.reasoners.conversation import DatedLine, Line, Note, dated_line, lines, note
from mindstream.text.context import Part, fit

HISTORY_TOKENS, MEMORY_TOKENS = 4_500, 1_500
"""What this talk, and all else that memory holds, may take in a prompt."""
HISTORY, NOTES, RECALLED = 60, 20, 12
FLOOR = 0.1
"""Where recall is less sure than this that anything answers, nothing is brought up (docs/memory.md)."""
RECALLED_KINDS: tuple[Kind, ...] = ("note", "thought", "observation", "document", "chat")


@dataclass(frozen=True, slots=True)
class TalkContext:
    """What fits into a prompt, the most needed first: this talk, what was recalled, notes, earlier talks.

    Attributes:
        history: lines of this talk, the newest last; `left_out`: how many older ones are not shown.
        recalled: what the user's words bring up, beside the notes. `talks`: lines of earlier talks, the newest last:
            what the words bring up of them, then as many of the newest as fit.
    """

    history: tuple[Line, ...]
    left_out: int
    recalled: tuple[Note, ...]
    notes: tuple[Note, ...]
    talks: tuple[DatedLine, ...]


async def gather_context(stream: Stream, session: str, text: str, heard: int) -> TalkContext:
    """Gather what an utterance (its words, and its row of the log) is answered from."""
    newest = await stream.latest("chat", HISTORY)
    own = next((record.id for record in newest if record.seq == heard), "")
    try:
        found = await stream.recall(text, k=RECALLED, kinds=RECALLED_KINDS, floor=FLOOR, asked_in=own)
    except ModelError:  # an embedder that cannot be had: what is newest must do
        return await context_without_recall(stream, session, heard)
    return await fit_context(stream, session, heard, newest, [each.record for each in found])


async def context_without_recall(stream: Stream, session: str, heard: int) -> TalkContext:
    """Gather what is newest."""
    return await fit_context(stream, session, heard, await stream.latest("chat", HISTORY))


async def fit_context(
    stream: Stream, session: str, heard: int, newest: Sequence[Record], found: Sequence[Record] = ()
) -> TalkContext:
    """Fit what is newest and what was found into the budget."""
    talk = [record for record in newest if record.episode == session]
    if len(newest) == HISTORY and len(talk) < HISTORY:  # other talks go on beside this one
        talk = await stream.latest("chat", HISTORY, episode=session)
    shown = {record.id for record in talk}
    history = lines([record for record in talk if record.seq < heard or not record.data.get("by_user")])
    notes = [note(record) for record in await stream.latest("note", NOTES)]
    recalled = [note(record) for record in found if record.kind != "chat"]
    others = [each for each in recalled if each not in notes]
    brought_up = [record for record in found if record.kind == "chat" and record.id not in shown]
    again = {record.id for record in brought_up} | shown
    before = [record for record in newest if record.id not in again]
    memory = fit(
        [
            Part("recalled", others), Part("brought up", [dated_line(record) for record in brought_up]),
            Part("notes", notes, "last"), Part("before", [dated_line(record) for record in before], "last"),
        ],
        MEMORY_TOKENS,
    )  # fmt: skip
    talks = sorted(
        [*memory.kept("brought up", brought_up), *memory.kept("before", before)], key=lambda record: record.seq
    )
    fits = fit([Part("history", history, "last")], HISTORY_TOKENS)
    return TalkContext(
        history=fits.kept("history", history), left_out=fits.cut["history"], recalled=memory.kept("recalled", others),
        notes=memory.kept("notes", notes), talks=tuple(map(dated_line, talks)),
    )  # fmt: skip
