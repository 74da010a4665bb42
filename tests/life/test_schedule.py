from contextlib import suppress
from datetime import UTC, datetime, time
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from keys import key_of

from mindstream.clock import ManualClock
from mindstream.errors import InputError
from mindstream.life.commands import give_goal
from mindstream.life.schedule import (
    ActiveHours,
    Calendar,
    Interval,
    Recurrence,
    Rhythm,
    known_orders,
    read_order,
    unknown_orders,
)
from mindstream.life.state import LifeState
from mindstream.memory.memory import Memory
from mindstream.text.times import RULE, read_moment

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 22, 15, 30, tzinfo=BERLIN).timestamp()  # a Sunday
ZONES = [BERLIN, UTC, *map(ZoneInfo, ("Asia/Shanghai", "America/Santiago", "Australia/Lord_Howe", "Pacific/Apia"))]


def written(moment: float | None) -> str:
    return "" if moment is None else f"{datetime.fromtimestamp(moment, BERLIN):%Y-%m-%d %H:%M}"


@pytest.mark.parametrize(
    ("when", "due"),
    [
        ("every day at 8", ["11-23 08:00", "11-24 08:00"]),
        ("Day 8:00, 12:30 and 20:00", ["11-22 20:00", "11-23 08:00"]),
        ("weekdays at 7:30", ["11-23 07:30", "11-24 07:30"]),
        ("weekend noon", ["11-28 12:00", "11-29 12:00"]),
        ("every monday, wed and friday at 8pm", ["11-23 20:00", "11-25 20:00"]),
        ("every 2 hours", ["11-22 16:00", "11-22 18:00"]),
        ("30 minutes", ["11-22 16:00", "11-22 16:30"]),
        ("every 3 days", ["11-25 09:00", "11-28 09:00"]),
        ("week", ["11-23 09:00", "11-30 09:00"]),
        ("every month", ["12-01 09:00", "01-01 09:00"]),
        ("1st and 15th of the month", ["12-01 09:00", "12-15 09:00"]),
        ("the last day of the month at 9.45", ["11-30 09:45", "12-31 09:45"]),
        ("first Monday of every month 7 pm", ["12-07 19:00", "01-04 19:00"]),
        ("every year on Feb 14 8:00", ["02-14 08:00", "02-14 08:00"]),
    ],
)
def test_an_order_is_parsed_into_time_and_text(when: str, due: list[str]) -> None:
    order = read_order(f"{when}: 每天：ask, at 9:30: 三")
    assert order.what == "每天：ask, at 9:30: 三" and order == read_order(order.text)
    first = order.next_after(NOW, BERLIN)
    assert [written(first)[5:], written(order.next_after(first, BERLIN))[5:]] == due


@pytest.mark.parametrize(
    "text",
    ["buy milk", "every day at 8 ask me", "ask me at 8 every day", "every time it rains: ask", "每天早上八点：问我", "",
     "every day at 8:", "every day: " + "ask " * 500],
)  # fmt: skip
def test_an_unparsable_order_is_refused_with_the_expected_form(text: str) -> None:
    with pytest.raises(
        InputError, match=r"needs a time and a task, such as 'every day at 8:00: .*' or 'every monday and friday"
    ):
        read_order(text)


@pytest.mark.parametrize(
    "when", ["every 0 hours", "every 30 seconds", "hour at 8", "every day at 25:00", "monday 24:00", "every 99999 days",
             "year on Feb 30", "0th of the month", "32nd of the month", "6th monday of the month"],
)  # fmt: skip
def test_an_order_with_an_impossible_time_is_refused(when: str) -> None:
    with pytest.raises(InputError, match=r"there is no|expected|no time|time of day|24:00 is"):
        read_order(f"{when}: blink")


