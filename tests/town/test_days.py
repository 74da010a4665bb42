"""Days of people who are described in words: when they sleep, what they do where, what was agreed on."""

from __future__ import annotations

from datetime import date

import pytest

from mindstream.town.person import Person, Relation
from mindstream.town.prompts.plan_day import DayPlan, Place, PlanDay
from mindstream.town.rules.appointments import read_appointment_today, read_appointments
from mindstream.town.rules.currently import next_currently
from mindstream.town.rules.day import plan_by_habit
from mindstream.town.rules.habits import gerund, read_habits
from mindstream.town.rules.sleep import read_sleep
from mindstream.town.rules.times import read_days, read_stretches, read_weekdays
from mindstream.town.world.hours import clock

PLACES = (
    Place(words="main room of Mill Street 4", things=("bed", "desk", "stove", "table"), home=True),
    Place(words="bathroom of Mill Street 4", things=("toilet", "shower", "sink"), home=True),
    Place(words="bakery of Fischer's Bakery", things=("oven", "behind the bakery counter", "chair")),
    Place(words="reading room of Town Library", things=("table", "bookshelf")),
    Place(words="tavern of The Blue Anchor", things=("bar seating", "behind the bar counter")),
    Place(words="classroom of Lakeside School", things=("blackboard", "student seating")),
    Place(words="Rowan Park", things=("bench",)),
)
NAMES = ["", *(place.words for place in PLACES)]


@pytest.mark.parametrize(
    ("text", "wake", "bed"),
    [
        ("goes to bed around 11pm, awakes up around 6am", "06:00", "23:00"),
        ("gets up at half past five and turns in by nine in the evening", "05:30", "21:00"),
        ("She sleeps from 2 am to 10 am.", "10:00", "02:00"),
        ("sleeps from 8 in the morning to 4 in the afternoon", "16:00", "08:00"),
        ("Up at 04:30, lights out at 20:30", "04:30", "20:30"),
        ("goes to bed at 1", "09:00", "01:00"),
        ("goes to bed at 10 and rises at 6", "06:00", "22:00"),
        ("gets up at seven, goes to bed at midnight", "07:00", "24:00"),
        ("a night owl", "10:00", "02:00"),
        ("likes soup", "07:00", "23:00"),
    ],
)
def test_hours_of_sleep_are_read_in_whatever_words(text: str, wake: str, bed: str) -> None:
    assert tuple(map(clock, read_sleep(text))) == (wake, bed)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("from 5pm to 7pm", [(1020, 1140)]),
        ("works 9 to 5", [(540, 1020)]),
        ("from 10 to 2pm", [(600, 840)]),
        ("from 22:00 until 06:00", [(1320, 360)]),
        ("between nine and half past eleven", [(540, 690)]),
        ("at 8am, and stands there until 8pm", [(480, None), (None, 1200)]),
        ("meet at six this evening", [(1080, None)]),
        ("February 14th, 2023", []),
        ("tells stories to two friends, has 3 cats", []),
    ],
)
def test_times_of_the_day_are_read(text: str, expected: list[tuple[int | None, int | None]]) -> None:
    assert [(each.start, each.end) for each in read_stretches(text)] == expected


def test_days_are_counted_from_when_they_were_told() -> None:
    tuesday = date(2024, 5, 14)
    assert read_days("come tomorrow at 5", date(2024, 5, 13)) == [tuesday]
    assert read_days("come tomorrow at 5", tuesday) == [date(2024, 5, 15)]
    assert read_days("on Tuesday at noon", date(2024, 5, 10)) == read_days("May 14th", tuesday) == [tuesday]
    assert not read_days("works Monday to Friday", tuesday) and not read_days("every Tuesday", tuesday)
    assert read_weekdays("on weekdays and on Saturdays") == frozenset(range(6))


def test_verbs_are_said_as_what_is_being_done() -> None:
    said = [gerund(each) for each in ("goes for a run", "studies law", "sits there", "eat and study", "lies down")]
    assert said == ["going for a run", "studying law", "sitting there", "eating and studying", "lying down"]


def test_habits_have_their_hours_and_places() -> None:
    told = (
        "Jo opens the bakery at 5am, stands behind the counter until noon, and then goes to Rowan Park to feed the"
        " ducks."
    )
    work, after = read_habits([told], "Jo Kim", PLACES)
    assert (work.start, work.end, NAMES[work.place], work.duty) == (300, 720, "bakery of Fischer's Bakery", True)
    assert (after.what, after.start, NAMES[after.place]) == ("feeding the ducks", 720, "Rowan Park")


