"""The results of one reasoner run: belief and notes, a plan with outcomes, a briefing; the local time if known."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest

from mindstream import Coach, FakeModel, Mind, Models
from mindstream.clock import ManualClock
from mindstream.coach.belief.plan import CoachingPlan, PlanStep, StepEdit
from mindstream.errors import InputError
from mindstream.log.events import Thought
from mindstream.memory.store.sqlite import SqliteStore
from mindstream.memory.store.store import read_log
from mindstream.models.model import Call, Part, Request
from mindstream.models.rules import Rules
from mindstream.reasoners import background


def models(talks: list[str], *thinks: dict[str, Any]) -> tuple[Models, FakeModel, FakeModel]:
    talker = FakeModel({"talk": talks})
    reasoner = FakeModel({"think": [json.dumps({"thought": "so"} | each) for each in thinks]})
    return Models(Rules(), {"talker": talker, "reasoner": reasoner, "safety": Rules()}), talker, reasoner


async def said(mind: Mind, text: str) -> str:
    answer = await mind.send(text)
    await mind.settled()
    return answer


async def test_the_briefing_is_in_the_next_talker_and_reasoner_prompts(folder: Path) -> None:
    first = {"ask": "When do you get up?", "offer": "Keep one rising time.", "care": "No naps: they refused them."}
    named, talker, reasoner = models(["Mm.", "Right.", "[WAIT]", "Fine.", "Yes."], first, {"thought": "nothing new"})
    async with Mind.open(folder, user="ann", model=named, responder=Coach.using()) as mind:
        await said(mind, "I lie awake.")
        await said(mind, "Still awake.")
        shown, lines = talker.asked[1].messages[-1].text, [f"{name}: {text}" for name, text in first.items()]
        assert "\n".join(["<briefing>", "how it stands: so", *lines, "</briefing>"]) in shown
        await said(mind, "And now?")
        assert first["ask"] in reasoner.asked[1].messages[-1].text, "both reasoners see the open question"
        await said(mind, "Well.")
        assert first["offer"] not in talker.asked[4].messages[-1].text, "a later result without an offer removes it"


async def test_a_phase_change_runs_the_new_mini_reasoner_once_while_the_talker_waits(folder: Path) -> None:
    first = {
        "phase": "planning",
        "offer": "Get up at seven.",
        "patch": {"goals": ["sleep through"]},
        "rests_on": "plan",
    }
    named, _, reasoner = models(["[WAIT]", "Mm."], first, {"plan": [{"title": "Up at seven", "state": "now"}]})
    async with Mind.open(folder, user="ann", model=named, responder=Coach.using()) as mind:
        await said(mind, "Make me a plan.")
        again = reasoner.asked[1]
        assert len(reasoner.asked) == 2 and "It is planning now" in again.messages[0].text
        assert "Get up at seven." in again.messages[-1].text and "sleep through" in again.messages[-1].text
        coach = Coach.of(mind)
        assert coach.belief.value.phase == "planning" and coach.belief.value.goals == ["sleep through"]
        assert coach.plan.now and coach.plan.now.title == "Up at seven"
    named, _, reasoner = models(["Mm."], first)
    async with Mind.open(folder, user="bob", model=named, responder=Coach.using()) as mind:
        await said(mind, "I would like to sleep better.")
        assert len(reasoner.asked) == 1, "the user has been answered; the next run works in the new phase"


async def test_plans_and_reports_before_a_phase_change_are_kept(folder: Path) -> None:
    steps = [{"title": "Up at seven", "state": "now", "report": "did it twice", "did": True}]
    named, _, _ = models(["Mm."], {"phase": "planning", "plan": steps, "changed": "begun"}, {"offer": "Well done."})
    async with Mind.open(folder, user="ann", model=named, responder=Coach.using()) as mind:
        await said(mind, "I got up at seven twice. What next?")
        now = Coach.of(mind).plan.now
        assert now and now.title == "Up at seven" and now.reports == ["did it twice"]
        assert [each.text for each in await mind.memory.latest("feedback", 2)] == ["Up at seven: did it twice"]


async def test_a_belief_item_is_a_note_until_it_is_removed(folder: Path) -> None:
    heard = ["I drink coffee at nine.", "No, tea, and I get up at six.", "The weather is fine."]
    thinks = [
        {"patch": {"habits": ["coffee at nine"]}, "rests_on": "coffee at nine"},
        {
            "patch": {"habits": {"add": ["tea"], "remove": ["coffee at nine"]}, "schedule": "up at six"},
            "rests_on": "tea",
        },
        {},
    ]
    named, _, _ = models(["Mm."] * 3, *thinks)
    async with Mind.open(folder, user="ann", model=named, responder=Coach.using(gate="belief")) as mind:
        for text in heard:
            await said(mind, text)
        notes = await mind.memory.latest("note", 9)
        assert [note.text for note in notes] == ["habits: tea", "schedule: up at six"]
        written = (await mind.memory.store.changes(mind.memory.key, 0)).records
        (first,) = (record for record in written if record.text == "habits: coffee at nine")
        assert first.valid_until and first.superseded_by == notes[0].id
        (utterance,) = notes[0].evidence
        found = await mind.memory.get(utterance)
        assert found and found.text == heard[1]


async def test_an_outcome_is_a_record_and_shown_with_its_step_in_later_prompts(folder: Path) -> None:
    step = {"title": "Mask", "state": "now", "do": "Wear it.", "caution": "Not with sore eyes.", "told": True}
    told = [{"title": "Mask", "report": "it slipped off", "did": True, "caution": ""}]
    named, talker, reasoner = models(["Mm."] * 3, {"plan": [step]}, {"plan": told}, {})
    async with Mind.open(folder, user="ann", model=named, responder=Coach.using(gate="belief")) as mind:
        for text in ("It is bright.", "I wore it, it slipped off.", "Hm."):
            await said(mind, text)
        (report,) = await mind.memory.latest("feedback", 3)
        assert report.text == "Mask: it slipped off" and report.data["did"] is True
        for prompt in (talker.asked[2], reasoner.asked[2]):
            shown = prompt.messages[-1].text
            assert "How it went: it slipped off" in shown and "sore eyes" not in shown, "a caution can be removed"


async def test_without_waiting_several_short_utterances_are_processed_together(folder: Path) -> None:
    answers = ["Mm.", "Right.", "[ALONE] Hi.", "Fine.", "[WAIT]", "So.", "Yes."]
    named, _, reasoner = models(answers, *[{}] * 4)
    async with Mind.open(folder, user="ann", model=named, responder=Coach.using()) as mind:
        for text in ("I lie awake.", "Since May.", "My cat is old.", "I get up at six.", "A plan, please.", "Good."):
            await said(mind, text)
        lines = ["user: Since May.", "coach: Right.", "user: My cat is old.", "coach: Hi."]
        lines += ["user: I get up at six.", "coach: Fine.", "user: A plan, please."]
        assert newest_in(reasoner) == ["user: I lie awake.\ncoach: Mm.", "\n".join(lines)], "in their order"
        mind.reasoners.resume()
        await mind.settled()
    assert newest_in(reasoner)[2:] == ["user: Good.\ncoach: Yes."], "the rest is processed at a pause or the end"


@pytest.mark.parametrize(("text", "runs"), [("Since May.", 2), (f"Since May, {'and then ' * 20}since June.", 3)])
async def test_at_most_three_utterances_are_left_and_fewer_of_long_ones(folder: Path, text: str, runs: int) -> None:
    named, _, reasoner = models(["Mm."] * 5, *[{}] * 5)
    async with Mind.open(folder, user="ann", model=named, responder=Coach.using()) as mind:
        for _ in range(5):
            await said(mind, text)
    assert len(reasoner.asked) == runs


async def test_utterances_are_left_while_an_answer_is_in_progress(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow model is no pause of the conversation."""
    monkeypatch.setattr(background, "PAUSE_S", 0.2)
    named, talker, reasoner = models(["Mm.", "Right.", "Fine."], *[{}] * 3)

    class Slow:
        name = "slow"

        async def reply(self, request: Request) -> AsyncGenerator[Part]:
            await asyncio.sleep(0.5 if len(talker.asked) == 2 else 0.0)
            async for part in talker.reply(request):
                yield part

    named = Models(Rules(), {"talker": Slow(), "reasoner": reasoner, "safety": Rules()})
    async with Mind.open(folder, user="ann", model=named, responder=Coach.using()) as mind:
        for text in ("I lie awake.", "Since May.", "I get up at six."):
            await mind.send(text)
            assert len(reasoner.asked) <= 1
        await asyncio.sleep(0.5)
        await mind.settled()
    assert newest_in(reasoner)[1:] == ["user: Since May.\ncoach: Right.\nuser: I get up at six.\ncoach: Fine."]


