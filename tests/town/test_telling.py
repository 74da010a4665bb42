"""Talk without a model: what matters and was not told is told as it is remembered, and kept as it was told."""

from __future__ import annotations

from datetime import UTC, datetime

from mindstream.models.prompt import RULES
from mindstream.models.rules import Rules
from mindstream.town.appointment import Appointment
from mindstream.town.prompts.memory import Memory
from mindstream.town.prompts.should_talk import ShouldTalk
from mindstream.town.prompts.take_from_talk import TakeFromTalk
from mindstream.town.prompts.utter import Utter, Utterance

PARTY = Memory(
    text="Am Abend wird getanzt.", importance=8,
    appointment=Appointment(what="tanzen", start=datetime(2024, 5, 14, 18, tzinfo=UTC),
                            end=datetime(2024, 5, 14, 20, tzinfo=UTC), host="Mara Voss"),
)  # fmt: skip
MEMORIES = (Memory(text="Mara likes tea", importance=4), Memory(text="市长要换人", importance=5), PARTY)


def utter(*lines: str, told: tuple[int, ...] = (), relation: str = "") -> Utterance:
    ask = Utter(who="Mara Voss", identity="", other="Jo Kim", situation="", memories=MEMORIES, told=told, lines=lines,
                relation=relation)  # fmt: skip
    return Rules().answer(ask)


def test_what_matters_most_comes_first_and_nothing_twice() -> None:
    first = utter()
    assert first.text == "Hello, Jo Kim. Am Abend wird getanzt." and first.passes_on == [3] and not first.ends
    assert utter(told=(3,)).passes_on == [2] and "市长要换人" in utter(told=(3,)).text
    spoken = ("Mara Voss: Hello, Jo Kim.", "Jo Kim: Hello, Mara Voss.")
    assert utter(*spoken).ends and utter(*spoken).passes_on == []
    assert utter(*spoken, told=(3,), relation="friend").passes_on == [2], "to friends a second thing"
    assert utter(told=(2, 3)).passes_on == [] and utter(told=(2, 3)).text == "Hello, Jo Kim."


def test_news_is_kept_as_it_was_told_and_each_has_one_answer_to_an_invitation() -> None:
    def kept(who: str, *busy: int) -> list[tuple[str, int, bool | None]]:
        told = TakeFromTalk(
            who=who, other="Mara Voss", date="", lines=("Mara Voss: Hello.",), told=(MEMORIES[1], PARTY), busy=busy
        )
        taken = Rules().answer(told)
        return [(each.text, each.of, None) for each in taken.memo] + [(a.text, a.of, a.comes) for a in taken.agreed]

    answers = {who: kept(who) for who in (f"Jo{n} Kim" for n in range(40))}
    assert all(each[0] == ("市长要换人", 1, None) and each[1][:2] == (PARTY.text, 2) for each in answers.values())
    come = sum(bool(each[1][2]) for each in answers.values())
    assert 10 < come < 36 and kept("Jo1 Kim") == answers["Jo1 Kim"]
    assert not any(kept(who, 2)[1][2] for who in answers), "a duty comes first"
    assert kept("Mara Voss")[1] == (PARTY.text, 2, None), "who gives it has nothing to answer"


def test_people_talk_more_to_whom_they_know_and_with_news() -> None:
    def p(**more: object) -> float:
        ask = ShouldTalk.model_validate(
            {"who": "a", "identity": "", "doing": "", "other": "b", "other_doing": "", "when": "", **more}
        )
        answer: dict[str, float] = RULES[ShouldTalk](ask)
        return answer["yes"]

    assert p(last_talk="today") < p() < p(relation="friend") < p(relation="friend", news=(PARTY,))
    assert p(news=(MEMORIES[0],)) == p()
