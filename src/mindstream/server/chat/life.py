"""Talking to a life through a chat page: what is said goes into its inbox; what its next turn says is the answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from mindstream.life import commands, lives
from mindstream.life.events import Questioned, TurnEnded
from mindstream.life.state import LifeState, read_state
from mindstream.memory.memory import Memory
from mindstream.service.operations.house import House
from mindstream.service.operations.refusals import NotFound
from mindstream.service.operations.who import Who

PATIENCE_S, LOOK_S = 120.0, 0.5
"""So long it is waited for what a life says, and how often it is looked."""
SESSION = "life"


async def speak_with_life(house: House, who: Who, text: str) -> AsyncGenerator[str]:
    """Say something to a user's life, or answer what it asks; give what it says to that, or how it stands.

    Raises:
        NotFound: it has no goal yet.
    """
    who.require("life", "write")
    memory = await house.memory(who)
    state = await read_state(memory)
    if not state.goal:
        raise NotFound("nobody has given this user's life a goal yet: POST /api/v1/users/{user}/life/goal does")
    last = await memory.store.last(memory.key, TurnEnded.kind)
    if _open(state):
        await commands.answer(memory, text, "", session=SESSION)
    else:
        await commands.say(memory, text)
    yield await _what_it_says(house, memory, last.seq if last else 0)


async def _what_it_says(house: House, memory: Memory, after: int) -> str:
    until = house.clock.elapsed() + PATIENCE_S
    while await lives.is_lived(memory) and house.clock.elapsed() < until:
        for row in await memory.store.events(memory.key, after, [TurnEnded.kind, Questioned.kind]):
            if isinstance(row.event, TurnEnded) and row.event.words.strip():
                return row.event.words
        state = await read_state(memory)
        if asked := _open(state):
            return asked
        await house.clock.sleep(LOOK_S)
    return _standing(await read_state(memory), lived=await lives.is_lived(memory))


def _standing(state: LifeState, *, lived: bool) -> str:
    """Say how it stands, without a promise."""
    tasks = [f"- {task.text} ({task.standing})" for task in state.ledger.ordered()]
    how = "It is at work." if lived else "Noted. Nobody lives it now: it reads this when it is lived again."
    asked = _open(state)
    return "\n".join(filter(None, [how, f"Goal: {state.goal}", *tasks, f"It asks: {asked}" if asked else ""]))


def _open(state: LifeState) -> str:
    """Return what it asks and waits for; "" where it asks nothing."""
    return next((each.tip for id_, each in state.questions.items() if id_ not in state.answers), "")
