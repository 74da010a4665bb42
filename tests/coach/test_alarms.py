"""Alarms in a conversation: a hint leads to one question, plain words stop it, a retraction is believed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from keys import key_of
from spoken import Silent, Waits, said, turn

from mindstream import Coach, FakeModel, Memory, Mind, Models
from mindstream.coach import alarms
from mindstream.coach.alarms import SAID, SuggestsDanger, _end_of
from mindstream.coach.coach import safety_model
from mindstream.coach.events import Alarmed
from mindstream.coach.packs import safety
from mindstream.coach.packs.load import load, phrases
from mindstream.coach.packs.pack import Alarm, Field_, Pack, Phase
from mindstream.log.events import Failed, FollowUp, Said
from mindstream.models.model import Model, Part, Request
from mindstream.models.model import Piece as Words
from mindstream.models.rules import Rules

SLEEP = load("sleep")
(SUICIDE,) = (alarm for alarm in SLEEP.alarms if alarm.id == "suicide")
HINT = {"en": "everyone would be better off without me", "zh": "没有我大家都轻松"}
VEILED = "By the way I sorted the papers"
"""Detected by no pattern; only by the scripted safety classifier."""


def words(part: str, language: str) -> str:
    texts = getattr(SUICIDE, part)
    assert isinstance(texts, dict)
    return str(texts[language])


async def answer(mind: Mind, text: str) -> Said:
    return said(await turn(mind, text))


async def alarm_events(mind: Mind) -> list[tuple[str, str, bool]]:
    rows = [row.event for row in await mind.memory.store.events(mind.memory.key, kinds=["alarmed"])]
    return [(event.strength, event.basis, event.spoken) for event in rows if isinstance(event, Alarmed)]


@pytest.mark.parametrize("sentence", ["I can't sleep", "I can't stop thinking", "it doesn't matter", "我睡不着"])
async def test_complaints_about_tiredness_raise_no_alarm(folder: Path, sentence: str) -> None:
    async with Mind.open(folder, user="ann", responder=Coach.using()) as mind:
        assert (await answer(mind, sentence)).model == "rules" and await alarm_events(mind) == []


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_a_hint_leads_to_a_question_without_quoting_it(folder: Path, language: str) -> None:
    ask = words("hint_ask", language)
    async with Mind.open(folder, user="ann", responder=Coach.using()) as mind:
        first, second = await answer(mind, HINT[language]), await answer(mind, HINT[language] + "!")
        assert first.model == "rules" and first.text.endswith(ask)
        assert first.text.count("?") + first.text.count("？") == 1, "one question"
        assert "without you" not in first.text + second.text
        assert await alarm_events(mind) == [("hint", "words", True)] * 2, "it was not answered, so it is repeated"
        await mind.settled()
        thoughts = [str(row.event) for row in await mind.memory.store.events(key_of("ann"), kinds=["thought"])]
        assert any("a hint at suicide" in thought for thought in thoughts), "the reasoners get the hint"


@pytest.mark.parametrize(
    ("hint", "yes"), [(HINT["en"], "sometimes, yeah"), (HINT["en"], "yes"), (HINT["zh"], "有时候会")]
)
async def test_a_confirmed_hint_stops_the_conversation(folder: Path, hint: str, yes: str) -> None:
    async with Mind.open(folder, user="ann", responder=Coach.using()) as mind:
        await answer(mind, hint)
        heard = await answer(mind, yes)
        assert heard.model == "safety" and heard.text == words("say", "zh" if hint == HINT["zh"] else "en").strip()
        assert (await alarm_events(mind))[-1] == ("sure", "answer", True)


@pytest.mark.parametrize("no", ["no, just tired", "I didn't mean that", "nah I'm ok"])
async def test_a_denied_hint_is_not_asked_about_again(folder: Path, no: str) -> None:
    async with Mind.open(folder, user="ann", responder=Coach.using()) as mind:
        await answer(mind, HINT["en"])
        heard = (await answer(mind, no)).text
        assert heard.startswith("Thank you for saying so; I believe you.") and words("hint_ask", "en") not in heard
        assert (await alarm_events(mind))[-1] == ("taken_back", "answer", True)
        assert words("hint_ask", "en") not in (await answer(mind, "yes, the noise is bad")).text


async def test_a_no_to_another_question_retracts_nothing(folder: Path) -> None:
    async with Mind.open(folder, user="ann", responder=Coach.using()) as mind:
        await answer(mind, "I want to die")
        assert "I believe you" not in (await answer(mind, "no, nobody")).text


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_a_question_about_danger_stays_open_until_it_is_answered(folder: Path, language: str) -> None:
    ask, small = words("hint_ask", language), {"en": "thanks, nice weather today", "zh": "谢谢，今天天气不错"}[language]
    async with Mind.open(folder, user="ann", responder=Coach.using()) as mind:
        await answer(mind, HINT[language])
        heard = [(await answer(mind, small)).text for _ in range(8)]
        put = [ask in text for text in heard]
        assert put[0] and 2 <= sum(put) <= 4, "not with every line"
        again = [text for text in heard if ask in text]
        assert len({text.partition(ask)[0] for text in again}) == len(again), "and with other words"
    async with Mind.open(folder, user="ann", responder=Coach.using()) as mind:
        greeted = await answer(mind, {"en": "hello again", "zh": "你好"}[language])
        assert greeted.text.endswith(ask), "a day later it is asked again"
    async with Mind.open(folder, user="ann", responder=Coach.using()) as mind:
        said_yes = await answer(mind, {"en": "yes, sometimes I do", "zh": "有时候会"}[language])
        assert said_yes.model == "safety" and said_yes.text == words("say", language).strip()
        assert ask not in (await answer(mind, small)).text, "it was answered"


async def test_an_ambiguous_yes_repeats_the_open_question(folder: Path) -> None:
    lines = ["I see.", "Do you drink coffee?", "Which tea?"]
    talker = FakeModel({"talk": [*lines, *["Mm."] * 9]})
    async with Mind.open(
        folder, user="ann", model=Models(Rules(), {"talker": talker}), responder=Coach.using(gate="belief")
    ) as mind:
        for text in (HINT["en"], "it is late"):
            await answer(mind, text)
        await answer(mind, "I drink tea")
        heard = await answer(mind, "yes")
        assert heard.model == "scripted" and heard.text.endswith(words("hint_ask", "en")), (
            "repeated, since it may be the answer"
        )
        assert (await answer(mind, "yes")).model == "safety"


@pytest.mark.parametrize(
    ("danger", "back"), [("I want to die", "that's not what I meant"), ("我想死", "我不是那个意思")], ids=["en", "zh"]
)
async def test_the_crisis_text_and_the_reply_to_a_retraction_are_sent_once(
    folder: Path, danger: str, back: str
) -> None:
    async with Mind.open(folder, user="ann", session="s", responder=Coach.using()) as mind:
        heard = [(await answer(mind, text)).text for text in (danger, back, danger, back, danger)]
    async with Mind.open(folder, user="ann", session="s", responder=Coach.using()) as mind:
        heard.append((await answer(mind, danger)).text)
    assert heard[0] == words("say", "en" if danger[0] == "I" else "zh").strip()
    assert len(set(heard)) >= 5 and heard.count(heard[0]) == 1, "nor after reopening the session"
    assert len(heard[2]) < len(heard[0]) and heard[-1] != heard[-2]
    async with Mind.open(folder, user="ann", session="t", responder=Coach.using()) as mind:
        assert (await answer(mind, danger)).text == heard[0], "a separate session"


@pytest.mark.parametrize(("danger", "back"), [("I want to die", "I didn't mean that"), ("我想死", "我不是那个意思")])
async def test_a_retraction_can_be_repeated_and_is_not_stored_as_a_note(folder: Path, danger: str, back: str) -> None:
    async with Mind.open(folder, user="ann", responder=Coach.using()) as mind:
        heard = [(await answer(mind, text)).text for text in (danger, back, back, HINT["en"])]
        assert len(set(heard)) == len(heard)
        await mind.settled()
        assert await mind.memory.latest("note", 9) == [], "neither danger, nor a hint, nor a retraction"


async def test_a_medical_warning_is_given_once(folder: Path) -> None:
    async with Mind.open(folder, user="ann", responder=Coach.using()) as mind:
        first, second = (
            await answer(mind, "I nodded off driving home"),
            await answer(mind, "I nodded off driving again"),
        )
        assert "at the wheel can kill" in first.text and "at the wheel can kill" not in second.text
        assert first.model == "rules"


class SafetyModel:
    """A model for the role `safety`: it answers yes when released, and classifies answers as scripted."""

    name = "listens"

    def __init__(self, fails: bool = False, reads: str = "E") -> None:
        self.let, self._fails, self.reads = asyncio.Event(), fails, reads

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        await self.let.wait()
        if self._fails:
            raise RuntimeError("the endpoint fell over")
        assert isinstance(request.prompt, SuggestsDanger)
        danger = VEILED in request.prompt.utterance
        yield Words(self.reads if request.prompt.open_question else "yes" if danger else "no")


async def follow_ups(mind: Mind) -> list[FollowUp]:
    rows = await mind.memory.store.events(mind.memory.key, kinds=["follow_up"])
    return [row.event for row in rows if isinstance(row.event, FollowUp)]


async def wait_for_follow_up(mind: Mind) -> str:
    async with asyncio.timeout(100):
        while not (found := await follow_ups(mind)):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return found[-1].text


def models_with_safety(model: Model) -> Models:
    return Models(Rules(), {"safety": model})


async def test_a_late_result_of_the_safety_classifier_follows_the_answer(folder: Path) -> None:
    model = SafetyModel()
    async with Mind.open(folder, user="ann", model=models_with_safety(model), responder=Coach.using()) as mind:
        assert (await answer(mind, VEILED)).model == "rules", "the answer does not wait for it"
        model.let.set()
        assert await wait_for_follow_up(mind) == words("hint_ask", "en") and (await alarm_events(mind))[-1] == (
            "hint",
            "model",
            True,
        )


async def test_a_hint_confirmed_by_the_safety_classifier_is_a_sure_alarm(folder: Path) -> None:
    model = SafetyModel()
    async with Mind.open(folder, user="ann", model=models_with_safety(model), responder=Coach.using()) as mind:
        await answer(mind, f"{HINT['en']}. {VEILED}")
        model.let.set()
        assert await wait_for_follow_up(mind) == words("say", "en").strip() and (await alarm_events(mind))[-1] == (
            "sure",
            "model",
            True,
        )


@pytest.mark.parametrize(("fails", "asks"), [(False, False), (True, True)], ids=["it listens", "it is dead"])
async def test_a_recogniser_alone_leads_to_a_question_only_without_a_model(
    folder: Path, monkeypatch: pytest.MonkeyPatch, fails: bool, asks: bool
) -> None:
    monkeypatch.setattr(safety, "recognises_danger", lambda text: "kestrel" in text)
    listener = SafetyModel(fails=fails)
    listener.let.set()
    async with Mind.open(folder, user="ann", model=models_with_safety(listener), responder=Coach.using()) as mind:
        told = await answer(mind, f"There is a kestrel on the roof, {'again' if fails else 'at last'}.")
        assert (words("hint_ask", "en") in told.text) == asks
        assert bool(await alarm_events(mind)) == asks


async def test_a_question_that_the_classifier_finds_needless_too_late_is_not_repeated_but_its_answer_counts(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(safety, "recognises_danger", lambda text: "kestrel" in text)
    monkeypatch.setattr(alarms, "ANSWER_WAITS_S", 0.01)
    listener, ask = SafetyModel(), words("hint_ask", "en")
    for session in ("one", "two"):
        opened = Mind.open(
            folder, user="ann", session=session, model=models_with_safety(listener), responder=Coach.using()
        )
        async with opened as mind:
            if session == "one":
                assert ask in (await answer(mind, "There is a kestrel on the roof.")).text
                listener.let.set()
                async with asyncio.timeout(100):
                    while len(await alarm_events(mind)) < 2:  # noqa: ASYNC110
                        await asyncio.sleep(0.01)
                assert (await alarm_events(mind))[-1] == ("taken_back", "model", False)
            for text in ("It rains.", "It pours.", "The roof leaks.", "It is dry.", "It is late.", "It is early."):
                assert ask not in (await answer(mind, text)).text
    listener.reads = "A"
    async with Mind.open(folder, user="ann", model=models_with_safety(listener), responder=Coach.using()) as mind:
        assert (await answer(mind, "Jo mei, manchmal scho")).model == "safety"


async def test_a_pattern_after_a_needless_question_counts_like_the_first_hint(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The question is repeated after as many answers as if it had not been asked, and also after a later weak hint."""
    monkeypatch.setattr(safety, "recognises_danger", lambda text: "kestrel" in text)
    monkeypatch.setattr(alarms, "ANSWER_WAITS_S", 0.01)
    listener, ask = SafetyModel(reads="E"), words("hint_ask", "en")
    async with Mind.open(folder, user="ann", model=models_with_safety(listener), responder=Coach.using()) as mind:
        assert ask in (await answer(mind, "There is a kestrel on the roof.")).text
        listener.let.set()
        async with asyncio.timeout(100):
            while len(await alarm_events(mind)) < 2:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        monkeypatch.setattr(alarms, "ANSWER_WAITS_S", 8.0)
        assert ask in (await answer(mind, HINT["en"])).text
        assert ask in (await answer(mind, "It rains.")).text, "as after a first hint in words"
        texts = [(await answer(mind, f"It rains, for the {n}th day.")).text for n in range(9)]
        assert sum(ask in text for text in texts) >= 2, "repeated until there is an answer"