def test_an_unreadable_stored_order_does_not_affect_the_others() -> None:
    orders = ["每天早上八点问我", "every day at 8: ask"]
    assert [(number, order.what) for number, order in known_orders(orders)] == [(2, "ask")]
    ((number, why),) = unknown_orders(orders)
    assert number == 1 and "每天早上八点问我" in why
    rhythm, state = Rhythm(zone=BERLIN), LifeState(orders=tuple(orders), ordered=NOW)
    assert written(rhythm.next_wake(state, NOW)) == "2026-11-23 08:00"
    assert [due.number for due in rhythm.due_orders(state, NOW + 86_400)] == [2]


@pytest.mark.parametrize(
    ("words", "at"),
    [
        *((words, "2026-11-22 15:50") for words in ("in 20 minutes", "20 min", "0.333h 1.2 s")),
        *(
            (words, "2026-11-22 18:00")
            for words in ("18:00", "6pm", "at 6 p.m.", "today 18:00", "Sunday at 18", "2h 30m")
        ),
        *((words, "2026-11-23 09:00") for words in ("tomorrow", "monday", "Tomorrow at 9", "9:00", "Mon, Nov 23")),
        ("3 days", "2026-11-25 15:30"),
        ("noon", "2026-11-23 12:00"),
        ("24:00", "2026-11-23 00:00"),
        ("sunday", "2026-11-29 09:00"),
        ("Feb 14", "2027-02-14 09:00"),
        ("14 February 2028 19:00", "2028-02-14 19:00"),
        ("Nov 22 8:00", "2027-11-22 08:00"),
        ("2027-01-31 at 10:00", "2027-01-31 10:00"),
        ("2027-01-31T10:00", "2027-01-31 10:00"),
        *(
            (words, "")
            for words in ("soon", "", "every day", "8", "at 7 or 8", "today tomorrow", "when I get home", "明天九点")
        ),
    ],
)
def test_written_moments_are_parsed(words: str, at: str) -> None:
    assert written(read_moment(words, NOW, BERLIN)) == at


@pytest.mark.parametrize("words", ["today at 8", "yesterday", "2020-01-01", "at 25:00", "13pm", "2026-02-30", "Feb 29",
                                   "2026-13-01", "999999 weeks"])  # fmt: skip
def test_an_impossible_moment_is_refused(words: str) -> None:
    with pytest.raises(InputError, match=r"there is no|in the past|no time|must be 1 to 12|the calendar"):
        read_moment(words, NOW, BERLIN)


def test_days_keep_the_local_time_and_hours_do_not() -> None:
    before = datetime(2027, 3, 27, 12, tzinfo=BERLIN).timestamp()
    assert [written(read_moment(words, before, BERLIN)) for words in ("1 day", "24h")] == [
        "2027-03-28 12:00", "2027-03-28 13:00",
    ]  # fmt: skip


WORDS = (
    *("every", "in", "on", "at", "day", "monday", "weekend", "1st", "last", "of the month", "of", "and", ",", "2"),
    *("8:00", "noon", "24:00", "hours", "weeks", "tomorrow", "feb", "14", "29", "2028", "year", "9pm", "天", "0"),
)


@given(st.lists(st.sampled_from(WORDS), max_size=7).map(" ".join))
def test_every_parsed_moment_is_in_the_future(text: str) -> None:
    for now in (NOW, NOW + 30_600.5):
        with suppress(InputError):
            moment = read_moment(text, now, BERLIN)
            assert moment is None or moment >= now - 1e-6
        with suppress(InputError):
            assert read_order(f"{text}: ask").next_after(now, BERLIN) > now


# Properties of every rule.

TIMES = st.lists(st.times().map(lambda at: at.replace(second=0, microsecond=0)), min_size=1, max_size=3).map(tuple)
RULES = st.one_of(
    st.builds(Interval, st.integers(60, 400_000)),
    st.builds(Calendar, st.just("day"), TIMES, st.integers(1, 9)),
    st.builds(Calendar, st.just("week"), TIMES, st.integers(1, 3), st.frozensets(st.integers(0, 6), min_size=1)),
    st.builds(
        Calendar, st.just("month"), TIMES, st.integers(1, 3), days=st.tuples(st.sampled_from([1, 15, 29, 31, -1]))
    ),
    st.builds(
        Calendar, st.just("month"), TIMES, nth=st.sampled_from([1, 4, -1]), weekdays=st.just(frozenset({2}))
    ),
    st.builds(Calendar, st.just("year"), TIMES, days=st.just((29,)), month=st.just(2)),
)  # fmt: skip
MOMENTS = st.integers(1_262_304_000, 1_893_456_000).map(float)  # 2010 to 2030


