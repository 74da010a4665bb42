"""Recall in conversations of other shapes: long replies, bursts, name variants, advice, unanswerable questions."""

from collections.abc import Sequence

import pytest
from world import World

from mindstream.memory.recall.ranking import find_bearer, find_persons, understood
from mindstream.memory.store.columns import Speakers
from mindstream.memory.store.record import RecordDraft

Said = tuple[str, str]
"""Speaker and text."""

EVENINGS = [
    ("ann", "I moved to Ghent in spring, and my sister Ida carried the boxes."),
    (
        "coach",
        "Moving is a lot. When people move, a sister who helps with moving makes the move lighter, and after moving a "
        "calm first night matters: unpack the bed first, keep the other boxes closed, air the room, walk around the "
        "block, write down what the move has changed, ask your sister to come by again, and let the moving week be a "
        "slow week. Who moves in spring has light evenings, which helps; who moved with a sister has somebody to call.",
    ),
    ("ann", "The tram outside keeps me awake, so I sleep with a fan running."),
    (
        "coach",
        "A fan is a fine steady sound. Against the noise of a tram I would also hang a heavy curtain, put felt under "
        "the bed, close the gap below the door and try ear plugs made of wax; a steady sound hides a sudden one, and a "
        "heavy curtain takes away the high part of the noise, which is what wakes people most.",
    ),
    ("ann", "On Fridays I bake rye bread with my neighbour Otto."),
    (
        "coach",
        "That sounds lovely. Baking with somebody is a good way to end a week, and rye takes time, so the evening "
        "slows down by itself; let the dough rest overnight, and enjoy the smell of the kitchen on Saturday morning.",
    ),
]


async def tell(world: World, talk: Sequence[Said], user: str = "", episode: str = "one") -> None:
    """Write a conversation; with `user`, mark which messages are the user's."""
    await world.stream.retain_all(
        [
            RecordDraft(text=text, kind="chat", by=by, episode=episode, data={"by_user": by == user} if user else {})
            for by, text in talk
        ]
    )


async def ask(world: World, question: str, k: int = 3) -> list[str]:
    return [found.record.text for found in await world.stream.recall(question, k, touch=False)]


async def test_a_long_reply_does_not_outrank_the_users_message(world: World) -> None:
    await tell(world, EVENINGS)  # no message is marked as the user's, so lengths decide
    assert (await ask(world, "Which sister helped moving in spring?"))[0] == EVENINGS[0][1]


async def test_a_rare_speaker_does_not_set_the_usual_length() -> None:
    speakers = Speakers()
    for _ in range(30):
        speakers.add(0, 10, None)
        speakers.add(1, 100, None)
    speakers.add(2, 1, None)
    assert speakers.tersest() == pytest.approx(speakers.usual_lengths()[0])


async def test_questions_prefer_the_messages_of_the_person_asked_about(world: World) -> None:
    await tell(world, EVENINGS, user="ann")
    assert (await ask(world, "What do I do against the tram, with a sound?"))[0] == EVENINGS[2][1]
    assert (await ask(world, "What did you do against the tram, with a sound?"))[0] == EVENINGS[3][1]


async def test_notes_rank_like_the_users_messages_for_questions_about_the_user(world: World) -> None:
    await tell(world, EVENINGS, user="ann")
    await world.stream.retain("She sleeps with a fan because of the tram.", "note", by="facts")
    found = {each.record.by: each.parts["who"] for each in await world.stream.recall("Why do I sleep with a fan?", 7)}
    assert found["facts"] == found["ann"] > found["coach"] == 0


@pytest.mark.parametrize(
    ("question", "asker", "asked"),
    [
        ("Where did I put my keys?", True, False),
        ("What did you recommend?", False, True),
        ("Can you tell me where my keys are?", True, False),
        ("I forgot: could you say where they are?", True, False),
        ("What would you do about my sleep?", True, False),
        ("What have we decided about the bed?", True, True),
        ("Where is Otto?", False, False),
        ("我的女儿叫什么？", True, False),
        ("你建议了什么？", False, True),
    ],
)
def test_pronouns_identify_the_persons_in_a_question(question: str, asker: bool, asked: bool) -> None:
    assert find_persons(question) == (asker, asked)


