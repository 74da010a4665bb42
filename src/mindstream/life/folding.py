"""M2's context does not grow without end: its oldest turns become a memory, in one commit, and stay in the log."""

from __future__ import annotations

from mindstream.errors import ReplyInvalid
from mindstream.life.context import Turn
from mindstream.life.events import Folded
from mindstream.life.prompts.fold_turns import FoldTurns
from mindstream.life.state import LifeState
from mindstream.life.steps import Steps
from mindstream.life.tools.memory_tools import memory
from mindstream.life.tools.own_tools import Where
from mindstream.models.fence import cut
from mindstream.models.model import Message, Model, Request
from mindstream.models.shorten import estimate_tokens

FULL, KEPT = 0.75, 0.4
"""At such a share of the limit the oldest turns are folded, until so much is left."""
LONGEST = 3_000
"""How long a fold may be, in characters."""


def turns_to_fold(state: LifeState, tokens: int, limit: int) -> list[Turn]:
    """Return the oldest turns, so many that the others fit well; none where there is room.

    Args:
        tokens: how long M2's prompt is now.
    """
    if tokens <= FULL * limit or len(state.turns) < 2:
        return []
    over, oldest = tokens - KEPT * limit, []
    for turn in state.turns[:-1]:
        if over <= 0:
            break
        over -= sum(map(_tokens, turn.messages))
        oldest.append(turn)
    return oldest


async def fold(steps: Steps, model: Model, turns: list[Turn]) -> None:
    """Let turns become a memory in M2's words; where it gives none they stay, and the next turn asks again."""
    state = steps.state
    ask = FoldTurns(goal=state.goal, turns=tuple(map(write_turn, turns)), language=state.language)
    id_ = f"fold-{turns[-1].number}-{state.turn}"
    replied = await steps.reply(id_, "M2", model, Request(ask, "M2"))
    try:
        text = ask.parse(replied.text)
    except ReplyInvalid:
        return
    where = Where(f"{turns[-1].number}", "M2", any(turn.tainted for turn in turns))
    record = (await steps.memory.build_records([memory(cut(text, LONGEST), where)]))[0]
    folded = Folded(since=turns[0].number, upto=turns[-1].number, text=record.text, record=record.id, model=model.name)
    state.apply(folded, steps.memory.clock.now())
    for known in (state.asked, state.replies):
        known.pop(id_, None)
    steps.note_applied(folded.model_copy(update={"state": state.model_dump_json()}), [record])
    await steps.flush()


def write_turn(turn: Turn) -> str:
    """Write a turn as text: what woke it, what was said, called and given."""
    lines = [f"Turn {turn.number}"]
    for message in turn.messages:
        lines += [message.text] if message.text else []
        lines += [f"-> {call.tool}({call.arguments})" for call in message.calls]
    return "\n".join(lines)


def _tokens(message: Message) -> int:
    return 4 + estimate_tokens(message.text) + sum(estimate_tokens(call.arguments) for call in message.calls)