@given(RULES, MOMENTS, st.sampled_from(ZONES), st.floats(0, 1, exclude_max=True))
def test_the_next_time_is_in_the_future_and_none_is_skipped(
    rule: Recurrence, moment: float, zone: ZoneInfo, share: float
) -> None:
    due = rule.next_after(moment, zone)
    assert due > moment
    between = moment + share * (due - moment)
    assert between == due or rule.next_after(between, zone) == due


def test_orders_keep_the_local_time_across_clock_changes() -> None:
    rule = Calendar("day", (time(2, 30), time(3)))
    spring = datetime(2027, 3, 27, 12, tzinfo=BERLIN).timestamp()
    due = [at := rule.next_after(spring, BERLIN), rule.next_after(at, BERLIN)]
    assert [written(at) for at in due] == ["2027-03-28 03:00", "2027-03-28 03:30"], "a skipped time is moved forward"
    autumn = datetime(2027, 10, 30, 12, tzinfo=BERLIN).timestamp()
    once = Calendar("day", (time(2, 30),))
    at = once.next_after(autumn, BERLIN)
    assert [written(at), written(once.next_after(at, BERLIN))] == ["2027-10-31 02:30", "2027-11-01 02:30"]


# Active hours.


@given(st.times(), st.times(), MOMENTS, st.sampled_from(ZONES))
def test_next_active_returns_the_first_active_moment(since: time, until: time, moment: float, zone: ZoneInfo) -> None:
    hours = ActiveHours(f"{since:%H:%M}-{until:%H:%M}", zone)
    found = hours.next_active(moment)
    assert found >= moment and hours.is_active(found) and hours.next_active(found) == found
    assert (found == moment) == hours.is_active(moment)
    assert found - moment <= 49 * 3_600


@pytest.mark.parametrize("words", ["", "8", "8:00", "25:00-26:00", "08:00-24:30", "morning", "8-9-10"])
def test_invalid_active_hours_are_refused(words: str) -> None:
    with pytest.raises(InputError, match="08:00-22:00"):
        ActiveHours(words)


@pytest.mark.parametrize(
    "when",
    ["every month on the 0th", "0th of every month", "the 0th day of the month", "0 march", "every year on 0 march",
     "每月零日", "32nd of the month", "every year on Feb 30", "every 99999 years", "every 0 days", "third"],
)  # fmt: skip
async def test_an_order_that_never_occurs_is_refused_and_not_stored(when: str, tmp_path: Path) -> None:
    async with Memory.open(tmp_path, "ada", clock=ManualClock(NOW)) as stream:
        with pytest.raises(InputError):
            await give_goal(stream, "Sleep well.", [f"{when}: ask me"])
        assert await stream.store.events(key_of("ada")) == []


def test_the_search_for_a_moment_ends_at_the_horizon() -> None:
    fifth = Calendar("month", (time(9),), every=12, weekdays=frozenset({0}), nth=7)
    with pytest.raises(InputError, match=r"no date in the next 20 years fits .* every 12 months"):
        fifth.next_after(NOW, UTC)
    end = datetime(9999, 12, 30, tzinfo=UTC).timestamp()
    with pytest.raises(InputError, match=r"no date .* every 1 day$"):
        Calendar("day", (time(9),)).next_after(end, UTC)


@given(st.from_regex(RULE, fullmatch=True))
def test_every_parsed_rule_occurs_or_is_refused(when: str) -> None:
    with suppress(InputError):
        order = read_order(f"{when}: ask")
        assert order.next_after(NOW, BERLIN) > NOW
