"""A step of the library keeps its caution when a model rewrites it, and is not told without it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mindstream import Mind, Models
from mindstream.coach.belief.cautions import keep_cautions, say_cautions
from mindstream.coach.belief.library import steps_in
from mindstream.coach.belief.plan import Plan, PlanStep, StepEdit
from mindstream.coach.packs import load as packs
from mindstream.coach.packs.load import load
from mindstream.coach.packs.pack import Pack, in_language
from mindstream.log.events import FollowUp, Said
from mindstream.models.model import Call
from mindstream.models.rules import Rules
from mindstream.models.scripted import Line, Scripted

NOT_YET = "Not in the first six weeks after an operation. Never lift more than 5 kg at a time."
MOVING = Pack.model_validate(
    {
        "name": "moving", "title": "Back coach", "languages": ["en", "zh"], "constitution": "Backs.",
        "phases": [{"name": "planning", "goal": "One step.", "instructions": "-", "thinking": "-", "fields": ["aches"],
                    "plans": True, "waits": True}],
        "fields": {"aches": {"about": "Where it aches.", "type": "list"}},
        "topics": [{"id": "stiff", "name": "a stiff back", "cues": ["stiff"], "field": "aches"}],
        "steps": [
            {"id": "bridge", "title": {"en": "Shoulder bridge", "zh": "臀桥"}, "evidence": "moderate", "why": "Force.",
             "do": {"en": "Lie on your back, knees bent, and slowly raise the hips ten times.",
                    "zh": "仰卧屈膝，慢慢把臀部抬起十次。"},
             "topics": ["stiff"], "caution": {"en": NOT_YET, "zh": "手术后六周内不要做。"}},
            {"id": "stroll", "title": "Stroll", "do": "Walk round the block after lunch.", "why": "It loosens.",
             "evidence": "comfort", "topics": ["stiff"]},
        ],
    }
)  # fmt: skip
PACKS = [load("sleep"), load("tutor"), load(Path(packs.__file__).parent / "_new"), MOVING]


def rewritten(text: str) -> str:
    """Return a text as somebody retells it: a good half of it, from the end."""
    parts = text.split() if text.isascii() else list(text)
    return ("" if len(parts) > len(text) / 2 else " ").join(parts[-(len(parts) * 3 // 5) :])


@pytest.mark.parametrize("pack", PACKS, ids=lambda pack: pack.name)
@pytest.mark.parametrize("by_id", [True, False])
def test_every_step_of_a_library_keeps_its_caution(pack: Pack, by_id: bool) -> None:
    for language in pack.languages:
        for step in pack.steps:
            do, caution = rewritten(in_language(step.do, language)), in_language(step.caution, language)
            edit = StepEdit(title="For tonight", do="x" if by_id else do, source=step.id if by_id else "made_up")
            (held,) = keep_cautions(pack, Plan(), Plan().edit([edit])).steps
            assert not caution or any(each in held.caution for each in (caution, in_language(step.caution, "en")))
            if not by_id and held.source not in ("", step.id):
                assert not caution, "it was taken for another"


def test_what_a_model_adds_stays_and_what_it_turns_round_does_not_stand_alone() -> None:
    edit = StepEdit(
        title="Bridge", source="bridge", caution="Fine after an operation. Mind your bad knee.", state="now"
    )
    plan = keep_cautions(MOVING, Plan(), Plan().edit([edit]))
    assert plan.steps[0].caution == f"{NOT_YET} {edit.caution}"
    assert keep_cautions(MOVING, plan, plan) == plan, "it is joined once"
    shorter = plan.edit([StepEdit(title="Bridge", do="Five times.", caution="None.")])
    assert NOT_YET in keep_cautions(MOVING, plan, shorter).steps[0].caution


def test_a_step_of_ones_own_gets_no_caution() -> None:
    for do in ("Feed the birds on the balcony.", "Call the bank about the loan.", "给花浇水，然后擦窗户。"):
        for pack in PACKS:
            (step,) = keep_cautions(pack, Plan(), Plan().edit([StepEdit(title="Own", do=do)])).steps
            assert (step.caution, step.source) == ("", "")


def test_what_a_search_gave_is_known_again_in_few_words() -> None:
    sleep, edit = PACKS[0], StepEdit(title="Supper", do="Eat three hours before bed, something light.")
    given = {step["id"] for step in steps_in(sleep, "heavy dinner late", "en", 4, set(), ())}
    (step,) = keep_cautions(sleep, Plan(), Plan().edit([edit]), given).steps
    assert "diabetes" in step.caution
    (step,) = keep_cautions(sleep, Plan(), Plan().edit([edit])).steps
    assert "diabetes" not in step.caution, "too few words to be known by alone"


BRIDGE = PlanStep(title="Bridge", do="Lie down and raise the hips ten times.", source="bridge", state="now")


@pytest.mark.parametrize(
    ("words", "said", "missing"),
    [
        ("Bridge: raise the hips ten times.", "", NOT_YET),
        ("Bridge: raise the hips. Not in the first weeks after an operation, and never lift more than 5 kg.", "", ""),
        ("Bridge: raise the hips. Not in the first weeks after an operation.", "", "Never lift more than 5 kg"),
        ("Bridge: raise the hips. No more than 8 kg. Not in the first six weeks after an operation.", "", "5 kg"),
        ("Again the bridge: raise the hips.", f"Please note: {NOT_YET}", ""),
        ("Good that you asked.", "", ""),
    ],
)
def test_only_what_was_not_said_of_it_is_added(words: str, said: str, missing: str) -> None:
    told = say_cautions(MOVING, Plan(steps=[BRIDGE]), words, [said], "en")
    assert told.startswith(words) and (missing in told if missing else told == words)
    assert say_cautions(MOVING, Plan(steps=[BRIDGE]).mark_as_told(), words, [], "en") == words


def thought(**more: object) -> str:
    return json.dumps({"thought": "a step", "changed": "new", **more})


@pytest.mark.parametrize("waits", [True, False])
async def test_the_user_is_told_whatever_the_model_writes(folder: Path, waits: bool) -> None:
    pack = MOVING.model_copy(update={"phases": (MOVING.phases[0].model_copy(update={"waits": waits}),)})
    words = {"words" if waits else "follow_up": "Lie down and raise your hips ten times tonight."}
    step = {"title": "Hips up", "do": "Lie on your back and raise the hips ten times.", "state": "now"}
    lines: list[Line] = [[Call("find_steps", '{"query": "stiff back"}')], thought(plan=[step], **words)]
    reasoner = Scripted({"infer_phase": ['{"phase": "planning"}'], "think_in_phase": lines})
    models = Models(Rules(), {"reasoner": reasoner, "talker": Scripted({"talk": ["I see."]})})
    async with Mind.open(folder, user="ann", pack=pack, models=models, gate="belief") as mind:
        await mind.say("My back is stiff, what shall I do?")
        await mind.settled()
        (now,) = mind.plan.steps
        events = [row.event for row in await mind.stream.store.events("ann")]
    assert (now.caution, now.source, now.told) == (NOT_YET, "bridge", True)
    assert NOT_YET in [event.text for event in events if isinstance(event, Said | FollowUp)][-1]
