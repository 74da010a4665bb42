"""The context of an answer: this conversation, earlier ones and recalled memories, within a token budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mindstream.clock import DAY_S
from mindstream.errors import ModelError
from mindstream.memory.conversation import DatedLine, Line, Note, dated_line, format_later, lines, lines_of_talks, note
from mindstream.memory.memory import Memory
from mindstream.memory.recall.ranking import LOW_CERTAINTY
from mindstream.memory.store.record import Kind, Record, RecordDraft
from mindstream.text.context import Part, fit

HISTORY_TOKENS, EARLIER_TOKENS, MEMORY_TOKENS = 3_000, 800, 450
"""Maximum number of tokens for this conversation, for the newest lines of earlier ones, and for all other memories."""
HISTORY, NOTES, RECALLED = 60, 20, 12
"""Maximum number of chat lines, of notes and of recalled memories that are considered for the context."""
RECALLED_KINDS: tuple[Kind, ...] = ("note", "thought", "observation", "document", "chat")


@dataclass(frozen=True, slots=True)
class TalkContext:
    """Context of an answer, within the token budget.

    Attributes:
        history: the newest lines of this conversation, without the utterance itself. If none of them had to be left
            out, the newest lines of earlier conversations come before them.
        left_out: number of lines that do not fit, among the newest HISTORY lines of this conversation.
        has_all: whether `history` contains all earlier lines of this conversation, and all lines of other conversations
            from before it began.
        recalled: memories that match the utterance, apart from notes in `notes` and lines of conversations.
        notes: the newest notes about the user.
        talks: chat lines that `history` does not have, mostly from other conversations, oldest first: those that match
            the utterance, and the user's newest ones; both only as far as they fit.
        heard: the log rows of the user's earlier messages among the newest HISTORY lines of all conversations.
        later: how long after the last line the utterance comes ("13 days later"); "": the last line is of this
            conversation and less than 24 hours old, or there is none.
    """

    history: tuple[Line, ...]
    left_out: int
    has_all: bool
    recalled: tuple[Note, ...]
    notes: tuple[Note, ...]
    talks: tuple[DatedLine, ...]
    heard: tuple[int, ...] = ()
    later: str = ""


async def gather_context(
    memory: Memory, session: str, text: str, heard: int, believer: str | None = None
) -> TalkContext:
    """Gather the context for answering an utterance.

    Args:
        text: the utterance.
        heard: the number of the log row of the utterance.
        believer: the slot of a reasoner whose notes are left out, because the prompt has the reasoner's belief; None:
            all notes are used.
    """
    newest = await memory.latest("chat", HISTORY)
    own = next((record.id for record in newest if record.seq == heard), "")
    try:
        hits = await memory.recall(text, k=RECALLED, kinds=RECALLED_KINDS, floor=LOW_CERTAINTY, asked_in=own)
        found = [hit.record for hit in hits]
    except ModelError:  # the embedder is unavailable
        found = []
    talk = [record for record in newest if record.episode == session]
    if len(newest) == HISTORY and len(talk) < HISTORY:  # other conversations take place at the same time
        talk = await memory.latest("chat", HISTORY, episode=session)
    own_talk = [record for record in talk if record.seq < heard or not record.data.get("by_user")]
    own_lines, now = lines(own_talk), memory.clock.now()
    fits = fit([Part("history", own_lines, "last")], HISTORY_TOKENS)
    began = min((record.seq for record in talk), default=heard)
    earlier = [record for record in newest if record.episode != session and record.seq < began]
    before: Sequence[Record] = ()
    if not fits.cut["history"]:
        before = fit([Part("lines", lines(earlier), "last")], EARLIER_TOKENS).kept("lines", earlier)
    notes = [note(record, now) for record in await memory.latest("note", NOTES) if record.by != believer]
    recalled = [note(record, now) for record in found if record.kind != "chat" and record.by != believer]
    others = [each for each in recalled if each not in notes]
    shown = {record.id for record in (*talk, *before)}
    matching = [record for record in found if record.kind == "chat" and record.id not in shown]
    shown |= {record.id for record in matching}
    older = [record for record in newest if record.id not in shown and record.data.get("by_user")]
    kept = fit(
        [
            Part("recalled", others),
            Part("matching", [dated_line(record, now) for record in matching]),
            Part("notes", notes, "last"),
            Part("older", [dated_line(record, now) for record in older], "last"),
        ],
        MEMORY_TOKENS,
    )
    talks = sorted([*kept.kept("matching", matching), *kept.kept("older", older)], key=lambda record: record.seq)
    known = {record.id: line for record, line in zip(own_talk, own_lines, strict=True)}
    last = next(iter([*own_talk[-1:], *earlier[-1:]]), None)
    passed_s = now - last.created if last else 0.0
    return TalkContext(
        history=lines_of_talks([*before, *fits.kept("history", own_talk)], session, now, known),
        left_out=fits.cut["history"],
        has_all=len(newest) < HISTORY and not fits.cut["history"] and len(before) == len(earlier),
        recalled=kept.kept("recalled", others),
        notes=kept.kept("notes", notes),
        talks=tuple(dated_line(record, now) for record in talks),
        heard=tuple(record.seq for record in newest if record.seq < heard and record.data.get("by_user")),
        later=format_later(passed_s) if last and (last.episode != session or passed_s >= DAY_S) else "",
    )


async def build_chat_record(memory: Memory, text: str, by: str, session: str, *, by_user: bool = False) -> Record:
    """Build the memory record of a line of a conversation; the caller writes it."""
    draft = RecordDraft(text=text, kind="chat", by=by, episode=session, data={"by_user": by_user})
    return (await memory.build_records([draft]))[0]