async def test_without_a_pattern_or_an_answer_a_question_is_asked_at_most_twice(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(safety, "recognises_danger", lambda text: "kestrel" in text)
    ask = words("hint_ask", "en")
    async with Mind.open(folder, user="ann", responder=Coach.using()) as mind:
        texts = ["There is a kestrel on the roof.", *(f"It rains, for the {n}th day." for n in range(12))]
        assert sum([ask in (await answer(mind, text)).text for text in texts]) == 2


@pytest.mark.parametrize(
    ("reads", "model", "told"),
    [("A", "safety", ("sure", "answer")), ("B", "rules", ("taken_back", "answer")),
     ("C", "rules", ("taken_back", "answer")), ("E", "rules", ("hint", "words"))],
)  # fmt: skip
async def test_a_model_classifies_the_answer_to_the_open_question_in_any_language(
    folder: Path, reads: str, model: str, told: tuple[str, str]
) -> None:
    listener = SafetyModel(reads=reads)
    listener.let.set()
    async with Mind.open(folder, user="ann", model=models_with_safety(listener), responder=Coach.using()) as mind:
        await answer(mind, HINT["en"])
        assert (await answer(mind, "Jo mei, manchmal scho")).model == model
        assert (await alarm_events(mind))[-1][:2] == told


async def test_a_plain_yes_counts_without_the_safety_classifier(folder: Path) -> None:
    listener = SafetyModel(fails=True)
    listener.let.set()
    async with Mind.open(folder, user="ann", model=models_with_safety(listener), responder=Coach.using()) as mind:
        await answer(mind, HINT["en"])
        assert (await answer(mind, "yes")).model == "safety"


@pytest.mark.parametrize(
    ("text", "reads", "fails", "told"),
    [
        ("yes, and I don't mean it lightly", "A", False, ("sure", "answer")),
        ("no", "", True, ("hint", "words")),
        ("yes, the curtains have come", "E", False, ("hint", "words")),
    ],
    ids=["affirmed in words that might take it back", "denied while it is dead", "a yes to something else"],
)
async def test_patterns_do_not_overrule_the_safety_classifier(
    folder: Path, text: str, reads: str, fails: bool, told: tuple[str, str]
) -> None:
    listener = SafetyModel(fails)
    listener.let.set()
    async with Mind.open(folder, user="ann", model=models_with_safety(listener), responder=Coach.using()) as mind:
        await answer(mind, HINT["en"])
        for between in ("It is raining.", "It rains a lot.")[: 1 if fails else 2]:
            await answer(mind, between)
        listener.reads = reads
        heard = await answer(mind, text)
        assert (await alarm_events(mind))[-1][:2] == told
        assert told[0] == "sure" or words("hint_ask", "en") not in heard.text


async def test_send_includes_a_late_safety_result_in_its_answer(folder: Path) -> None:
    model = SafetyModel()
    async with Mind.open(folder, user="ann", model=models_with_safety(model), responder=Coach.using()) as mind:
        asyncio.get_running_loop().call_later(0.3, model.let.set)
        assert (await mind.send(VEILED)).endswith(words("hint_ask", "en"))
        await asyncio.sleep(0.05)
        assert await follow_ups(mind) == []


def test_the_safety_model_defaults_to_any_model() -> None:
    one, other = FakeModel({}, name="one"), FakeModel({}, name="other")
    assert safety_model(Models(one)) is one and safety_model(Models(Rules())) is None
    assert safety_model(Models(one, {"facts": other})) is other
    assert safety_model(Models(one, {"safety": Rules()})) is None


async def test_a_safety_result_during_waiting_ends_the_answer(folder: Path) -> None:
    model = SafetyModel()
    model.let.set()
    models = Models(Rules(), {"safety": model, "reasoner": Silent()})
    async with (
        Mind.open(folder, user="ann", model=models, responder=Coach.using(gate=Waits())) as mind,
        asyncio.timeout(100),
    ):
        heard = await answer(mind, VEILED)
        assert heard.text.endswith(words("hint_ask", "en")) and heard.waited
        await asyncio.sleep(0.05)
        assert await follow_ups(mind) == [], "not reported twice"


async def test_a_failing_safety_classifier_is_only_logged(folder: Path) -> None:
    model = SafetyModel(fails=True)
    model.let.set()
    async with Mind.open(folder, user="ann", model=models_with_safety(model), responder=Coach.using()) as mind:
        assert (await answer(mind, VEILED)).model == "rules"
        async with asyncio.timeout(100):
            while not (failed := await mind.memory.store.events(key_of("ann"), kinds=["error"])):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert isinstance(failed[0].event, Failed) and await follow_ups(mind) == []


async def test_a_silent_safety_classifier_is_named_with_a_way_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alarms, "CLASSIFY_S", 0.01)
    model = SafetyModel()
    async with Mind.open(folder, user="ann", model=models_with_safety(model), responder=Coach.using()) as mind:
        await answer(mind, VEILED)
        async with asyncio.timeout(100):
            while not (failed := await mind.memory.store.events(key_of("ann"), kinds=["error"])):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert (
            isinstance(told := failed[0].event, Failed) and "--patience S" in told.text and "Overdue" not in told.text
        )
        assert told.text.startswith(f"{model.name} gave no result of the safety check within 0.01 seconds.")


