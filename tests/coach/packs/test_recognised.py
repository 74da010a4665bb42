"""Alarms that name a recogniser: what it alone hears stops nothing."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from mindstream.coach.packs.pack import Alarm, Pack, Phase
from mindstream.coach.packs.recogniser import KINDS, names
from mindstream.coach.packs.safety import find_alarm, find_hint, find_raised

PHASE = Phase(name="asking", goal="To know.", instructions="Ask.", thinking="What?", fields=())
LEGS = "Each evening my calves fizz and crawl and I have to get up and walk about"


def pack(*alarms: Alarm) -> Pack:
    return Pack(name="tea", title="Tea", constitution="Be kind.", phases=(PHASE,), fields={}, alarms=alarms)


def alarm(recogniser: str | None, *, stops: bool = False, **words: dict[str, list[str]]) -> Alarm:
    given = {"id": "heard", "recogniser": recogniser, "stops": stops, "say": "See a doctor.", **words}
    return Alarm.model_validate(given)


def test_of_an_alarm_that_does_not_stop_it_is_told_and_of_one_that_does_it_is_a_hint() -> None:
    beside, stopping = pack(alarm("medical/restless_legs")), pack(alarm("medical/restless_legs", stops=True))
    raised, hint = find_raised(beside, LEGS), find_hint(stopping, LEGS)
    assert raised and raised.basis == "recogniser" and find_hint(beside, LEGS) is None
    assert hint and hint.basis == "recogniser" and find_alarm(stopping, LEGS) is None


def test_it_tells_one_sign_from_another_and_reads_traditional_characters() -> None:
    others = pack(*(alarm(name) for name in names() if name not in ("danger", "medical/restless_legs")))
    assert find_alarm(others, LEGS) is None
    for script in ("一躺下腿里就像有虫子在爬，非得起来走走才行", "一躺下腿裡就像有蟲子在爬，非得起來走走才行"):
        assert find_alarm(pack(alarm("medical/restless_legs")), script), script


def test_words_go_before_what_is_recognised_and_harmless_phrases_are_not_read() -> None:
    both = pack(alarm("medical/restless_legs", patterns={"en": ["calves"]}))
    raised = find_raised(both, LEGS)
    assert raised and raised.basis == "words"
    spared = alarm("medical/restless_legs", unless={"en": ["calves fizz and crawl and I have to get up"]})
    assert find_alarm(pack(spared), LEGS) is None


def test_a_recogniser_that_is_not_there_is_refused_and_the_others_are_named() -> None:
    with pytest.raises(ValidationError, match="medical/cataplexy"):
        alarm("apnoea")


def test_each_kind_has_a_name() -> None:
    assert names() == ("danger", *(f"medical/{kind}" for kind in KINDS["medical"]))