async def test_the_next_message_of_another_speaker_counts_as_the_answer(world: World) -> None:
    burst = [("kim", "Which instrument do you play?"), ("kim", "Sorry, phone."), ("lee", "Since I was nine, the oboe.")]
    await tell(world, burst)
    for number in range(8):
        await tell(world, [("kim", f"Something else, number {number}.")], episode=f"other {number}")
    found = {each.record.text: each.parts for each in await world.stream.recall("what instrument is played?", 3)}
    assert found[burst[2][1]]["neighbours"] > 2 * found[burst[1][1]]["neighbours"]


async def test_a_long_record_contributes_less_to_its_neighbours(world: World) -> None:
    for episode, more in (
        ("short", ""),
        ("long", " with a lot to say of other things" + " and more: nut, oil, tin" * 8),
    ):
        await tell(world, [("kim", f"The harbour{more}."), ("lee", f"Nothing there, {episode}.")], episode=episode)
    parts = {each.record.text: each.parts for each in await world.stream.recall("the harbour", 4, touch=False)}
    assert parts["Nothing there, short."]["neighbours"] > 1.5 * parts["Nothing there, long."]["neighbours"] > 0


CALLED = [
    ("Emilia", "Skiing was great."),
    ("elise", "So cool Kate! Was Otto there?"),
    ("Emilia", "Otto and I fell twice."),
]


@pytest.mark.parametrize(
    ("question", "who", "bare"),
    [
        ("Where did Elisa ski?", "elise", "Where did ski?"),  # misspelt
        ("Where did Emi ski?", "Emilia", "Where did ski?"),  # short
        ("Where did Kate ski?", "Emilia", "Where did ski?"),  # the name used by the other person
        ("Where did Otto ski?", None, "Where did Otto ski?"),  # a person known to both
        ("Where did Eli ski?", "elise", "Where did ski?"),
        ("Is El Ejido far?", None, "Is El Ejido far?"),
        ("Where did Kate and Elise ski?", None, "Where did and ski?"),
    ],
)
async def test_names_are_recognised_in_other_forms(world: World, question: str, who: str | None, bare: str) -> None:
    for session in range(5):
        await tell(world, CALLED, episode=str(session))
    columns = await world.stream.columns()
    asked = understood(question, columns, world.clock.now())
    assert (asked.who, asked.bare) == (-1 if who is None else columns.names[who], bare)


async def test_a_word_used_in_the_stream_is_not_taken_for_a_misspelt_name(world: World) -> None:
    await tell(world, [("Marion", "Hello!"), ("Paul", "I met Marian at the market.")])
    columns = await world.stream.columns()
    assert find_bearer("Marian", columns) == -1
    assert find_bearer("Marlon", columns) == columns.names["Marion"]


async def test_recall_reports_its_certainty(world: World) -> None:
    await tell(world, EVENINGS, user="ann")
    own = ["Who carried the boxes to Ghent?", "What keeps me awake?", "With whom do I bake rye bread?"]
    foreign = ["Which bank gave the mortgage?", "When does the flight to Lima leave?", "What is the dentist called?"]
    sure = [(await world.stream.recall(question, touch=False)).certainty for question in own]
    unsure = [(await world.stream.recall(question, touch=False)).certainty for question in foreign]
    assert min(sure) > 0.5 > 0.15 > max(unsure)


async def test_below_the_certainty_floor_nothing_is_returned_or_touched(world: World) -> None:
    note = await world.stream.retain("Otto has a cat called Minka.", "note")
    world.clock.advance(100)
    assert await world.stream.recall("Which bank gave the mortgage?", floor=0.1) == []
    assert (await world.now(note)).accessed == note.accessed
    assert len(await world.stream.recall("What is the cat of Otto called?", floor=0.1)) == 1
