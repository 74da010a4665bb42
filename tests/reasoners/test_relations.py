"""What rules say of records taken together: true of them, of whole names, and resting on exactly what it says."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mindstream import ManualClock, SqliteStore, Stream
from mindstream.memory.record import New, Record, Triple
from mindstream.models.embedders.wordllama import WordLlama
from mindstream.models.rules import Rules
from mindstream.reasoners.reflect.memories import memory_of
from mindstream.reasoners.reflect.reflect import OWN, reflect
from mindstream.reasoners.reflect.relations import find_relations, join

HOUR = 3_600.0
ADA, BEN, CLEO, DAN, ME = "Ada Brook", "Ben Hale", "Cleo Marsh", "Dan Ives", "Eve Stone"
FAIR = "The Harbour Fair is on Saturday at the old mill."


@pytest.fixture
async def stream(folder: Path) -> AsyncIterator[Stream]:
    store = SqliteStore(folder)
    async with Stream(store, ME, WordLlama(), ManualClock()) as made:
        yield made
    await store.close()


async def pass_time(stream: Stream, seconds: float = HOUR) -> None:
    assert isinstance(stream.clock, ManualClock)
    stream.clock.advance(seconds)


async def talk(stream: Stream, other: str, mine: str, theirs: str) -> list[Record]:
    await pass_time(stream)
    episode = f"talk {stream.clock.now()}"
    lines = ((ME, other, mine), (other, ME, theirs))
    return await stream.remember_all(
        [New(text=text, kind="chat", by=by, episode=episode, importance=5, data={"to": to}) for by, to, text in lines]
    )


async def see(stream: Stream, who: str, deed: str, place: str = "", importance: float = 4) -> Record:
    await pass_time(stream)
    found = await stream.remember_all(
        [
            New(
                text=f"{who} is {deed}",
                by=ME,
                importance=importance,
                about=Triple(who, "is", deed),
                data={"place": place},
            )
        ]
    )
    return found[0]


def texts(records: list[Record]) -> dict[str, set[str]]:
    """Return what is said of records, with the ids of what it rests on."""
    return {
        each.text: {records[n - 1].id for n in each.because}
        for each in find_relations(ME, [memory_of(each) for each in records])
    }


async def test_who_talks_with_somebody_again_and_again_often_does(stream: Stream) -> None:
    talks = [await talk(stream, ADA, "Hello Ada.", "Hello Eve.") for _ in range(3)]
    talks.append(await talk(stream, BEN, "Hello Ben.", "Hello Eve."))
    said = texts([line for lines in talks for line in lines])
    assert said == {f"{ME} often talks with {ADA}.": {lines[0].id for lines in talks[:3]}}


async def test_what_several_tell_and_speak_of_is_said_with_their_names(stream: Stream) -> None:
    _, first = await talk(stream, ADA, "Hello Ada.", f"Hello Eve. {FAIR}")
    _, second = await talk(stream, BEN, "Hello Ben.", f"Did you know? {FAIR}")
    said = texts([first, second])
    assert said == {f"{ADA} and {BEN} have told {ME} the same: “{FAIR}”": {first.id, second.id}}
    _, third = await talk(stream, CLEO, "Hello.", "I sing at the Harbour Fair.")
    _, fourth = await talk(stream, DAN, "Hello.", "I like the Harbour Fair.")
    said = texts([third, fourth])
    assert said == {f"{CLEO} and {DAN} both speak of Harbour Fair.": {third.id, fourth.id}}


async def test_who_says_yes_is_kept_with_what_was_asked(stream: Stream) -> None:
    yes = [await talk(stream, other, f"{FAIR} Will you come?", "I would love to.") for other in (ADA, BEN)]
    no = await talk(stream, CLEO, f"{FAIR} Will you come?", "I am afraid I cannot.")
    more = [await talk(stream, other, f"Have you heard? {FAIR}", "I would love to.") for other in (CLEO, DAN)]
    assert not any("said yes" in text for text in texts([*more[0], *more[1]]))
    said = texts([*yes[0], *yes[1], *no])
    agreed = f"{ADA} and {BEN} have said yes when {ME} asked them about this: “{FAIR}”"
    assert said[agreed] == {line.id for lines in yes for line in lines}


async def test_what_somebody_does_on_several_days_is_a_habit(stream: Stream) -> None:
    days = []
    for _ in range(2):
        days.append(await see(stream, ADA, "minding the counter (wiping it)", "Ville:Oak Shop:room:counter"))
        await see(stream, BEN, "having lunch", importance=2)
        await pass_time(stream, 22 * HOUR)
    said = texts(await stream.latest("observation", 9))
    assert said == {
        f"{ADA} has been minding the counter two days in a row, at about the same time.": {day.id for day in days}
    }


async def test_several_who_do_what_weighs_are_at_something_together(stream: Stream) -> None:
    there = [await see(stream, who, "attending the fair", "Ville:Old Mill:yard") for who in (ADA, BEN, CLEO)]
    await see(stream, DAN, "attending to the fire", "Ville:Old Mill:yard")
    said = texts(await stream.latest("observation", 9))
    assert said == {f"{ADA}, {BEN} and {CLEO} have been attending the fair at Old Mill.": {each.id for each in there}}


def test_others_are_more_than_one() -> None:
    assert join([ADA, BEN]) == f"{ADA} and {BEN}"
    assert join([ADA, BEN, CLEO, DAN]) == f"{ADA}, {BEN}, {CLEO} and {DAN}"
    assert join([ADA, BEN, CLEO, DAN, ME]) == f"{ADA}, {BEN}, {CLEO} and others"


async def test_others_who_are_seen_together_often_talk(stream: Stream) -> None:
    await see(stream, BEN, "reading")
    seen = [await see(stream, ADA, f"talking with {BEN}") for _ in range(3)]
    said = texts(await stream.latest("observation", 9))
    assert said == {f"{ADA} and {BEN} often talk with each other.": {each.id for each in seen}}


async def test_a_later_reflection_builds_on_earlier_ones(stream: Stream) -> None:
    for _ in range(2):
        for _ in range(2):
            await talk(stream, ADA, "Hello Ada.", "Hello Eve.")
            await see(stream, ADA, "having coffee", "Ville:Oak Cafe:room", importance=2)
        await pass_time(stream, 20 * HOUR)
    first = await reflect(stream, Rules())
    assert {each.text for each in first} >= {f"{ME} often talks with {ADA}.", f"{ADA} is often at Oak Cafe."}
    later = await reflect(stream, Rules())
    meeting = next(each for each in later if each.text == f"{ME} is most likely to meet {ADA} at Oak Cafe.")
    assert (meeting.depth, set(meeting.evidence)) == (
        2,
        {each.id for each in first if ADA in each.text and "often" in each.text},
    )
    assert not {each.text for each in first} & {each.text for each in later}


async def test_what_one_thinks_of_oneself_is_marked_as_ones_own(stream: Stream) -> None:
    for _ in range(3):
        await talk(stream, ADA, "Hello Ada.", "Hello Eve.")
        await see(stream, BEN, f"talking with {CLEO}")
        await see(stream, CLEO, "reading")
    thoughts = await reflect(stream, Rules())
    assert {each.text: bool(each.data.get(OWN)) for each in thoughts} == {
        f"{ME} often talks with {ADA}.": True,
        f"{BEN} and {CLEO} often talk with each other.": False,
    }


async def test_a_few_meetings_are_nothing_to_think_about(stream: Stream) -> None:
    await talk(stream, ADA, "Hello Ada. Let me tell you something.", "Hello Eve. See you.")
    await talk(stream, BEN, "Hello Ben. Let me tell you something.", "Hello Eve. See you.")
    await see(stream, CLEO, "having lunch", "Ville:Oak Cafe:room", importance=2)
    assert await reflect(stream, Rules()) == []


@pytest.mark.parametrize(
    ("diary", "said"),
    [
        (
            ("Wieder schlecht geschlafen, der Kaffee war zu stark.", "Nach dem Kaffee habe ich telefoniert.",
             "Ich habe ohne Kaffee gut geschlafen."),
            "Eve Stone has noted “Kaffee” several times.",
        ),
        (
            ("今天又失眠了，可能是咖啡喝多了。", "晚上喝了咖啡，睡不着。", "昨晚没有喝咖啡，睡得很好。"),
            "Eve Stone has noted “咖啡” several times.",
        ),
        (("Hoy he dormido mal.", "He dormido mal otra vez.", "No he dormido."), ""),
    ],
    ids=["german", "chinese", "spanish"],
)  # fmt: skip
async def test_words_of_other_languages_are_quoted_or_nothing_is_said(
    stream: Stream, diary: tuple[str, ...], said: str
) -> None:
    await stream.remember_all([New(text=text, importance=5) for text in diary])
    assert [each.text for each in await reflect(stream, Rules())] == ([said] if said else [])


async def test_what_has_come_up_on_twice_as_many_days_is_said_anew(stream: Stream) -> None:
    said = []
    for day in range(6):
        await stream.remember_all([New(text=f"Went to the doctor, visit {day}", kind="chat", by=ME, importance=5)])
        await pass_time(stream, 24 * HOUR)
        said += [each.text for each in await reflect(stream, Rules())]
    assert said == [f"{ME} has brought up “doctor” on three days.", f"{ME} has brought up “doctor” on six days."]
