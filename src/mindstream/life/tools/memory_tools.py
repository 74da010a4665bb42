"""The memory tools of a life's roles: R recalls, U stores a memory, S sleeps.

Apart from their context, these tools are the roles' only access to memory. R finds only records that U wrote or that
sleep derived from such records, and the summaries of M2's turns; all of these have `life` in their data.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace

from mindstream.errors import BudgetSpent, ModelUnavailable, ReplyInvalid, ToolError
from mindstream.life.prompts import spec_of
from mindstream.life.state import day_of
from mindstream.life.steps import Done, Steps
from mindstream.life.tools.own_tools import Arguments, OwnTool, Where
from mindstream.log.events import Corrected
from mindstream.memory.lifecycle.sleep import Compose, count_fading
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import TAINTED, Record, RecordDraft, is_tainted, normalised
from mindstream.memory.store.store import Revision
from mindstream.models.model import Model, Part, Piece, Request, Usage
from mindstream.tools.call import Observation

MARK = {"life": True}
"""Data that marks the records that the recall tool R may find: those that the tool U wrote, summaries of turns, and
records that sleep derived only from such records."""
RETURNED, SHARE = 5, 20
"""RETURNED: default number of memories that the recall tool R returns. SHARE: the sleep tool S draws at least one in
SHARE of the records that can decay, so that it draws more from a large memory."""
LONGEST = 1_500
QUOTED = 20
"""Number of memories, found by a recall of the given words, among which the tool U (store a memory) searches the one
that it replaces."""
_DAY = re.compile(r"^(?:- )?\d{4}-\d\d-\d\d: ")
NO_DREAM = {"en": "nothing was forgotten, so there is no dream", "zh": "没有遗忘什么，所以没有梦"}
NOTHING = {"en": "nothing is remembered of that", "zh": "没有相关记忆"}


def recall_tool(steps: Steps, language: str, n: int = RETURNED) -> OwnTool:
    """Return the tool R(query), which returns n memories.

    The commit of the result also strengthens these memories, and weakens others that were found but not returned.
    """
    stream = steps.memory

    async def recall(given: Arguments, where: Where) -> Done:  # noqa: ARG001
        found = await stream.recall(given.query, n, kinds=("note", "dream"), where=MARK, touch=False)
        text = "\n".join(_line(each.record) for each in found) or NOTHING[language]
        foreign = any(is_tainted(each.record) for each in found)
        return Done(Observation(text, untrusted=foreign), touch=found.touch)

    return OwnTool(spec_of("R", language), recall)


def retain_tool(steps: Steps, language: str) -> OwnTool:
    """Return the tool U(memory, replaces), which stores a memory, and ends the one that it replaces.

    A memory with the same words as a stored one is not stored again. A replaced or withdrawn memory stays as history.
    """
    stream = steps.memory

    async def retain(given: Arguments, where: Where) -> Done:
        text, ok = given.memory.strip(), Observation("ok")
        old = await _find_memory(stream, given.replaces) if given.replaces.strip() else None
        new_id, records = "", tuple[Record, ...]()
        if text or old is None:  # otherwise the old memory is only withdrawn
            known = (await stream.find_same("note", [text])).get(normalised(text))
            if old and known and known.id == old.id:
                return Done(ok)
            new = memory(text, where)
            if old:
                tainted = {TAINTED: True} if is_tainted(old) else {}
                new = replace(new, evidence=(old.id,), data={**new.data, **tainted})
            records = () if known else tuple(await stream.build_records([new]))
            new_id = (known or records[0]).id
        if old is None:
            return Done(ok, records=records)
        ended = Revision(id=old.id, valid_until=stream.clock.now(), superseded_by=new_id or None)
        return Done(ok, records=records, events=(Corrected(old=old.id, new=new_id),), revisions=(ended,))

    return OwnTool(spec_of("U", language), retain)


async def _find_memory(stream: Memory, words: str) -> Record:
    """Return the one memory (stored by the tool U, or a summary of turns) that contains these words.

    Raises:
        ToolError: no memory contains them, or several do.
    """
    wanted = _DAY.sub("", _plain(words)).strip(' .…“”"')
    found = await stream.recall(words, QUOTED, kinds=("note",), where=MARK, touch=False, rerank=False)
    says = [each.record for each in found if wanted and wanted in _plain(each.record.text)]
    same = [each for each in says if _plain(each.text).strip(' .…“”"') == wanted] or says
    if len(same) == 1:
        return same[0]
    if not same:
        raise ToolError(
            f"replaces: no memory says {words[:80]!r}; give its words as the tool R returns them, without the day"
        )
    listed = "\n".join(map(_line, same))
    raise ToolError(f"replaces: {len(same)} memories say that; give more of the words of one:\n{listed}")


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def memory(text: str, where: Where) -> RecordDraft:
    """Return the record that U stores for a text."""
    data = {**MARK, **({TAINTED: True} if where.tainted else {})}
    return RecordDraft(text=text, kind="note", by=where.role, episode=f"turn {where.id.partition('.')[0]}", data=data)


def sleep_tool(steps: Steps, language: str, model: Model, n: int, dreams: Callable[[Where], Compose]) -> OwnTool:
    """Return the tool S(), which runs a sleep of the memory (memory/lifecycle/sleep). The sleep draws n records at
    random (more from a large memory, see SHARE), and M1 writes its dream.

    Args:
        model: the model of M1; it also rates records without an importance.
        dreams: returns, for a call, the function that writes its dream.
    """
    stream = steps.memory

    async def sleep(given: Arguments, where: Where) -> Done:  # noqa: ARG001
        rater = StepModel(steps, where.id, "M1", model)
        drawn = max(n, await count_fading(stream) // SHARE)
        dream = await stream.sleep(rater, drawn, cause=where.row, fence=steps.fence, compose=dreams(where))
        if not dream:
            return Done(Observation(NO_DREAM[language]))
        return Done(Observation(dream, untrusted=await _is_tainted(stream, dream)))

    return OwnTool(spec_of("S", language), sleep)


async def _is_tainted(stream: Memory, dream: str) -> bool:
    return any(record.text == dream and is_tainted(record) for record in await stream.latest("dream", 3))


def _line(record: Record) -> str:
    dreamt = " (dream)" if record.kind == "dream" else ""
    return f"- {day_of(record.created)}{dreamt}: {' '.join(record.text[:LONGEST].split())}"


class StepModel:
    """A model whose replies are stored as steps of a turn; a request whose reply is stored is not sent again."""

    def __init__(self, steps: Steps, id_: str, role: str, model: Model) -> None:
        self.name = model.name
        self._steps, self._id, self._role, self._model = steps, id_, role, model

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        words = "\n".join(message.text for message in request.messages)
        id_ = f"{self._id}.{hashlib.blake2b(words.encode(), digest_size=4).hexdigest()}"
        try:
            replied = await self._steps.reply(id_, self._role, self._model, request)
        except BudgetSpent as error:
            raise ReplyInvalid(str(error)) from None
        await self._steps.flush()  # before anything based on it is written
        if replied.error:
            raise ModelUnavailable(replied.error)
        yield Piece(replied.text)
        yield Usage(replied.tokens, 0, replied.cost_usd)
