"""Who is invited answers by its own day and by who invites; what is said comes back as it was meant."""

from __future__ import annotations

import pytest

from mindstream.models.rules import Rules
from mindstream.town.prompts.take_from_talk import TakeFromTalk
from mindstream.town.prompts.utter import Utter, Utterance
from mindstream.town.rules.voice import hear_from, say_as

FACT = "Ada Brook is holding a fair at Mill Green from 5pm to 7pm on March 3rd, and everybody is invited."
NOW = "It is Monday, March 2, 2026, 12:00. Jo Kim is having lunch."
INVITED = f"Ada Brook: Hello, Jo. {say_as('Ada Brook', FACT)} Would you like to come?"


def answer(
    who: str, identity: str = "", day: tuple[str, ...] = (), memories: tuple[str, ...] = (), relation: str = ""
) -> Utterance:
    return Rules().answer(
        Utter(
            who=who, identity=f"{who}\n{identity}", other="Ada Brook", relation=relation, situation=NOW, day=day,
            memories=memories, lines=(INVITED,),
        )
    )  # fmt: skip


def test_work_keeps_away_and_friends_come_sooner() -> None:
    names = [f"Jo{n} Kim" for n in range(60)]
    friends = sum("love to" in answer(who, "Knows: Ada Brook (friend)", relation="friend").text for who in names)
    strangers = sum("love to" in answer(who).text for who in names)
    rivals = sum("love to" in answer(who, "Knows: Ada Brook (rival)").text for who in names)
    at_work = [answer(who, day=("08:00 working at the mill", "19:00 having dinner")).text for who in names]
    assert friends > strangers > rivals
    assert sum("have to work" in text for text in at_work) > 45


@pytest.mark.parametrize(
    ("deed", "says"), [("does not want to come", "not for me"), ("will be there", "will be there")]
)
def test_who_has_answered_answers_the_same(deed: str, says: str) -> None:
    assert says in answer("Jo Kim", memories=(f"Jo Kim {deed}: {FACT}",)).text


def test_both_remember_a_refusal() -> None:
    lines = (INVITED, "Jo Kim: I am afraid I cannot, I have to work then.")
    host = Rules().answer(TakeFromTalk(who="Ada Brook", other="Jo Kim", date="Monday, March 2, 2026", lines=lines))
    guest = Rules().answer(TakeFromTalk(who="Jo Kim", other="Ada Brook", date="Monday, March 2, 2026", lines=lines))
    assert host.memo == guest.plan == f"Jo Kim cannot come because of work: {FACT}"


@pytest.mark.parametrize(
    ("fact", "said"),
    [
        ("Jo Kim has lost a cat.", "I have lost a cat."),
        ("Jo Kim sold a car.", "I sold a car."),
        ("Jo Kim wants a garden.", "I want a garden."),
        ("Jo Kim's cat has run away.", "My cat has run away."),
        ("Ben Hale is ill.", "Ben Hale is ill."),
    ],
)
def test_what_is_said_of_oneself_is_remembered_with_the_name(fact: str, said: str) -> None:
    assert (say_as("Jo Kim", fact), hear_from("Jo Kim", said)) == (said, fact)
