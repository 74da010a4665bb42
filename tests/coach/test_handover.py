"""The Talker's reply begins with a decision: answer alone, with the Reasoner afterwards, or the Reasoner first."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import pytest
from fake_endpoint import Asked, Behaviour, Calls, FakeEndpoint, Says
from hypothesis import given
from hypothesis import strategies as st
from keys import key_of
from spoken import Silent, said, turn

from mindstream import Coach, FakeModel, Mind, Models, Timeouts
from mindstream.coach.events import Decided
from mindstream.coach.talker import Decision, Handover, Situation
from mindstream.log.events import FollowUp, Logged, Piece, Said, Thought, Waiting
from mindstream.models.model import Model, Part, Request
from mindstream.models.model import Piece as Words
from mindstream.models.rules import Line, Rules

PLAN = (
    '{"thought": "a plan", "plan": [{"title": "Dim the lights", "do": "Dim them at nine", "state": "now"}],'
    ' "offer": "Dim the lights at nine."}'
)
SILENT = '{"thought": "a plan", "plan": [{"title": "Dim the lights", "do": "Dim them at nine", "state": "now"}]}'
LATER = PLAN.replace('"offer"', '"follow_up"')
WISH = "can u make one timetable for me? weekdays only"


def decide(text: str, size: int = 3) -> tuple[str, str]:
    handover, shown = Handover(), ""
    for at in range(0, len(text), size):
        shown += handover.read(text[at : at + size])
        if handover.ended:
            break
    shown += handover.finish()
    return handover.way, shown


@pytest.mark.parametrize("size", [1, 2, 3, 99])
@pytest.mark.parametrize(
    ("reply", "way", "shown"),
    [
        ("[WAIT]", "wait", ""), ("**[wait]**", "wait", ""), ("\n [ Wait ] I will think.", "wait", ""),
        ("【WAIT】", "wait", ""), ("`[WAIT]`.", "wait", ""), ("WAIT", "wait", ""), ("> [WAIT]", "wait", ""),
        ("[ALONE] **Hi** there.", "alone", "**Hi** there."), ("*[alone]*\n\n你好！", "alone", "你好！"),
        ("[ALONE]", "alone", ""),
        ("[THINK] I see.", "think", "I see."), ("I see.", "think", "I see."),
        ("Wait, you sleep at three?", "think", "Wait, you sleep at three?"), ("Alone? ", "think", "Alone? "),
        ("Sure. [WAIT] Let me see.", "think", "Sure. Let me see."), ("Fine. [ALONE] Bye.", "think", "Fine. Bye."),
        ("Sure, let me think. [WAIT]", "wait", "Sure, let me think."),
        ("[waiting room] is full", "think", "[waiting room] is full"), ("a [b](c) d", "think", "a [b](c) d"),
    ],
)  # fmt: skip
def test_decision_marks_are_parsed_in_any_form_and_never_shown(reply: str, way: str, shown: str, size: int) -> None:
    found, words = decide(reply, size)
    assert (found, words.strip()) == (way, shown.strip())


@given(st.text(alphabet="ab [WAIT]ALONE*\n", max_size=40), st.integers(1, 5))
def test_only_decision_marks_are_removed_from_the_text(text: str, size: int) -> None:
    _, shown = decide(text, size)
    assert "[WAIT]" not in shown and "[ALONE]" not in shown
    if "[" not in text and text.strip("* \n") not in ("WAIT", "ALONE"):
        assert "".join(shown.split()) == "".join(text.split()) or not text.strip("* \n")


def test_text_without_a_mark_is_not_delayed() -> None:
    handover = Handover()
    assert [handover.read(piece) for piece in ("Good", " morning", ", Ann")] == ["Good", " morning", ", Ann"]


# In a mind.


def thinking(talks: list[Line], thinks: list[str], talker: Model | None = None) -> Models:
    reasoner = FakeModel({"think": thinks}, name="thinker")
    quiet = {"facts": Rules(), "safety": Rules()}
    return Models(Rules(), {"talker": talker or FakeModel({"talk": talks}), "reasoner": reasoner, **quiet})


async def rows(mind: Mind, kind: str) -> list[Logged]:
    return await mind.memory.store.events(mind.memory.key, kinds=[kind])


@pytest.mark.parametrize("mark", ["[WAIT]", "**[wait]**\n", "[Wait] I'll think."])
async def test_with_wait_a_filler_is_sent_and_the_answer_contains_the_plan(folder: Path, mark: str) -> None:
    models = thinking([mark, "Dim the lights at nine."], [PLAN])
    async with Mind.open(folder, user="ann", model=models, responder=Coach.using()) as mind:
        events = await turn(mind, WISH)
        kinds = [type(row.event) for row in events]
        assert kinds == [kinds[0], Waiting, *[Piece] * 5, Said] and said(events).waited
        assert said(events).text == "Dim the lights at nine."
        await mind.settled()
        assert await rows(mind, "follow_up") == [], "no follow-up after the requested answer"
        texts = [record.text for record in await mind.memory.latest("chat", 9)]
        assert texts == [WISH, "Dim the lights at nine."]
        (decided,) = await rows(mind, "decided")
        assert isinstance(decided.event, Decided) and decided.event.waits and decided.event.gate == "talker"
        assert decided.seq < events[-1].seq, "with the filler"


async def test_the_talker_is_asked_again_with_the_plan_and_the_briefing(folder: Path) -> None:
    talker = FakeModel({"talk": ["[WAIT]", "[WAIT] Dim the lights, at nine."]})
    async with Mind.open(folder, user="ann", model=thinking([], [PLAN], talker), responder=Coach.using()) as mind:
        answer = said(await turn(mind, WISH))
        assert answer.text == "Dim the lights, at nine." and answer.waited, "it does not wait twice"
        _, again = talker.asked
        assert "Dim them at nine" in again.messages[-1].text and "Do not wait again" in again.messages[-1].text
        assert (
            "<briefing>\nhow it stands: a plan\noffer: Dim the lights at nine.\n</briefing>" in again.messages[-1].text
        )


async def test_text_before_the_mark_is_kept_and_the_plan_follows_in_the_same_answer(folder: Path) -> None:
    async with Mind.open(
        folder,
        user="ann",
        model=thinking(["Happy to. [WAIT]", "Dim the lights at nine."], [PLAN]),
        responder=Coach.using(),
    ) as mind:
        answer = said(await turn(mind, WISH))
        assert answer.text == "Happy to.\n\nDim the lights at nine." and answer.waited
        assert len(await rows(mind, "said")) == 1


async def test_small_talk_is_answered_alone_and_cancels_the_reasoner(folder: Path) -> None:
    models = thinking(["[ALONE] You're welcome.", "I see."], ['{"thought": "noise"}'])
    async with Mind.open(folder, user="ann", model=models, responder=Coach.using()) as mind:
        events = await turn(mind, "thanks!")
        assert said(events).text == "You're welcome."
        open_ = [work.slot for work in await mind.memory.store.open_work(key_of("ann"))]
        assert "sleep" not in open_, "the work ended in the commit of the answer"
        await mind.settled()
        await turn(mind, "the noise wakes me")
        await mind.settled()
        about = {
            (row.event.slot, row.event.about) for row in await rows(mind, "thought") if isinstance(row.event, Thought)
        }
        _, second = (row.seq for row in await rows(mind, "heard"))
        assert about == {("sleep", (second,))}


async def test_a_hint_of_danger_always_wakes_the_reasoner(folder: Path) -> None:
    models = thinking(["[ALONE] Bye."], ['{"thought": "a hint"}'])
    async with Mind.open(folder, user="ann", model=models, responder=Coach.using()) as mind:
        await turn(mind, "thanks, bye, everyone would be better off without me")
        await mind.settled()
        assert any(isinstance(row.event, Thought) and row.event.slot == "sleep" for row in await rows(mind, "thought"))


async def test_without_waiting_the_reasoner_runs_after_the_answer(folder: Path) -> None:
    async with Mind.open(folder, user="ann", model=thinking(["I see."], [LATER]), responder=Coach.using()) as mind:
        assert not said(await turn(mind, "I have a cat")).waited
        await mind.settled()
        (row,) = await rows(mind, "follow_up")
        assert isinstance(row.event, FollowUp) and row.event.text == "Dim the lights at nine."


async def test_a_late_reasoner_gives_a_follow_up_and_the_talker_waits_once(folder: Path) -> None:
    class Late:
        name = "late"
        let = asyncio.Event()

        async def reply(self, request: Request) -> AsyncGenerator[Part]:
            await self.let.wait()
            yield Words(PLAN)

    late, talker = Late(), FakeModel({"talk": ["[WAIT]", "I'll come back to it."]})
    models = Models(Rules(), {"talker": talker, "reasoner": late, "facts": Rules(), "safety": Rules()})
    async with Mind.open(
        folder, user="ann", model=models, timeouts=Timeouts(deadline_s=0.05), responder=Coach.using()
    ) as mind:
        answer = said(await turn(mind, WISH))
        assert answer.late and answer.waited and answer.text == "I'll come back to it."
        late.let.set()
        await mind.settled()
        (row,) = await rows(mind, "follow_up")
        assert isinstance(row.event, FollowUp) and row.event.text == "Dim the lights at nine."


async def test_an_answer_interrupted_while_waiting_is_kept_and_processed_once(folder: Path) -> None:
    never = Silent()
    models = Models(
        Rules(), {"talker": FakeModel({"talk": ["Happy to. [WAIT]"]}), "reasoner": never, "safety": Rules()}
    )
    async with Mind.open(folder, user="ann", model=models, responder=Coach.using()) as mind:
        talking = asyncio.ensure_future(turn(mind, WISH))
        await never.asked.wait()
        talking.cancel()
        await asyncio.wait({talking})
    async with Mind.open(folder, user="ann", model=thinking([], [PLAN]), responder=Coach.using()) as mind:
        await mind.settled()
        (kept,) = await rows(mind, "said")
        assert isinstance(kept.event, Said) and kept.event.text == "Happy to."
        thoughts = [row.event for row in await rows(mind, "thought") if isinstance(row.event, Thought)]
        assert [event.slot for event in thoughts].count("sleep") == 1


# With `send`, which returns one answer.


async def test_send_gets_no_follow_up(folder: Path) -> None:
    talker = FakeModel({"talk": ["I see.", "Thanks."]})
    async with Mind.open(
        folder, user="ann", model=thinking([], [LATER, SILENT], talker), responder=Coach.using()
    ) as mind:
        assert await mind.send("I have a cat") == "I see."
        assert "Nothing can be added to this answer later" in talker.asked[0].messages[-1].text
        await mind.settled()
        assert await rows(mind, "follow_up") == []
        await mind.send("thanks")
        assert "<left_unsaid>\nDim the lights at nine.\n</left_unsaid>" in talker.asked[1].messages[-1].text


async def test_the_log_gives_the_reason_why_send_waited(folder: Path) -> None:
    models = thinking([], [SILENT], FakeModel({"talk": ["I see."]}))
    async with Mind.open(folder, user="ann", model=models, responder=Coach.using(gate="belief")) as mind:
        await mind.send("I have a cat")
        (row,) = await rows(mind, "decided")
        assert isinstance(row.event, Decided) and row.event.waits
        assert row.event.why == f"nothing can follow the answer; phase {row.event.phase}"


async def test_an_answer_without_a_thought_does_not_wait_with_send(folder: Path) -> None:
    class Never:
        name = "never"

        def decide(self, _: Situation) -> Decision:
            return Decision(waits=False, thinks=False, why="never")

    models = thinking([], [SILENT], FakeModel({"talk": ["I see."]}))
    async with Mind.open(folder, user="ann", model=models, responder=Coach.using(gate=Never())) as mind:
        await mind.send("I have a cat")
        (row,) = await rows(mind, "decided")
        assert isinstance(row.event, Decided) and not row.event.waits
        assert row.event.why == "never"


# With an endpoint.


@pytest.fixture
def door() -> Iterator[FakeEndpoint]:
    with FakeEndpoint() as open_door:
        yield open_door


def behind(door: FakeEndpoint, talk: Behaviour) -> None:
    """Let the endpoint return this behaviour for the talker, and plans for the reasoner."""

    def answer(asked: Asked) -> Behaviour:
        system = asked.body["messages"][0]["content"]
        if "Begin with a mark where one fits" not in system:
            return Says(PLAN)
        thought = "has thought about this" in asked.body["messages"][-1]["content"]
        return Says("Dim the lights at nine.") if thought else talk

    door.otherwise = answer


async def test_an_endpoint_waits_by_a_mark_in_one_request(folder: Path, door: FakeEndpoint) -> None:
    behind(door, Says("Let me think. [WAIT]"))
    reasoner = FakeModel({"think": [PLAN]}, name="thinker")
    async with Models.named({"default": "rules", "talker": f"{door.url}#m"}) as named:
        models = Models(Rules(), {"talker": named.of("talker"), "reasoner": reasoner, "safety": Rules()})
        async with Mind.open(folder, user="ann", model=models, responder=Coach.using()) as mind:
            answer = said(await turn(mind, WISH))
            assert answer.waited and answer.text.endswith("Dim the lights at nine.")
            assert "wait" not in answer.text.lower()
            assert len(door.chats) == 2, "one call decides, one answers"
            assert "tools" not in door.chats[0].body


@pytest.mark.parametrize(
    "garbage", [Says("[WAIT"), Says("[[[["), Calls((("dance", "{}"),), text="Well."), Says("[ALONE]")]
)
async def test_an_invalid_reply_is_shown_as_text_or_reported(
    folder: Path, door: FakeEndpoint, garbage: Behaviour
) -> None:
    door.otherwise = garbage
    async with (
        Models.named({"default": "rules", "talker": f"{door.url}#m"}, retry=1) as models,
        Mind.open(folder, user="ann", model=models, responder=Coach.using()) as mind,
    ):
        answer = said(await turn(mind, "hello"))
        assert answer.text and not answer.waited


async def test_a_gate_without_marks_omits_them_from_the_prompt(folder: Path) -> None:
    async with Mind.open(folder, user="ann", model=thinking([], []), responder=Coach.using(gate="belief")) as mind:
        talker = Coach.of(mind).talker
        question = await talker.question(await talker.situation("hello"), 1)
        assert "[WAIT]" not in question.messages()[0].text
