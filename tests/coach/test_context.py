"""The memory part of the Talker's prompt answers plain questions about earlier conversations, within its budget."""

from __future__ import annotations

from pathlib import Path

import pytest

from mindstream import Coach, Mind
from mindstream.clock import ManualClock
from mindstream.minds.responder import EARLIER_TOKENS, MEMORY_TOKENS, Part, fit
from mindstream.models.model import estimate_tokens

FIRST = (
    "Hi, I'm Marta, I teach maths at a school in Porto.", "I can't fall asleep before two.",
    "My daughter is called Iris, she is nine.", "We live on the third floor above a bakery.",
    "The ovens start at four in the morning.", "I tried valerian, it did nothing.",
    "My father had a stroke in March.", "I go to him every second weekend.",
)  # fmt: skip
SECOND = (
    "Me again. I moved the espresso to eleven.", "I bought a wool blanket, the old one was too hot.",
    "Iris has a recorder concert on Friday.", "My husband Rui works nights at the harbour.",
    "He comes home at half past five.", "I wear a splint now, it is blue.",
)  # fmt: skip
ASKED = {
    "what do I teach?": "maths", "where do I live, which city?": "Porto", "what's my daughter's name?": "Iris",
    "how old is she?": "nine", "what is below our flat?": "bakery", "when do the ovens start?": "four",
    "what did I try that did nothing?": "valerian", "how often do I see my father?": "every second weekend",
    "when do I have the espresso now?": "eleven", "what is on Friday?": "concert", "what does Rui do?": "nights",
    "when does he come home?": "half past five", "what colour is the splint?": "blue",
}  # fmt: skip


async def talk(folder: Path, clock: ManualClock, session: str, lines: tuple[str, ...]) -> None:
    async with Mind.open(folder, user="marta", session=session, clock=clock, responder=Coach.using()) as mind:
        for line in lines:
            clock.advance(60)
            await mind.send(line)
            await mind.settled()


async def in_prompt(mind: Mind, question: str) -> tuple[str, int]:
    """Return the memory part of the Talker's prompt for a question of a new session, and its tokens."""
    talker = Coach.of(mind).talker
    asked = await talker.question(await talker.situation(question), 10**9)
    told = [*map(str, asked.notes), *map(str, asked.recalled), *map(str, asked.talks)]
    before = [str(line) for line in asked.history]
    assert sum(map(estimate_tokens, before)) <= EARLIER_TOKENS
    return "\n".join([*told, *before]), sum(map(estimate_tokens, told))


async def test_the_prompt_contains_two_earlier_short_conversations(folder: Path) -> None:
    clock = ManualClock()
    await talk(folder, clock, "one", FIRST)
    clock.advance(86_400)
    await talk(folder, clock, "two", SECOND)
    clock.advance(86_400)
    async with Mind.open(folder, user="marta", session="three", clock=clock, responder=Coach.using()) as mind:
        for question, answer in ASKED.items():
            told, tokens = await in_prompt(mind, question)
            assert answer in told and tokens <= MEMORY_TOKENS, question


@pytest.mark.parametrize(
    ("session", "days", "later"),
    [("two", 13, "13 days later"), ("one", 2, "2 days later"), ("one", 0, ""), ("two", 0.2, "later")],
)
async def test_the_prompt_says_how_long_after_the_last_line_an_utterance_comes(
    folder: Path, session: str, days: float, later: str
) -> None:
    clock = ManualClock()
    async with Mind.open(folder, user="marta", session="one", clock=clock, responder=Coach.using()) as mind:
        first = Coach.of(mind).talker
        assert not (await first.question(await first.situation("Hi."), 10**9)).later
    await talk(folder, clock, "one", ("Hello.",))
    clock.advance(days * 86_400 + 60)
    async with Mind.open(folder, user="marta", session=session, clock=clock, responder=Coach.using()) as mind:
        talker = Coach.of(mind).talker
        asked = await talker.question(await talker.situation("Back again."), 10**9)
    assert asked.later == later and (f"<later>{later}</later>" in asked.messages()[-1].text) == bool(later)


@pytest.mark.parametrize(("budget", "needed", "spare"), [(6, 0, []), (7, 1, []), (14, 1, [2]), (99, 1, [0, 1, 2])])
def test_prompt_parts_fill_the_budget_by_priority(budget: int, needed: int, spare: list[int]) -> None:
    fitted = fit([Part("needed", ["x" * 24]), Part("spare", ["y" * 24] * 3, "last")], budget)
    assert (len(fitted.places["needed"]), fitted.places["spare"]) == (needed, spare)
    assert fitted.tokens <= budget and fitted.cut == {"needed": 1 - needed, "spare": 3 - len(spare)}