async def test_after_an_alarm_rules_do_not_change_the_topic(folder: Path) -> None:
    async with Mind.open(folder, user="ann", responder=Coach.using()) as mind:
        for text in ("Noise wakes me.", "I want to kill myself", "no, nobody is here", "ok"):
            said = await mind.send(text)
            await mind.settled()
        assert not Coach.of(mind).plan.steps and "step" not in said.lower() and "noise" not in said.lower()


def guitar(**declared: Any) -> Pack:
    """Return a pack with an alarm that stops the conversation; it is a danger to life only if declared so."""
    alarm = Alarm(id="hand", patterns={"en": ["numb fingers"]}, hints={"en": ["fingers tingle"]}, hint_ask="Numb?",
                  say="Put the guitar down for today.", **declared)  # fmt: skip
    asking = Phase(name="asking", goal="know", instructions="ask", thinking="think", fields=("aims",), needs=("aims",))
    fields = {"aims": Field_(about="what they aim at", type="list", ask=["What would you like to play?"])}
    return Pack(
        name="guitar", title="Guitar coach", constitution="Music.", phases=(asking,), fields=fields, alarms=(alarm,)
    )


@pytest.mark.parametrize(("declared", "is_heavy"), [({}, False), ({"danger": True}, True), ({"stops": False}, False)])
@pytest.mark.parametrize("before", ["I have numb fingers.", "My fingers tingle."])
async def test_canned_answers_follow_only_declared_dangers(
    declared: dict[str, Any], is_heavy: bool, before: str, folder: Path
) -> None:
    heavy = phrases(guitar(), "alarm_heard", "en")
    async with Mind.open(folder, user="ann", responder=Coach.using(pack=guitar(**declared))) as mind:
        texts = [(await answer(mind, text)).text for text in (before, "I play scales every day.")]
        heard = any(text.startswith(tuple(heavy)) for text in texts)
        assert heard is (is_heavy and before.startswith("I have")), (
            "the question about a hint is in the pack's own words"
        )


async def test_an_open_question_is_repeated_after_many_alarms(folder: Path) -> None:
    early = Alarmed(session="s", answers=1, alarm="other", strength="hint", basis="words", spoken=False)
    asked = early.model_copy(update={"alarm": "suicide", "spoken": True})
    async with Memory.open(folder, "ann") as stream:
        await stream.commit(*[early] * 1_001, asked)
    async with Mind.open(folder, user="ann", responder=Coach.using()) as mind:
        again = await answer(mind, "I lie awake at night.")
        (newest,) = await mind.memory.store.events(key_of("ann"), 1_002, ["alarmed"])
        assert isinstance(newest.event, Alarmed) and newest.event.alarm == "suicide" and newest.event.spoken
        assert again.text.count("?") == 1


def test_the_end_of_an_answer_begins_with_a_whole_word() -> None:
    text = " ".join(f"word{number}" for number in range(100))
    end = _end_of(text)
    assert end.startswith("… word") and text.endswith(end.removeprefix("… ")) and len(end) <= SAID + 2
    assert set(end.removeprefix("… ").split()) <= set(text.split())
    assert _end_of("short") == "short"
    chinese = "你一般几点上床几点起床" * 40
    assert _end_of(chinese) == f"… {chinese[-SAID:]}"