def planned(identity: str, *memories: str, day: str = "Tuesday May 14, 2024", who: str = "Jo Kim") -> DayPlan:
    plan: DayPlan = plan_by_habit(PlanDay(who=who, identity=identity, date=day, memories=memories, places=PLACES))
    return plan


def where(plan: DayPlan, at: str) -> tuple[str, str]:
    item = [item for item in plan.items if item.start <= at][-1]
    return item.what, NAMES[item.place]


def test_work_is_done_at_its_hours_on_its_days() -> None:
    teacher = (
        "Jo Kim, 40 years old\nJo Kim is a teacher.\nJo Kim teaches at Lakeside School from 8am to 3pm on weekdays."
    )
    what, place = where(planned(teacher), "09:30")
    assert "teaching" in what and place == "classroom of Lakeside School"
    assert all(NAMES[item.place] != place for item in planned(teacher, day="Sunday May 19, 2024").items)


def test_who_works_at_night_sleeps_by_day() -> None:
    plan = planned("Jo Kim, 50 years old\nJo Kim is a nurse.\nShe works at the library from 10pm to 6am every day.")
    assert "06:00" < plan.bed < plan.wake < "18:00"
    assert [NAMES[item.place] for item in plan.items if item.start == "22:00"] == ["reading room of Town Library"]


def test_children_go_to_school_and_to_no_tavern() -> None:
    plans = [planned(f"Jo Kim, 8 years old\n{n}", day=f"Tuesday May {n}, 2024") for n in (7, 14, 21, 28)]
    assert all(where(plan, "10:00")[1] == "classroom of Lakeside School" for plan in plans)
    assert not any("tavern" in NAMES[item.place] for plan in plans for item in plan.items)


@pytest.mark.parametrize(
    "identity", ["Jo", "李 雷", "Jo Kim, 0 years old\n.;,,\n" + "at 5pm " * 300, "Jo, 103 years old\nretired"]
)
def test_who_is_hardly_described_has_a_day_too(identity: str) -> None:
    plan = planned(identity)
    assert len(plan.items) >= 5 and plan.items[0].what.startswith("waking up")
    assert any(item.what == "having lunch" for item in plan.items)


def test_days_differ_and_a_day_stays_the_same() -> None:
    days = [planned("Jo Kim, 30 years old", day=f"Monday May {n}, 2024") for n in (6, 13, 20)]
    assert len({plan.model_dump_json() for plan in days}) == 3
    assert days[0] == planned("Jo Kim, 30 years old", day="Monday May 6, 2024")


PARTY = "(Monday 2024-05-13) Mara Voss is holding a lantern feast at The Blue Anchor on May 14th from 6pm to 8pm."


def test_the_host_gets_ready_and_is_there() -> None:
    plan = planned("Mara Voss, 30 years old", PARTY, who="Mara Voss")
    assert where(plan, "17:30") == ("preparing and decorating for the lantern feast", "tavern of The Blue Anchor")
    assert where(plan, "18:30") == ("hosting the lantern feast", "tavern of The Blue Anchor")


def test_who_promised_goes_and_of_those_who_heard_some_do() -> None:
    promise = "(Monday 2024-05-13) Jo Kim will go to the lantern feast at The Blue Anchor tomorrow at 6pm."
    assert where(planned("Jo Kim, 30 years old", promise), "18:30")[0] == "attending the lantern feast"
    names = [f"Jo{n} Kim" for n in range(40)]
    come = [
        where(planned(f"{who}, 30 years old", PARTY, who=who), "18:30")[0] == "attending the lantern feast"
        for who in names
    ]
    assert 8 <= sum(come) <= 30
    late = [
        planned(f"{who}, 30 years old\nHe works at the library from 2pm to 10pm every day.", PARTY, who=who)
        for who in names
    ]
    assert sum("feast" in where(plan, "18:30")[0] for plan in late) < sum(come)


def test_one_event_told_twice_is_one_and_a_refusal_counts() -> None:
    day = date(2024, 5, 14)
    help_ = "Jo Kim will help Mara Voss to decorate for the lantern feast tomorrow at 6pm at The Blue Anchor."
    told = [(date(2024, 5, 13), PARTY.partition(") ")[2]), (date(2024, 5, 13), help_)]
    (one,) = read_appointments("Jo Kim", day, told, PLACES)
    assert (one.role, one.start, one.end, NAMES[one.place]) == ("helper", 1080, 1200, "tavern of The Blue Anchor")
    no = (date(2024, 5, 13), "Jo Kim cannot come to the lantern feast at The Blue Anchor tomorrow at 6pm.")
    assert read_appointments("Jo Kim", day, [told[0], no], PLACES) == []


