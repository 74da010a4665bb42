"""A conversation without a model: what is remembered and was not told yet is told."""

from __future__ import annotations

from mindstream.models.prompt import rule
from mindstream.town.prompts.take_from_talk import TakeFromTalk, Taken
from mindstream.town.prompts.utter import Utter, Utterance


@rule(Utter)
def tell_what_is_new(ask: Utter) -> Utterance:
    """Tell the first memory that the other was not told."""
    said = "\n".join(ask.lines)
    for number, memory in enumerate(ask.memories, 1):
        if number not in ask.told and memory not in said and len(memory) < 500:
            return Utterance(text=memory, passes_on=[number], ends=ask.left <= 1)
    return Utterance(text=f"Good to see you, {ask.other.split()[0]}.", ends=True)


@rule(TakeFromTalk)
def keep_what_was_said(ask: TakeFromTalk) -> Taken:
    """Keep the longest thing that the other said."""
    heard = [line.partition(": ")[2] for line in ask.lines if line.startswith(f"{ask.other}: ")]
    longest = max(heard, key=len, default="")
    return Taken(about=longest[:120] or "this and that", memo=f"{ask.other} said: {longest}"[:400] if longest else "")
