"""Count faults in conversations: stale and double answers, silences, small talk that wakes the Reasoner.

Utterances are labelled: `ask` requires the Reasoner (a plan, a change of it), `tell` reports something about the user,
`small` is small talk. An answer is stale if it answers an `ask` and came before the Reasoner had processed it, or if
the belief it used was not the newest one. It is double if its utterance has another answer, or if its follow-up repeats
it. A silence is more than 5 s without any output in a conversation while any answer is due. `stall_s`: the longest time
for which the event loop of this process was blocked.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from mindstream.coach.events import Decided
from mindstream.log.events import BeliefChanged, FollowUp, Heard, Logged, Piece, Said, Thought, Waiting
from mindstream.minds.mind import Mind

FIRST = (
    "Noise from the road keeps me awake.", "I lie awake because of the light outside.",
    "Too much coffee, I fear; I sleep badly.", "It is the heat, I can't get to sleep.",
    "The noise next door wakes me at four.",
)  # fmt: skip
MIX: dict[str, tuple[str, ...]] = {
    "ask": (
        "Can you make me a plan?", "What should I do about it?", "Give me something I can try tonight.",
        "Please put together a plan for me.", "Is there anything to read about this?",
        "Could you suggest something?", "I'd like some resources on that.", "How about a plan, step by step?",
    ),
    "change": (
        "What is the next step?", "Which step comes first?", "I don't like that step, give me another.",
        "That didn't work, what else could I do?", "I've done that one. And now?",
        "Can we swap it for something easier?",
    ),
    "tell": (
        "I go to bed at eleven.", "My partner snores a little.", "Work has been stressful since spring.",
        "I drink two beers in the evening.", "On weekends I sleep in until ten.", "My bedroom faces the street.",
        "I look at my phone in bed.", "I have a dog that sleeps in my room.", "I take a nap after lunch.",
        "I used to swim every week.", "My mother sleeps badly too.", "I work late shifts on Tuesdays.",
        "It takes me two hours to fall asleep.", "I moved here in March.", "My room is quite cold.",
        "I wake up with a headache.",
    ),
    "small": (
        "Thanks!", "Thank you, that's kind of you.", "Good evening!", "Hi there.", "haha", "lol",
        "Are you a real person?", "Who made you?", "What do you remember about me?", "Good morning!",
        "Nice talking to you.", "Hello again.", "You're funny.", "Cheers, mate.", "Thanks a lot for listening.",
        "That's sweet of you.", "What's your name?", "How are you today?", "See you tomorrow.", "Bye for now!",
        "谢谢你", "你好呀", "哈哈", "晚安",
    ),
}  # fmt: skip
"""`change` is an `ask` that requires an existing plan."""
SHARES = {"ask": 0.25, "tell": 0.4, "small": 0.35}
SILENCE_S = 5.0
BARS = {"stale_share": 0.01, "double_answers": 0, "silences": 0, "small_talk_woke_share": 0.02}
"""The thresholds: maximum values."""


@dataclass
class Taken:
    """An utterance sent to a mind: its row of the log; when it was sent, words came, and it ended (seconds)."""

    mind: int
    kind: str
    text: str
    begun: float
    heard: int = 0
    ended: float = 0.0
    words: list[float] = field(default_factory=list)


def draw(mind: int, nth: int, has_plan: bool) -> tuple[str, str]:
    """Return the label and the words of a conversation's nth utterance: first a problem, with no request at once."""
    chance = random.Random(f"{mind}.{nth}")
    if nth == 0:
        return "tell", chance.choice(FIRST)
    kinds = [kind for kind in SHARES if nth > 2 or kind != "ask"]
    (kind,) = chance.choices(kinds, [SHARES[kind] for kind in kinds])
    change = kind == "ask" and has_plan and chance.random() < 0.5
    return kind, chance.choice(MIX["change" if change else kind])