async def test_no_other_process_takes_an_utterance_that_is_left_for_the_next_run(folder: Path) -> None:
    named, _, reasoner = models(["Mm.", "Right.", "Fine.", "[WAIT]", "Yes."], *[{}] * 3)
    async with Mind.open(folder, user="ann", model=named, responder=Coach.using()) as mind:
        store, lease_s = mind.memory.store, mind.timeouts.lease_s
        assert isinstance(store, SqliteStore)
        for text in ("I lie awake.", "Since May.", "I get up at six."):
            await said(mind, text)
        now = mind.memory.clock.now()
        left = await mind.reasoners.work()
        assert len(left) == 2 and len(reasoner.asked) == 1
        assert not await store.open_to_anybody(now + 2 * lease_s, answers=False)
        assert len(await store.open_to_anybody(now + background.PAUSE_S + 2 * lease_s, answers=False)) == 2
        async with (
            Mind.open(store, user="ann", model=named, responder=Coach.using()) as other,
            asyncio.timeout(lease_s / 2),
        ):
            await said(other, "In another conversation.")
            assert len(reasoner.asked) == 2, "it does not wait for what the first one has left"
        mind.reasoners.resume()
        await mind.settled()
    assert len(reasoner.asked) == 3


def newest_in(reasoner: FakeModel) -> list[str]:
    """Return the newest lines of each of the reasoner's prompts."""
    shown = [prompt.messages[-1].text.partition("<newest_lines>\n")[2] for prompt in reasoner.asked]
    return [text.partition("\n</newest_lines>")[0] for text in shown]


