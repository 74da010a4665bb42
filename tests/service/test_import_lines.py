from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from mindstream.errors import InputError
from mindstream.service.transfer import MAX_CHAIN, MAX_LINE, Header, read_export

ID = "0abcdefgh1jkmnpqrs"
NOTE: dict[str, Any] = {"id": ID, "kind": "note", "text": "The user drinks tea.", "created": 1_700_000_000.0}
BELIEF = {"kind": "belief", "slot": "sleep", "version": 1, "data": {"value": {}}}
PLAN = {"kind": "plan", "slot": "sleep.plan", "version": 1, "data": {"plan": {"steps": []}}}


def lines(*records: dict[str, Any] | bytes, **header: Any) -> Iterator[bytes]:
    """Yield an export with these records."""
    yield json.dumps({"mindstream": "memory", "format": 1, **header}).encode()
    yield from (each if isinstance(each, bytes) else json.dumps(each).encode() for each in records)


def refused(*records: dict[str, Any] | bytes, **header: Any) -> str:
    with pytest.raises(InputError) as caught:
        read_export(lines(*records, **header), "file", Header)
    told = str(caught.value)
    assert len(told) < 500 and told.isprintable() and "nothing was imported" in told
    return told


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"kind": "admin"}, "file:3: kind"),
        ({"created": -1e11}, "file:3: created"),
        ({"forgotten": float("nan")}, "file:3: not JSON (NaN is not a JSON number)"),
        ({"level": 10**30}, "file:3: level"),
        ({"text": "\x00\x01"}, "file:3: the text has nothing to read"),
        ({"text": "a" * 100_001}, "file:3: the text is too long"),
        ({"id": "x' OR 1=1 --"}, "file:3: id"),
        ({"id": ID + "\n"}, "file:3: id"),
        ({"stream": "bob"}, "file:3: stream"),
        ({"\x1b[31mred": 1}, "file:3: �[31mred"),
        ({"evidence": [ID + "2"]}, "file:3: the record"),
        ({"keywords": ["k"] * 10**5}, "file:3: keywords"),
        ({"data": {"a": "\ud800"}}, "file:3: data"),
        ({"slot": "sleep", "version": 1}, "file:3: slot"),
        ({**BELIEF, "slot": "sleep.plan"}, "file:3: slot"),
        ({**PLAN, "data": {"plan": {"steps": 3}}}, "file:3: data.plan.steps"),
        ({**BELIEF, "data": {"value": 3}}, "file:3: data.value"),
        ({**BELIEF, "version": 2**63 - 1}, "file:3: version"),
    ],
)
def test_an_impossible_record_is_refused_with_its_line(change: dict[str, Any], told: str) -> None:
    assert told in refused(NOTE, {**NOTE, "id": ID + "2", **change})


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b'{"a": ' + b"[" * 100_000, "not JSON"),
        (b"\xff\xfe", "not UTF-8"),
        (b'{"id": "' + b"a" * MAX_LINE + b'"}', "a record's line may have"),
        (json.dumps({**NOTE, "data": {"a": json.loads("[" * 100 + "]" * 100)}}).encode(), "file:2: data: values are"),
    ],
)
def test_a_line_without_a_record_is_refused(line: bytes, told: str) -> None:
    assert told in refused(line)


def test_duplicates_are_refused_with_both_lines() -> None:
    assert "file:3: id: line 2 already contains the record" in refused(NOTE, {**NOTE, "text": "another"})
    again = {**NOTE, **BELIEF, "id": ID + "2"}
    assert "file:3: version: line 2 already contains version 1 of 'sleep'" in refused({**NOTE, **BELIEF}, again)


def count(*records: dict[str, Any]) -> int:
    with read_export(lines(*records), "file", Header) as export:
        return len(export)


def chain(length: int, last: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """Make records of which each was drawn from the next."""
    ids = [f"{n:06d}chain" for n in range(length)]
    evidence = [*((id_,) for id_ in ids[1:]), last]
    return [{**NOTE, "id": id_, "evidence": list(some)} for id_, some in zip(ids, evidence, strict=True)]


def test_evidence_that_leads_on_and_on_or_in_a_ring_is_refused() -> None:
    assert count(*chain(MAX_CHAIN)) == MAX_CHAIN
    assert "evidence: the derivation of this record is circular" in refused(*chain(MAX_CHAIN + 3))
    assert "file:3: evidence: the derivation of this record is circular" in refused(NOTE, *chain(3, ("000000chain",)))


@pytest.mark.parametrize(
    "header",
    [{"records": 2}, {"records": -1}, {"format": 2**70}, {"mindstream": "mind"}, {"user": 7}, {"user": "a" * 10**6}],
)
def test_an_inconsistent_header_is_refused(header: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        read_export(lines(NOTE, **header), "file", Header)