def test_what_somebody_is_about_changes_with_the_days() -> None:
    before = "Jo is writing a song. Jo plans a concert on May 13th at 8pm."
    told = [(date(2024, 5, 13), "Jo Kim talked with Mara Voss about her feast")]
    after = next_currently(before, "Jo Kim", date(2024, 5, 14), told, ["attending the feast"])
    assert "song" in after and "concert" not in after and "Mara Voss" in after and "Today, Jo Kim" in after
    later = next_currently(after, "Jo Kim", date(2024, 5, 15), [], [])
    assert later == "Jo is writing a song."


def test_a_meal_is_eaten_when_and_where_it_is_told() -> None:
    told = "Jo Kim has dinner at The Blue Anchor at 7pm. Jo Kim has lunch at Fischer's Bakery at 1pm."
    plan = planned(f"Jo Kim, 30 years old\n{told}")
    assert where(plan, "19:10") == ("having dinner", "tavern of The Blue Anchor")
    assert where(plan, "13:10") == ("having lunch", "bakery of Fischer's Bakery")


def test_what_is_done_in_a_part_of_the_day_is_done_then() -> None:
    plans = [planned("Jo Kim, 30 years old\nJo Kim is mending nets in the evenings and hopes for rain.",
                     day=f"Tuesday May {day}, 2024") for day in (7, 14, 21, 28)]  # fmt: skip
    mending = [item for plan in plans for item in plan.items if "mending" in item.what]
    assert mending and all(item.what == "mending nets" and item.start >= "17:00" for item in mending)


def test_hours_at_a_place_are_work_whatever_the_verb() -> None:
    plan = planned("Jo Kim, 40 years old\nJo Kim is a baker.\nJo Kim kneads dough in the bakery from 4am to noon.")
    assert plan.wake < "04:00" and all("kneading dough" in where(plan, at)[0] for at in ("05:00", "09:00"))
    assert not any(item.what == "working" for item in plan.items)


def test_a_break_that_is_told_is_taken_and_work_goes_on() -> None:
    told = "Jo Kim works at the Town Library from 9am to 5pm. She has coffee in Fischer's Bakery at 3pm."
    plan = planned(f"Jo Kim, 40 years old\n{told}")
    what, place = where(plan, "15:10")
    assert what.startswith("having coffee") and place == "bakery of Fischer's Bakery"
    assert where(plan, "16:10")[1] == "reading room of Town Library"


def test_a_pronoun_for_another_becomes_a_name() -> None:
    jo = Person(name="Jo Kim", home="x", relations=(Relation("Mara Voss", "friend"),),
                memories=("Jo Kim sings with Mara Voss. He is fond of her. He carries her harp.",))  # fmt: skip
    assert {"Jo Kim is fond of Mara Voss.", "Jo Kim carries her harp."} & set(jo.first_memories()) >= {
        "Jo Kim is fond of Mara Voss."
    }


def test_what_somebody_will_do_is_said_as_what_one_does() -> None:
    agreed = read_appointment_today("Jo Kim", date(2024, 5, 14), "Jo Kim will meet Ida Fischer at 3pm.", PLACES)
    assert agreed is not None and (agreed.what, agreed.start) == ("meeting Ida Fischer", 900)


def test_what_is_over_is_not_done_again() -> None:
    told = [(date(2024, 5, 13), "Jo Kim will be there: Ida Fischer is hosting a feast at The Blue Anchor on May 13th")]
    feast = "Jo Kim is hosting a feast at The Blue Anchor from 5pm to 7pm on May 13th."
    currently = f"Jo Kim is mending a boat. {feast} Today, Jo Kim will be attending the feast."
    identity = f"Jo Kim, 40 years old\nJo Kim is a fisher.\n{currently}"
    after = plan_by_habit(
        PlanDay(
            who="Jo Kim", identity=identity, date="Tuesday May 14, 2024", places=PLACES, currently=currently,
            memories=tuple(f"({when:%A %Y-%m-%d}) {text}" for when, text in told),
        )
    )  # fmt: skip
    assert not any("feast" in item.what for item in after.items)
    assert "feast" not in after.currently