async def test_the_last_utterance_of_a_conversation_is_processed_in_the_next_one(folder: Path) -> None:
    named, _, reasoner = models(["Mm.", "Right."], *[{}] * 3)
    async with Mind.open(folder, user="ann", model=named, responder=Coach.using()) as mind:
        for text in ("There is a noise.", "It is the neighbour's dog."):
            await said(mind, text)
    assert newest_in(reasoner) == ["user: There is a noise.\ncoach: Mm."]
    async with Mind.open(folder, user="ann", model=named, responder=Coach.using()) as mind:
        await mind.settled()
    assert newest_in(reasoner)[1:] == ["user: It is the neighbour's dog.\ncoach: Right."]


async def test_what_a_conversation_has_left_is_read_in_order_with_the_next_one(folder: Path) -> None:
    clock = ManualClock()
    named, _, reasoner = models(["Mm.", "Right.", "Fine.", "Hello."], *[{}] * 2)
    async with Mind.open(folder, user="ann", session="1", model=named, clock=clock, responder=Coach.using()) as mind:
        for text in ("There is a noise.", "It is the neighbour's dog.", "It barks at six."):
            await said(mind, text)
    clock.advance(86_400)
    async with Mind.open(folder, user="ann", session="2", model=named, clock=clock, responder=Coach.using()) as mind:
        await said(mind, "I talked to him.")
    left = ["a day ago user: It is the neighbour's dog.", "a day ago coach: Right.", "a day ago user: It barks at six."]
    today = ["a day ago coach: Fine.", "user: (the next day) I talked to him.", "coach: Hello."]
    assert newest_in(reasoner)[1:] == ["\n".join([*left, *today])]


async def test_an_utterance_during_a_run_reaches_that_run(folder: Path) -> None:
    named, _, reasoner = models(["Mm.", "Right."], {}, {})
    going, newer = asyncio.Event(), asyncio.Event()

    class Slow:
        """Call a tool; its result comes after the second utterance."""

        name = "slow"

        async def reply(self, request: Request) -> AsyncGenerator[Part]:
            if not going.is_set():
                going.set()
                await newer.wait()
                yield Call("recall", '{"query": "noise"}', "1")
                return
            async for part in reasoner.reply(request):
                yield part

    named = Models(Rules(), {"talker": named.of("talker"), "reasoner": Slow(), "safety": Rules()})
    async with Mind.open(folder, user="ann", model=named, responder=Coach.using()) as mind:
        await mind.send("There is a noise.")
        await going.wait()
        await mind.send("It is the neighbour's dog.")
        newer.set()
        await mind.settled()
        rows = [row.event async for row in read_log(mind.memory.store, mind.memory.key, kinds=["thought"])]
    thoughts = [event for event in rows if isinstance(event, Thought)]
    assert len(thoughts) == 1 and len(thoughts[0].about) == 2
    assert "neighbour's dog" in str(reasoner.asked[0].messages)


