"""I(tip, timeout): ask the user; after the timeout, report that there was no reply (the M0, M1, M2 system)."""

from __future__ import annotations

from mindstream.life.events import Questioned
from mindstream.life.prompts import NOT_YET, spec_of
from mindstream.life.steps import Done, Steps
from mindstream.life.tools.own_tools import Arguments, OwnTool, Where
from mindstream.life.waking import Rhythm
from mindstream.text.words import count_words
from mindstream.tools.call import Observation


def ask_tool(steps: Steps, rhythm: Rhythm, language: str) -> OwnTool:
    """Return I. Outside of active hours, or beyond the day's word limit, the question can only be read."""
    state = steps.state

    async def ask_user(given: Arguments, where: Where) -> Done:
        now = steps.memory.clock.now()
        if where.id not in state.questions:
            words = count_words(given.tip)
            shown = rhythm.is_active(now) and steps.budget.may_speak(state.spent, words, now)
            until = now + given.timeout if shown else now
            steps.note(Questioned(id=where.id, tip=given.tip.strip(), until=until, shown=shown))
            await steps.flush()
            await steps.inbox.put(state.questions[where.id])
        until = state.questions[where.id].until
        await steps.inbox.wait(until, lambda: where.id in state.answers)
        return Done(Observation(state.answers.get(where.id, NOT_YET[language])))

    return OwnTool(spec_of("I", language), ask_user)
