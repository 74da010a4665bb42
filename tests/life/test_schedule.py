from datetime import UTC, datetime, time
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindstream.errors import InputError
from mindstream.life.recurrence import Calendar, Interval, Recurrence
from mindstream.life.schedule import ActiveHours, read_moment, read_order

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 22, 15, 30, tzinfo=BERLIN).timestamp()  # a Sunday
ZONES = [BERLIN, UTC, *map(ZoneInfo, ("Asia/Shanghai", "America/Santiago", "Australia/Lord_Howe", "Pacific/Apia"))]


def written(moment: float | None) -> str:
    return "" if moment is None else f"{datetime.fromtimestamp(moment, BERLIN):%Y-%m-%d %H:%M}"


@pytest.mark.parametrize(
    ("text", "what", "due"),
    [
        ("every day at 8: ask me how I slept", "ask me how I slept", ["11-23 08:00", "11-24 08:00"]),
        ("Every day, remind me at 9 to take pills", "remind me to take pills", ["11-23 09:00", "11-24 09:00"]),
        ("every 2 hours look into the folder", "look into the folder", ["11-22 16:00", "11-22 18:00"]),
        ("on weekdays at 07:30 wake me", "wake me", ["11-23 07:30", "11-24 07:30"]),
        ("every Friday to Sunday at quarter past 7 pm dance", "dance", ["11-22 19:15", "11-27 19:15"]),
        ("remind me every other Tuesday evening to rest", "remind me to rest", ["12-01 19:00", "12-15 19:00"]),
        ("the second Tuesday of every month at 7 pm: books", "books", ["12-08 19:00", "01-12 19:00"]),
        ("on the last day of every month, pay", "pay", ["11-30 09:00", "12-31 09:00"]),
        ("每天早上八点问我三个问题", "问我三个问题", ["11-23 08:00", "11-24 08:00"]),
        ("请在每天早上八点和晚上八点量血压", "请量血压", ["11-22 20:00", "11-23 08:00"]),
        ("每周一、三早上7点半跑步", "跑步", ["11-23 07:30", "11-25 07:30"]),
        ("每月1号和15号交房租", "交房租", ["12-01 09:00", "12-15 09:00"]),
    ],
)
def test_an_order_is_split_into_what_and_when(text: str, what: str, due: list[str]) -> None:
    order = read_order(text)
    assert order and order.what == what and order.text == text
    first = order.next_after(NOW, BERLIN)
    assert [written(first)[5:], written(order.next_after(first, BERLIN))[5:]] == due


@pytest.mark.parametrize(
    "text",
    ["buy milk", "on Monday at 9 call", "every now and then", "every day from 9 to 17 look", "每次我回家就问我", "",
     "what do I do every day?", "every time it rains", "every hour " * 500],
)  # fmt: skip
def test_what_is_not_understood_is_no_order(text: str) -> None:
    assert read_order(text) is None


@pytest.mark.parametrize(
    "text", ["every 0 hours", "every 30 seconds blink", "every day at 25:00", "每天25点叫我", "every 31 February",
             "every 99999 days", "on the 32nd of each month", "every morning at 17:00"],
)  # fmt: skip
def test_an_order_that_cannot_be_kept_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        read_order(text)


@pytest.mark.parametrize(
    ("words", "at"),
    [
        ("at 18:00", "2026-11-22 18:00"),
        ("in 20 minutes", "2026-11-22 15:50"),
        ("in an hour and a half", "2026-11-22 17:00"),
        ("tomorrow at 9", "2026-11-23 09:00"),
        ("the day after tomorrow at half past 6 in the evening", "2026-11-24 18:30"),
        ("next week", "2026-11-23 09:00"),
        ("2027-01-31 at 10:00", "2027-01-31 10:00"),
        ("tonight", "2026-11-22 21:00"),
        ("明天上午九点", "2026-11-23 09:00"),
        ("两个半小时后", "2026-11-22 18:00"),
        *((words, "") for words in ("soon", "", "every day", "10 minutes", "at 7 or 8", "when I get home", "马上")),
    ],
)
def test_a_moment_in_words(words: str, at: str) -> None:
    assert written(read_moment(words, NOW, BERLIN)) == at


@pytest.mark.parametrize("words", ["today at 8", "at 25:00", "2026-02-30", "今天下午三点"])
def test_a_moment_that_there_is_not_is_refused(words: str) -> None:
    with pytest.raises(InputError):
        read_moment(words, NOW, BERLIN)


@given(st.text(alphabet="every 每两天周一days at89:点半, 后in month下\n", max_size=40))
def test_whatever_is_read_lies_ahead(text: str) -> None:
    try:
        order, moment = read_order(text), read_moment(text, NOW, BERLIN)
    except InputError:
        return
    assert order is None or order.next_after(NOW, BERLIN) > NOW
    assert moment is None or moment >= NOW


# What a rule promises, whatever it is.

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
def test_the_next_time_lies_ahead_and_none_is_skipped(
    rule: Recurrence, moment: float, zone: ZoneInfo, share: float
) -> None:
    due = rule.next_after(moment, zone)
    assert due > moment
    between = moment + share * (due - moment)
    assert between == due or rule.next_after(between, zone) == due


def test_a_beat_keeps_the_local_clock_when_it_is_put_forward_and_back() -> None:
    rule = Calendar("day", (time(2, 30), time(3)))
    spring = datetime(2027, 3, 27, 12, tzinfo=BERLIN).timestamp()
    due = [at := rule.next_after(spring, BERLIN), rule.next_after(at, BERLIN)]
    assert [written(at) for at in due] == ["2027-03-28 03:00", "2027-03-28 03:30"], "what is skipped comes later"
    autumn = datetime(2027, 10, 30, 12, tzinfo=BERLIN).timestamp()
    once = Calendar("day", (time(2, 30),))
    at = once.next_after(autumn, BERLIN)
    assert [written(at), written(once.next_after(at, BERLIN))] == ["2027-10-31 02:30", "2027-11-01 02:30"]


# Active hours.


@given(st.times(), st.times(), MOMENTS, st.sampled_from(ZONES))
def test_the_next_active_moment_is_active_and_the_first(
    since: time, until: time, moment: float, zone: ZoneInfo
) -> None:
    hours = ActiveHours(f"{since:%H:%M}-{until:%H:%M}", zone)
    found = hours.next_active(moment)
    assert found >= moment and hours.is_active(found) and hours.next_active(found) == found
    assert (found == moment) == hours.is_active(moment)
    assert found - moment <= 49 * 3_600


@pytest.mark.parametrize("words", ["", "8", "8:00", "25:00-26:00", "08:00-24:30", "morning", "8-9-10"])
def test_hours_that_are_none_are_refused(words: str) -> None:
    with pytest.raises(InputError, match="08:00-22:00"):
        ActiveHours(words)
