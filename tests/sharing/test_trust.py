"""Whether a pair is served depends on its own evidence and on the other pairs of its source."""

from __future__ import annotations

from mindstream.sharing.events import ExemplarJudged
from mindstream.sharing.trust import MAX_LOG_ODDS, SourceRecord


def pair(fit: float | None = 0.0, **others: object) -> ExemplarJudged:
    return ExemplarJudged(id="x", verdict="admitted", fit=fit, **others)


def source(*fits: float | None, orders: int = 0) -> SourceRecord:
    record = SourceRecord()
    for fit in fits:
        record.add(pair(fit))
    for _ in range(orders):
        record.add(pair(None, orders=True))
    return record


def test_an_unusual_pair_is_served_only_from_an_established_honest_source() -> None:
    odd = pair(-0.5)
    assert not source(*[2.0] * 30).doubt(odd, "ann")
    assert "may not belong" in source(-0.5).doubt(odd, "new")
    assert source(*[2.0] * 30, *[-2.0] * 8).doubt(odd, "mixed")


def test_a_fitting_pair_is_served_from_a_mixed_but_not_a_foreign_source() -> None:
    fits = pair(2.5)
    assert not source(*[2.0] * 30, *[-2.0] * 8).doubt(fits, "mixed")
    assert source(2.5, *[-2.0] * 30).doubt(fits, "foreign")


def test_an_honest_history_does_not_admit_foreign_pairs() -> None:
    turned = source(*[9.0] * 400, *[-MAX_LOG_ODDS] * 40)
    assert source(*[9.0] * 40).doubt(pair(-MAX_LOG_ODDS - 1), "ann") and turned.doubt(pair(0.5), "ann")


def test_one_false_order_alarm_does_not_block_a_source() -> None:
    assert not source(*[None] * 6, orders=1).doubt(pair(None), "ann")
    assert not source(orders=1).doubt(pair(None), "ann")
    assert "orders in 4 of" in source(orders=4).doubt(pair(None), "mallory")
