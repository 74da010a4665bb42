"""Fillers state nothing; and how often the check errs, on fillers that others wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mindstream import Mind
from mindstream.coach.coach import coach_of
from mindstream.coach.packs.filler import states
from mindstream.coach.packs.load import load, shipped_packs
from mindstream.coach.packs.saying import phrases
from mindstream.log.events import Waiting

CONVFILL = Path(__file__).parents[3] / "shared" / "data" / "convfill"
CLAIM = {1, 2, 3, 4, 5, 6, 8, 9, 14, 31, 32, 38, 43, 47}
"""Which of the dataset's <sil> lines, in its order, do state something (judged by hand, by the rule of the module)."""


@pytest.mark.parametrize(
    "filler", ["One moment, let me think.", "Hold on a little, I'm working on it.", "请等一下，我在认真考虑。"]
)
def test_holding_the_line_states_nothing(filler: str) -> None:
    assert states(filler, []) == []


@pytest.mark.parametrize(
    ("filler", "stated"),
    [
        ("One moment, caffeine keeps people awake.", ["caffeine", "keeps", "people", "awake"]),
        ("I'll have 3 steps for you.", ["3", "steps"]),
        ("稍等，咖啡因会影响睡眠。", ["咖啡因", "影响睡眠"]),
    ],
)
def test_nouns_numbers_and_claims_are_found(filler: str, stated: list[str]) -> None:
    assert states(filler, []) == stated


def test_what_the_user_said_may_be_taken_up() -> None:
    assert states("Noise and light, let me think about that.", ["the noise", "lights", "about"]) == []


@pytest.mark.parametrize("name", shipped_packs())
def test_every_pack_waits_without_stating_anything(name: str) -> None:
    pack = load(name)
    for language in pack.languages:
        for phrase in phrases(pack, "wait", language):
            assert states(phrase, []) == [], phrase


async def test_a_thousand_waits_state_nothing(folder: Path) -> None:
    said = ["Make me a plan for the noise", "我需要一个计划", "next", "Something else please", "换一个", "resources?"]
    async with Mind.open(folder, user="ann", session="s") as mind:
        for n in range(1000):
            assert states(await coach_of(mind).talker.filler(said[n % len(said)]), [said[n % len(said)]]) == []
        async for _ in mind.hear("The noise wakes me, make me a plan"):
            pass
        await mind.settled()
        for text in said:
            async for logged in mind.hear(text):
                if isinstance(logged.event, Waiting):
                    assert states(logged.event.text, [text]) == []


def test_how_often_the_check_errs_on_fillers_of_others() -> None:
    if not CONVFILL.is_dir():
        pytest.skip("the ConvFill examples are not here")
    fillers: list[tuple[str, str]] = []
    answers: list[tuple[str, str]] = []
    for file in sorted(CONVFILL.glob("example_*.txt")):
        heard = ""
        for turn in json.loads(file.read_text("utf-8"))["conversation"]:
            heard += f" {turn['user']}"
            for thought, words in zip(turn["thoughts"], turn["response"], strict=True):
                (fillers if thought == "<sil>" else answers).append((heard, words))
    flagged = {n for n, (heard, words) in enumerate(fillers) if states(words, [heard])}
    missed = CLAIM - flagged
    false = flagged - CLAIM
    substance = sum(bool(states(words, [heard])) for heard, words in answers) / len(answers)
    print(f"claims missed {len(missed)} of {len(CLAIM)}, false alarms {len(false)} of {len(fillers) - len(CLAIM)}")
    print(f"answers with substance that are told as such: {substance:.2f} of {len(answers)}")
    assert len(missed) <= 2 and len(false) <= 20 and substance >= 0.95
