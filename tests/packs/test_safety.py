"""What must be recognised before anyone speaks, and what must not be."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from mindstream.minds.safety import recognised
from mindstream.packs.load import load, shipped

SENTENCES: dict[str, list[str]] = yaml.safe_load(Path(__file__).with_name("safety_sentences.yaml").read_text("utf-8"))
SLEEP = load("sleep")


@pytest.mark.parametrize("sentence", SENTENCES["direct"] + SENTENCES["veiled"])
def test_danger_is_recognised_and_stops_the_ordinary_answer(sentence: str) -> None:
    alarm = recognised(SLEEP, sentence)
    assert alarm is not None and alarm.stops


def test_harmless_sentences_that_look_alike_are_let_through() -> None:
    stopped = [sentence for sentence in SENTENCES["harmless"] if (alarm := recognised(SLEEP, sentence)) and alarm.stops]
    assert len(stopped) <= 2, stopped


@pytest.mark.parametrize(
    "noise", ["{}", "I'm dead tired. {}", "{} lol", "Good evening!\n\n{}\n\nThe coffee is killing me."]
)
def test_harmless_words_around_it_do_not_silence_an_alarm(noise: str) -> None:
    for sentence in SENTENCES["direct"]:
        assert recognised(SLEEP, noise.format(sentence)), sentence


@pytest.mark.parametrize("name", shipped())
def test_every_shipped_pack_knows_that_somebody_may_want_to_die(name: str) -> None:
    pack = load(name)
    for sentence in ("I want to kill myself", "我想自杀"):
        alarm = recognised(pack, sentence)
        assert alarm is not None and alarm.stops