async def put(mind: Mind, taken: Taken) -> Taken:
    """Send an utterance and record when words arrive."""
    async for logged in mind.hear(taken.text):
        if isinstance(logged.event, Heard):
            taken.heard = logged.seq
        elif isinstance(logged.event, Piece | Waiting):
            taken.words.append(time.monotonic())
    taken.ended = time.monotonic()
    return taken


async def watch(stalls: list[float]) -> None:
    """Record the delays of the event loop."""
    while True:
        before = time.monotonic()
        await asyncio.sleep(0.05)
        stalls.append(time.monotonic() - before - 0.05)


def silences(taken: Sequence[Taken]) -> Iterator[float]:
    """Return, for each period of a conversation in which an answer is due, the length of each silence in it."""
    words = sorted(at for one in taken for at in one.words)
    stretches: list[list[float]] = []
    for one in sorted(taken, key=lambda one: one.begun):
        if stretches and one.begun <= stretches[-1][1]:
            stretches[-1][1] = max(stretches[-1][1], one.ended)
        else:
            stretches.append([one.begun, one.ended])
    for begun, ended in stretches:
        marks = [begun, *(at for at in words if begun < at < ended), ended]
        yield from (after - before for before, after in itertools.pairwise(marks))


def count_faults(taken: Sequence[Taken], logs: dict[int, list[Logged]], slot: str) -> dict[str, Any]:
    """Count faults from the logs of the conversations, and the times at which words arrived."""
    stale = double = 0
    too_soon: Counter[str] = Counter()
    woke: Counter[str] = Counter()
    waited: Counter[str] = Counter()
    for mind, rows in logs.items():
        kinds = {one.heard: one.kind for one in taken if one.mind == mind}
        texts = {one.heard: one.text for one in taken if one.mind == mind}
        thought = {
            seq: row.seq for row in rows if isinstance(row.event, Thought) and row.event.slot == slot
            for seq in row.event.about
        }  # fmt: skip
        said: dict[int, list[str]] = {}
        version = 0
        for row in rows:
            event = row.event
            if isinstance(event, BeliefChanged) and event.slot == slot:
                version = event.version
            elif isinstance(event, Decided) and event.answers in kinds:
                if kinds[event.answers] == "small" and event.thinks:
                    woke[texts[event.answers]] += 1
                waited[kinds[event.answers]] += event.waits
            elif isinstance(event, Said):
                early = kinds.get(event.answers) == "ask" and thought.get(event.answers, row.seq) >= row.seq
                too_soon += Counter([texts[event.answers]] if early else [])
                stale += early or event.belief_version < version
                double += event.answers in said
                said.setdefault(event.answers, []).append(event.text)
            elif isinstance(event, FollowUp):
                before = said.setdefault(event.answers, [])
                double += any(event.text in text or text in event.text for text in before)
                before.append(event.text)
    gaps = [gap for mind in logs for gap in silences([one for one in taken if one.mind == mind])]
    kinds_of = Counter(one.kind for one in taken)
    return {
        "stale_share": round(stale / len(taken), 4), "answered_too_soon": dict(too_soon.most_common(10)),
        "double_answers": double, "unanswered": sum(not one.words for one in taken),
        "silences": sum(gap > SILENCE_S for gap in gaps), "longest_silence_s": round(max(gaps), 2),
        "small_talk_woke_share": round(woke.total() / max(1, kinds_of["small"]), 4),
        "small_talk_that_woke": dict(woke.most_common(10)),
        "waited_share": {kind: round(waited[kind] / max(1, kinds_of[kind]), 3) for kind in SHARES},
        "utterances_by_kind": dict(kinds_of),
    }  # fmt: skip


def broken_bars(found: dict[str, Any]) -> list[str]:
    """Return the names of the thresholds that were not met."""
    return [f"{name}: {found[name]}, at most {most} may be" for name, most in BARS.items() if found[name] > most]
