"""What must be recognised before anyone speaks, and what must not be."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from mindstream.coach.packs.load import load, shipped_packs
from mindstream.coach.packs.reading import read_utterance
from mindstream.coach.packs.safety import find_alarm

HERE = Path(__file__).parent
SENTENCES: dict[str, list[str]] = yaml.safe_load((HERE / "safety_sentences.yaml").read_text("utf-8"))
UNSEEN = sorted(HERE.glob("unseen_*.tsv"))
"""Written by people who saw neither the code nor the training sentences: label, language, sentence."""
SLEEP = load("sleep")


def stops(sentence: str) -> bool:
    alarm = find_alarm(SLEEP, sentence)
    return alarm is not None and alarm.stops


def labelled(path: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in path.read_text("utf-8").splitlines():
        label, _, sentence = line.split("\t")
        found.setdefault(label, []).append(sentence)
    return found


@pytest.mark.parametrize("path", UNSEEN, ids=lambda path: path.stem)
def test_on_sentences_it_never_saw_danger_is_recognised_and_hardly_anything_else(path: Path) -> None:
    """The bar of each set of 20 direct, 20 veiled, 10 apnoea, 40 harmless."""
    said = labelled(path)
    assert not [sentence for sentence in said["direct"] if not stops(sentence)]
    assert len([sentence for sentence in said["veiled"] if not stops(sentence)]) <= 2
    assert len([sentence for sentence in said["apnoea"] if not find_alarm(SLEEP, sentence)]) <= 1
    assert len([sentence for sentence in said["harmless"] if stops(sentence)]) <= 2


def test_no_training_sentence_stands_in_a_set_that_tests_the_alarms() -> None:
    training = HERE.parents[1] / "benchmarks" / "training" / "danger"
    trained = {line.split("\t")[-1] for file in training.glob("*.tsv") for line in file.read_text("utf-8").splitlines()}
    assert not trained & {sentence for path in UNSEEN for said in labelled(path).values() for sentence in said}


@pytest.mark.parametrize("sentence", SENTENCES["direct"])
def test_danger_said_plainly_stops_the_ordinary_answer(sentence: str) -> None:
    assert stops(sentence)


def test_of_what_was_once_missed_hardly_anything_is_missed_again() -> None:
    assert len([sentence for sentence in SENTENCES["veiled"] if not stops(sentence)]) <= 5
    assert len([sentence for sentence in SENTENCES["harmless"] if stops(sentence)]) <= 5


@pytest.mark.parametrize(
    "sentence",
    ["I think noise and light might be distracting me.", "i cant slep becuase of nosie", "nothing works", "SLEEP!!!",
     "I don't like that step, painting walls is not for me.", "Good night, talk to you tomorrow.",
     "你还记得我说过什么吗？"],
)  # fmt: skip
def test_ordinary_talk_raises_no_alarm(sentence: str) -> None:
    assert find_alarm(SLEEP, sentence) is None


@pytest.mark.parametrize(
    "noise", ["{}", "I'm dead tired. {}", "{} lol", "Good evening!\n\n{}\n\nThe coffee is killing me."]
)
def test_harmless_words_around_it_do_not_silence_an_alarm(noise: str) -> None:
    for sentence in SENTENCES["direct"]:
        assert find_alarm(SLEEP, noise.format(sentence)), sentence


@pytest.mark.parametrize("name", shipped_packs())
def test_every_shipped_pack_knows_that_somebody_may_want_to_die(name: str) -> None:
    pack = load(name)
    for sentence in ("I want to kill myself", "我想自杀"):
        alarm = find_alarm(pack, sentence)
        assert alarm is not None and alarm.stops


RAMBLE = 4 * (
    "so yesterday i went to bed at eleven and then i read a bit and then the neighbours came home and i heard them and "
)


@pytest.mark.parametrize("sentence", ["and i want to kill myself", "and everyone would be better off without me"])
def test_danger_at_the_end_of_a_text_without_full_stops_is_heard(sentence: str) -> None:
    assert stops(RAMBLE + sentence) and not stops(RAMBLE)


@pytest.mark.parametrize("text", ["no, " * 8_000, "1" * 32_000, "!?.," * 8_000, "我" * 10_000, "\U0001f642" * 5_000])
def test_no_text_takes_long_to_look_at(text: str) -> None:
    """Tests of what is made to be slow: test_pumped.py."""
    find_alarm(SLEEP, text)
    read_utterance(SLEEP, text)
