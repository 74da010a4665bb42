"""With rules, what is put right or to be forgotten changes notes, belief and, where it rested on it, the plan."""

from __future__ import annotations

from pathlib import Path

from mindstream import Mind
from mindstream.coach.belief.plan import Plan
from mindstream.coach.coach import coach_of


async def after(folder: Path, *lines: str) -> tuple[list[str], dict[str, object], Plan, str]:
    """Talk; return the notes, the belief, the plan, and the last answer."""
    async with Mind.open(folder, user="ann", gate="belief") as mind:
        for line in lines:
            said = [row.event async for row in mind.hear(line)]
            await mind.settled()
        notes = [note.text for note in await mind.stream.latest("note", 100)]
        coach = coach_of(mind)
        return notes, coach.belief.value.model_dump(exclude_defaults=True), coach.plan, getattr(said[-1], "text", "")


async def test_a_corrected_number_stands_in_the_notes_alone(folder: Path) -> None:
    notes, _, _, answer = await after(folder, "I smoke nine cigarettes a day.", "No, six, not nine.")
    assert notes == ["“I smoke six cigarettes a day”"] and "six cigarettes" in answer


async def test_whoever_it_was_instead_is_believed_instead(folder: Path) -> None:
    _, belief, _, _ = await after(folder, "The dog wakes me at night.", "That's wrong, it's the baby who wakes me.")
    assert "pets in the bedroom" not in str(belief) and "nights with a baby" in str(belief)


PLANNED = ("The noise from the road keeps me awake.", "Can you make me a plan?", "thanks, tell me the first step")


async def test_to_forget_lets_go_of_notes_and_belief_and_keeps_the_plan(folder: Path) -> None:
    lines = ("I drink coffee at four.", *PLANNED)
    notes, before, plan, _ = await after(folder / "a", *lines)
    kept, belief, same, answer = await after(folder / "b", *lines, "forget that I said I drink coffee")
    assert "coffee" in str(notes) and "caffeine" in str(before) and plan.now
    assert "coffee" not in str(kept) and "caffeine" not in str(belief) and "/forget" in answer
    assert same == plan


async def test_a_step_about_what_was_not_so_gives_way(folder: Path) -> None:
    _, _, plan, _ = await after(folder / "a", *PLANNED)
    _, belief, now, _ = await after(folder / "b", *PLANNED, "No, it isn't the noise, it's the light.")
    assert plan.now and now.now and now.now.title != plan.now.title
    assert next(step for step in now.steps if step.title == plan.now.title).state == "not_needed"
    assert "noise" not in str(belief) and "light" in str(belief)


async def test_a_new_trouble_chooses_the_step_anew_and_says_why(folder: Path) -> None:
    _, _, plan, _ = await after(folder / "a", *PLANNED)
    _, _, now, answer = await after(folder / "b", *PLANNED, "Also I keep having nightmares.")
    assert plan.now and now.now and now.now.title != plan.now.title and "nightmares" in answer
    assert next(step for step in now.steps if step.title == plan.now.title).state == "later"


async def test_no_whole_sentence_is_a_concern_and_no_question_was_tried(folder: Path) -> None:
    _, belief, _, _ = await after(
        folder, "hi", "ugh i'm so tired. slept like 4 hrs again", "does chamomile tea do anything?"
    )
    assert not {"ugh", "chamomile tea do"} & set(str(belief).split(",")) and "ugh" not in str(belief)
    assert "tried" not in belief


async def test_what_is_held_is_told_in_the_language_that_is_spoken_now(folder: Path) -> None:
    *_, answer = await after(folder, "马路的噪音让我睡不着", "今天天气如何？", "Is the moon made of cheese?")
    assert "noise" in answer and "噪音" not in answer
    _, belief, _, _ = await after(folder, "The noise keeps me up.")
    assert belief["sleep_concern"].count("noise") == 1 and "噪音" not in belief["sleep_concern"]  # type: ignore[attr-defined,operator]
