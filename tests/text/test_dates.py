from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindstream.text.dates import spans

NOW = datetime(2023, 8, 16, 15, 30, tzinfo=UTC).timestamp()  # a Wednesday


def read(text: str) -> list[tuple[str, str]]:
    """Return the first day of each time span and the day after its last."""
    return [
        (f"{datetime.fromtimestamp(span.since, UTC):%Y-%m-%d}", f"{datetime.fromtimestamp(span.until, UTC):%Y-%m-%d}")
        for span in spans(text, NOW)
    ]


@pytest.mark.parametrize(
    ("text", "since", "until"),
    [
        ("What did I eat on 7 May 2023?", "2023-05-07", "2023-05-08"),
        ("2023-05-07: what happened?", "2023-05-07", "2023-05-08"),
        ("Where was she on 3 December?", "2022-12-03", "2022-12-04"),
        ("Who called in March?", "2023-03-01", "2023-04-01"),
        ("what did we plan last May", "2023-05-01", "2023-06-01"),
        ("How often did he swim in 2021?", "2021-01-01", "2022-01-01"),
        ("last winter", "2022-12-01", "2023-03-01"),
        ("yesterday's dinner", "2023-08-15", "2023-08-16"),
        ("three days ago", "2023-08-13", "2023-08-14"),
        ("last week", "2023-08-07", "2023-08-14"),
        ("last Friday", "2023-08-11", "2023-08-12"),
        ("last weekend", "2023-08-12", "2023-08-14"),
        ("in the past two weeks", "2023-08-02", "2023-08-17"),
        ("the week before 3 August 2023", "2023-07-27", "2023-08-04"),
        ("between August and November 2022", "2022-08-01", "2022-12-01"),
        ("what did we eat at Christmas?", "2022-12-24", "2022-12-27"),
        ("昨天我吃了什么", "2023-08-15", "2023-08-16"),
        ("昨晚我没睡好", "2023-08-15", "2023-08-16"),
        ("今早吃了什么", "2023-08-16", "2023-08-17"),
        ("十二天前", "2023-08-04", "2023-08-05"),
        ("上周三", "2023-08-09", "2023-08-10"),
        ("上个月睡得怎么样", "2023-07-01", "2023-08-01"),
        ("去年五月", "2022-05-01", "2022-06-01"),
        ("2023年5月7日发生了什么", "2023-05-07", "2023-05-08"),
        ("最近三天", "2023-08-13", "2023-08-17"),
    ],
)
def test_a_date_phrase_is_a_time_span(text: str, since: str, until: str) -> None:
    assert read(text) == [(since, until)]


def test_two_dates_are_two_spans_in_order() -> None:
    assert [since for since, _ in read("between 2 June and 5 July 2022")] == ["2023-06-02", "2022-07-05"]


@pytest.mark.parametrize(
    "text",
    [
        "may I ask who may know?",
        "the march to the sea",
        "I ran 2000 metres",
        "",
        "三个月饼",
    ],
)
def test_other_text_gives_no_date(text: str) -> None:
    assert read(text) == []


@given(st.text(max_size=60))
def test_any_text_can_be_parsed(text: str) -> None:
    for span in spans(text, NOW):
        assert span.since < span.until


@given(st.from_regex(r"\A(last |in |on )?\d{1,4}[ 年/-](May|月|days ago|weeks)?[ ,-]?\d{0,4}[日天]?(前)?\Z"))
def test_numbers_beyond_the_calendar_raise_nothing(text: str) -> None:
    spans(text, NOW)