async def test_a_question_is_in_briefings_twice_at_most(folder: Path) -> None:
    asks = {"ask": "When do you get up?", "ask_about": "rising time"}
    again = {"ask": "And in the morning, when does your day begin?", "ask_about": "Rising time"}
    named, talker, reasoner = models(["[WAIT]", "So."] * 6, asks, {}, again, {}, again, {})
    async with Mind.open(folder, user="ann", model=named, responder=Coach.using()) as mind:
        for number in range(6):
            await said(mind, f"line {number}")
    answered = [prompt.messages[-1].text for prompt in talker.asked[1::2]]
    assert [("ask: " in text) for text in answered] == [True, False, True, False, False, False]
    shown = [prompt.messages[-1].text.partition("<asked_before>")[2].partition("</")[0] for prompt in reasoner.asked]
    assert "rising time" in shown[1] and "twice" not in shown[1] and "rising time (twice: not again)" in shown[5]


async def test_the_reasoner_sees_what_the_coach_itself_has_asked(folder: Path) -> None:
    answers = ["Hello. When do you get up?", "I see.", "Fine. 你几点睡？", "Good.", "[WAIT]", "So."]
    named, _, reasoner = models(answers, {}, {"ask": "Do you nap?", "ask_about": "naps"}, {})
    async with Mind.open(folder, user="ann", model=named, responder=Coach.using()) as mind:
        for text in ("I lie awake.", f"At night. {'Every night. ' * 30}", "Hm.", "Yes.", "A plan, please."):
            await said(mind, text)
    shown = reasoner.asked[2].messages[-1].text
    asked = shown.partition("<asked_before>\n")[2].partition("\n</asked_before>")[0]
    assert asked == "naps\ncoach: When do you get up?", "what the lines shown contain is not repeated"
    assert "你几点睡？" in shown


async def test_refusals_are_shown_whole_and_other_lists_by_their_newest_items(folder: Path) -> None:
    no = ["no doctor", "no pills", "no alarm", "no naps", "no earplugs", "no app"]
    patch = {"preferences": no, "habits": [f"coffee at {n}" for n in range(9, 15)]}
    named, talker, _ = models(["Mm.", "Right."], {"patch": patch, "rests_on": "no doctor please"})
    async with Mind.open(folder, user="ann", model=named, responder=Coach.using()) as mind:
        await said(mind, "no doctor please")
        await said(mind, "And now?")
    shown = talker.asked[1].messages[-1].text
    assert "preferences: " + "; ".join(no) in shown and "coffee at 14" in shown and "coffee at 9" not in shown


async def test_an_old_briefing_is_shown_with_its_age_and_without_its_question(folder: Path) -> None:
    found = {"thought": "They lie awake.", "ask": "When do you get up?", "ask_about": "rising"}
    named, talker, _ = models(["Mm."] * 4, found)
    async with Mind.open(folder, user="ann", model=named, responder=Coach.using()) as mind:
        for text in ("I lie awake.", "Since May.", "At six.", "Hm."):
            await said(mind, text)
    shown = [prompt.messages[-1].text for prompt in talker.asked[1:]]
    assert all("They lie awake." in text for text in shown)
    assert [("When do you get up?" in text) for text in shown] == [True, False, False]
    named, talker, _ = models(["Mm."])
    async with Mind.open(folder, user="ann", session="next", model=named, responder=Coach.using()) as mind:
        await said(mind, "Me again.")
    shown.append(talker.asked[0].messages[-1].text)
    ages = [text.partition("(The briefing is ")[2].partition(" message")[0] for text in shown]
    assert ages[:3] == ["", "1", "2"] and ages[3] in ("", "3"), "in a later conversation, too"


