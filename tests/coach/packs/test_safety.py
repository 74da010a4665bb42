"""Sentences that must raise an alarm, and sentences that must not."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from mindstream.coach.packs.load import load, shipped_packs
from mindstream.coach.packs.pack import Alarm, Pack, Phase
from mindstream.coach.packs.safety import find_alarm, find_hint
from mindstream.text.words import simplify

HERE = Path(__file__).parent
SENTENCES: dict[str, list[str]] = yaml.safe_load((HERE / "safety_sentences.yaml").read_text("utf-8"))
SEEN = [path for path in sorted(HERE.glob("seen_*.tsv")) if path.stem != "seen_sixth"]
"""Label, language, sentence, by writers who had not seen the code; tuning sets of the patterns since."""
SLEEP = load("sleep")


def stops(sentence: str) -> bool:
    alarm = find_alarm(SLEEP, sentence)
    return alarm is not None and alarm.stops


def heard(sentence: str) -> bool:
    """Return whether danger to life is detected, surely or as a hint."""
    return stops(sentence) or find_hint(SLEEP, sentence) is not None


def labelled(path: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in path.read_text("utf-8").splitlines():
        label, _, sentence = line.split("\t")
        found.setdefault(label, []).append(sentence)
    return found


@pytest.mark.parametrize("path", SEEN, ids=lambda path: path.stem)
def test_danger_is_detected_and_harmless_text_passes_on_the_tuning_sets(path: Path) -> None:
    """Each set has 20 direct, 20 veiled, 40 harmless sentences. Veiled danger is a hint and stops nothing."""
    said = labelled(path)
    assert not [sentence for sentence in said["direct"] if not heard(sentence)]
    assert len([sentence for sentence in said["direct"] if stops(sentence)]) >= 18
    assert not [sentence for sentence in said["veiled"] if stops(sentence)]
    assert len([sentence for sentence in said["veiled"] if not heard(sentence)]) <= 6
    assert not [sentence for sentence in said["harmless"] if stops(sentence) or heard(sentence)]


def test_idioms_raise_no_alarm_and_direct_danger_of_each_kind_is_detected() -> None:
    """Written after the patterns; missed sentences led to new patterns, so this is a tuning set (docs/packs.md)."""
    said = labelled(HERE / "seen_sixth.tsv")
    assert not [each for each in said["common"] if find_alarm(SLEEP, each) or find_hint(SLEEP, each)]
    missed = [each for each in said["direct"] if not heard(each)]
    assert len(said["direct"]) == 140 and len(missed) <= 4, missed


def test_training_and_test_sentences_are_disjoint() -> None:
    training = HERE.parents[2] / "benchmarks" / "training"
    files = list(training.glob("*/*.tsv"))
    trained = {line.split("\t")[-1] for file in files for line in file.read_text("utf-8").splitlines()}
    assert trained and not trained & {
        sentence for path in SEEN for said in labelled(path).values() for sentence in said
    }


@pytest.mark.parametrize("sentence", SENTENCES["direct"])
def test_plain_danger_stops_the_conversation(sentence: str) -> None:
    assert stops(sentence)


def test_most_veiled_danger_is_detected_and_harmless_text_passes() -> None:
    assert len([sentence for sentence in SENTENCES["veiled"] if not heard(sentence)]) <= 40
    assert not [sentence for sentence in SENTENCES["harmless"] if stops(sentence)]
    assert len([sentence for sentence in SENTENCES["harmless"] if heard(sentence)]) <= 1


@pytest.mark.parametrize("name", ["sleep", "tutor"])
def test_common_sentences_raise_no_alarm(name: str) -> None:
    pack = load(name)
    assert len(pack.harmless) >= 80
    assert not [each for each in pack.harmless if find_alarm(pack, each) or find_hint(pack, each)]


BESIDE = {
    "drowsy_driving": ["i nodded off driving home again yesterday", "开车等红灯的时候我睡着了，后面的车按喇叭才醒"],
    "sleep_apnoea": ["my husband says I stop breathing at night and then gasp", "老公说我睡着睡着呼吸停了"],
    "pills_and_alcohol": ["I take a zopiclone with a glass of wine", "我就着红酒吃安眠药"],
    "baby_on_the_sofa": ["I fall asleep on the sofa with the baby on my chest", "我抱着宝宝在沙发上睡着了"],
}


@pytest.mark.parametrize("name", BESIDE)
def test_medical_warning_signs_are_detected_without_stopping_the_answer(name: str) -> None:
    for sentence in BESIDE[name]:
        alarm = find_alarm(SLEEP, sentence)
        assert alarm is not None and alarm.id == name and not alarm.stops, sentence


@pytest.mark.parametrize(
    "sentence",
    ["I drove home and went straight to sleep", "my legs hurt from the gym", "my husband talks in his sleep",
     "I had a headache this morning, too much wine", "I laughed so hard last night", "开车上班要一个小时，很累",
     "做梦梦到打架", "晚上老口渴"],
)  # fmt: skip
def test_similar_harmless_sentences_are_not_warning_signs(sentence: str) -> None:
    assert find_alarm(SLEEP, sentence) is None and find_hint(SLEEP, sentence) is None


@pytest.mark.parametrize(
    "sentence",
    ["I could never hurt myself, I'm just exhausted by the baby", "No, I'm not suicidal or anything", "没有想过自杀"],
)
def test_a_denial_raises_no_alarm(sentence: str) -> None:
    assert not stops(sentence)


@pytest.mark.parametrize(
    "noise", ["{}", "I'm dead tired. {}", "{} lol", "Good evening!\n\n{}\n\nThe coffee is killing me."]
)
def test_surrounding_harmless_words_do_not_suppress_an_alarm(noise: str) -> None:
    for sentence in SENTENCES["direct"]:
        assert find_alarm(SLEEP, noise.format(sentence)), sentence


@pytest.mark.parametrize("name", shipped_packs())
def test_every_shipped_pack_has_the_suicide_alarm(name: str) -> None:
    pack = load(name)
    for sentence in ("I want to kill myself", "我想自杀"):
        alarm = find_alarm(pack, sentence)
        assert alarm is not None and alarm.stops


PHASE = Phase(name="asking", goal="To know.", instructions="Ask.", thinking="What?", fields=())


def together(*sets: list[str], unless: dict[str, list[str]] | None = None) -> Pack:
    words = {"en": list(sets), "zh": [["睡着|瞌睡", "开车"]]}
    alarm = Alarm(id="wheel", together=words, unless=unless or {}, say="Stop.")
    return Pack(name="tea", title="Tea", constitution="Be kind.", phases=(PHASE,), fields={}, alarms=(alarm,))


@pytest.mark.parametrize(
    ("sentence", "is_met"),
    [
        ("at the wheel I fell asleep", True), ("I keep falling asleep. It was behind the wheel.", True),
        ("driving yesterday, i was falling asleep", True), ("開車打瞌睡", True),
        ("I fall asleep on the train, never at the wheel", False), ("I never fall asleep at the wheel", False),
        ("my uncle fell asleep at the wheel in 1985", False), ("I don't remember driving", False),
        ("I fall asleep in the taxi while my wife is driving", False), ("the wheel squeaks", False),
        ("I fell asleep. " + "The day was long and hot. " * 10 + "I sat at the wheel.", False),
        ("从来不开车打瞌睡", False),
    ],
)  # fmt: skip
def test_word_groups_match_in_any_order_and_inflection(sentence: str, is_met: bool) -> None:
    pack = together(["fall asleep|doze", "wheel|driving", "-taxi"])
    assert (find_alarm(pack, sentence) is not None) is is_met


def test_a_negation_inside_a_cue_does_not_negate_it_and_unless_excludes_words() -> None:
    pack = together(["don't remember|no memory", "driving"], unless={"en": ["driving range"]})
    assert find_alarm(pack, "I have no memory of driving") and not find_alarm(pack, "no memory of the driving range")


@pytest.mark.parametrize("groups", [[], ["-taxi"], ["doze|", "wheel"]])
def test_word_groups_that_cannot_match_are_refused(groups: list[str]) -> None:
    with pytest.raises(ValueError, match="write"):
        together(groups)


def test_traditional_chinese_is_matched_like_simplified() -> None:
    assert simplify("開車時睡著了，醫生說") == "开车时睡着了，医生说"
    assert stops("我想自殺") and stops("我不想活了，藥都吞了")


RAMBLE = 4 * (
    "so yesterday i went to bed at eleven and then i read a bit and then the neighbours came home and i heard them and "
)


@pytest.mark.parametrize("sentence", ["and i want to kill myself", "and everyone would be better off without me"])
def test_danger_at_the_end_of_unpunctuated_text_is_detected(sentence: str) -> None:
    assert heard(RAMBLE + sentence) and not heard(RAMBLE)