async def test_how_a_finished_step_went_stays_in_the_prompts(folder: Path) -> None:
    step = {
        "title": "Mask",
        "state": "dropped",
        "do": "Wear it.",
        "told": True,
        "report": "it slipped off",
        "did": True,
    }
    named, talker, reasoner = models(["Mm.", "[WAIT]", "Right."], {"plan": [step]}, {})
    async with Mind.open(folder, user="ann", model=named, responder=Coach.using()) as mind:
        await said(mind, "I wore the mask, it slipped off. No more of that.")
        await said(mind, "What now?")
    for prompt in (talker.asked[-1], reasoner.asked[-1]):
        assert "- Mask (dropped): it slipped off" in prompt.messages[-1].text


async def test_the_library_is_offered_where_plans_are_made_and_while_the_talker_waits(folder: Path) -> None:
    named, _, reasoner = models(["Mm.", "[WAIT]", "Right.", "Yes."], {}, {"phase": "planning"}, {}, {})
    async with Mind.open(folder, user="ann", model=named, responder=Coach.using()) as mind:
        for text in ("I lie awake.", "Something to read?"):
            await said(mind, text)
    offered = [{tool.name for tool in prompt.tools} for prompt in reasoner.asked]
    assert offered[0] == {"recall"} and all("find_resources" in names for names in offered[1:])


async def test_a_talker_that_waits_again_answers_from_the_briefing(folder: Path) -> None:
    named, _, _ = models(["[WAIT]", "[WAIT]"], {"offer": "Get up at seven every day."})
    async with Mind.open(folder, user="ann", model=named, responder=Coach.using()) as mind:
        assert await said(mind, "Where do I start?") == "Get up at seven every day."


async def test_a_stated_home_gives_the_local_time(folder: Path) -> None:
    clock = ManualClock(1_700_000_000.0)
    lives = {"patch": {"time_zone": "Asia/Tokyo"}, "rests_on": "I live in Osaka"}
    named, talker, _ = models(["Mm.", "Right."], {"patch": {"time_zone": "Mars"}, "rests_on": "Osaka"}, lives)
    async with Mind.open(folder, user="ann", model=named, clock=clock, responder=Coach.using()) as mind:
        await said(mind, "I live in Osaka and lie awake.")
        await said(mind, "Hm.")
        assert "Wednesday 15 November 2023, 07:13" in talker.asked[1].messages[-1].text


def test_a_prediction_is_not_changed_after_the_step_is_given() -> None:
    plan = CoachingPlan(steps=[PlanStep(title="Mask")]).edit([StepEdit(title="Mask", likely=0.3, told=True)])
    assert plan.edit([StepEdit(title="Mask", likely=0.9, did=True)]).steps[0].likely == 0.3


async def test_the_local_time_is_shown_only_with_a_known_time_zone(folder: Path) -> None:
    clock = ManualClock(1_700_000_000.0)  # Tuesday, 22:13 UTC
    for user, zone, shown in (("ann", None, ""), ("bob", UTC, "Tuesday"), ("cho", "Asia/Shanghai", "Wednesday")):
        named, talker, reasoner = models(["Mm."], {})
        async with Mind.open(folder, user=user, model=named, clock=clock, responder=Coach.using(timezone=zone)) as mind:
            await said(mind, "I lie awake.")
        told = talker.asked[0].messages[-1].text + reasoner.asked[0].messages[-1].text
        assert ("Now:" in told) == bool(shown) and shown in told
    with pytest.raises(InputError, match="no time zone 'Mars'"):
        Coach.using(timezone="Mars")


async def test_misplaced_patch_fields_are_moved_and_only_the_last_current_step_stays(folder: Path) -> None:
    nested = {"patch": {"goals": ["sleep"], "rests_on": "I want to sleep", "phase": "goal_setting"}}
    steps = [{"title": "Mask", "state": "now"}, {"title": "Walk", "state": "now"}]
    named, _, reasoner = models(["Mm."], nested | {"plan": steps})
    async with Mind.open(folder, user="ann", model=named, responder=Coach.using()) as mind:
        await said(mind, "I want to sleep.")
        coach = Coach.of(mind)
        assert coach.belief.value.goals == ["sleep"] and coach.belief.value.phase == "goal_setting"
        assert [(step.title, step.state) for step in coach.plan.steps] == [("Mask", "later"), ("Walk", "now")]
    assert len(reasoner.asked) == 1, "nothing is sent back to the model"
