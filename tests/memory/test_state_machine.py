"""A store against a dictionary: operations of this process, a second store or another process, with restarts."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from keys import key_of

from mindstream import Record, SqliteStore
from mindstream.errors import Conflict
from mindstream.log.events import Remembered
from mindstream.memory.forgetting_curve import StrengthState
from mindstream.memory.store.record import UNIQUE, Kind, new_id, normalised
from mindstream.memory.store.store import Commit, Entry, Revision

STREAMS, KINDS = ("ann", "bob"), ("note", "observation", "chat")
streams, kinds = st.sampled_from(STREAMS), st.sampled_from(KINDS)
texts = st.sampled_from(["tea", "Tea!", "coffee", "茶", "a longer text about tea"])
PAST, FUTURE = 1.0, 9e9
ANOTHER = Path(__file__).with_name("another_process.py")


@pytest.fixture(scope="module")
def another() -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen([sys.executable, str(ANOTHER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with process:
        yield process
        assert process.stdin
        process.stdin.close()


class Machine(RuleBasedStateMachine):
    """`records`: the expected content in write order; `mirror`: the content according to the reported changes."""

    another: subprocess.Popen[str]

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.place = tempfile.TemporaryDirectory()
        self.store, self.second = SqliteStore(self.place.name), SqliteStore(self.place.name)
        self.records: dict[str, Record] = {}
        self.mirror: dict[str, Record] = {}
        self.upto = dict.fromkeys(STREAMS, 0)
        self.now = 1e9

    def teardown(self) -> None:
        self.runner.run(self.store.close())
        self.runner.run(self.second.close())
        self.runner.close()
        self.place.cleanup()

    def record(self, stream: str, kind: Kind, text: str) -> Record:
        self.now += 1
        return Record(
            id=new_id(self.now), stream=key_of(stream), kind=kind, text=text, created=self.now, accessed=self.now
        )

    def commit(
        self, stream: str, *records: Record, revisions: tuple[Revision, ...] = (), distinct: bool = False
    ) -> None:
        self.now += 1
        entries = (Entry(Remembered(count=len(records), kinds={}), "test", records, distinct),) if records else ()
        store = self.second if int(self.now) % 3 == 0 else self.store
        self.runner.run(store.commit(Commit(mind=key_of(stream), at=self.now, entries=entries, revisions=revisions)))
        self.records |= {record.id: record for record in records}

    def holding(self, stream: str, kind: Kind | None = None) -> list[Record]:
        ours = [each for each in self.records.values() if each.stream == stream and kind in (None, each.kind)]
        return [each for each in ours if (each.valid_until or FUTURE) > self.now and each.forgotten is None]

    def one(self, data: st.DataObject) -> Record:
        return self.records[data.draw(st.sampled_from(sorted(self.records)))]

    @rule(stream=streams, kind=kinds, several=st.lists(texts, min_size=1, max_size=3))
    def write(self, stream: str, kind: Kind, several: list[str]) -> None:
        self.commit(stream, *(self.record(stream, kind, text) for text in several))

    @rule(stream=streams, kind=kinds, text=texts)
    def write_distinct(self, stream: str, kind: Kind, text: str) -> None:
        said = {normalised(record.text) for record in self.holding(stream, kind)}
        if kind in UNIQUE and normalised(text) in said:
            with pytest.raises(Conflict):
                self.commit(stream, self.record(stream, kind, text), distinct=True)
        else:
            self.commit(stream, self.record(stream, kind, text), distinct=True)

    @rule(stream=streams, kind=kinds, text=texts)
    def write_from_another_process(self, stream: str, kind: Kind, text: str) -> None:
        record = self.record(stream, kind, text)
        self.tell(stream=stream, kind=kind, id=record.id, text=text, at=record.created)
        self.records[record.id] = record

    @precondition(lambda self: self.records)
    @rule(data=st.data())
    def forget_from_another_process(self, data: st.DataObject) -> None:
        old = self.one(data)
        self.now += 1
        self.tell(stream=old.stream, forget=old.id, at=self.now)
        self.records[old.id] = replace(old, forgotten=self.now)

    def tell(self, **line: object) -> None:
        assert self.another.stdin and self.another.stdout
        self.another.stdin.write(json.dumps({"folder": self.place.name, **line}) + "\n")
        self.another.stdin.flush()
        assert self.another.stdout.readline() == "ok\n"

    @rule(stream=streams, kind=kinds, text=texts, until=st.sampled_from([PAST, FUTURE]))
    def write_with_an_end(self, stream: str, kind: Kind, text: str, until: float) -> None:
        self.commit(stream, replace(self.record(stream, kind, text), valid_until=until))

    @precondition(lambda self: self.records)
    @rule(data=st.data(), level=st.integers(-1, 6))
    def touch(self, data: st.DataObject, level: int) -> None:
        old = self.one(data)
        was = StrengthState(old.level, old.lasting, old.accessed)
        self.commit(old.stream, revisions=(Revision(id=old.id, level=level, accessed=self.now, was=was),))
        self.records[old.id] = replace(old, level=level, accessed=self.now - 1)

    @precondition(lambda self: self.records)
    @rule(data=st.data())
    def touch_too_late(self, data: st.DataObject) -> None:
        old = self.one(data)
        wrong = Revision(id=old.id, level=5, was=StrengthState(old.level + 1, False, old.accessed))
        with pytest.raises(Conflict):
            self.commit(old.stream, self.record(old.stream, "note", "not to be written"), revisions=(wrong,))

    @precondition(lambda self: self.records)
    @rule(data=st.data(), text=texts)
    def supersede(self, data: st.DataObject, text: str) -> None:
        old = self.one(data)
        new = self.record(old.stream, old.kind, text)
        ending = Revision(id=old.id, valid_until=self.now, superseded_by=new.id, holds=True)
        if (old.valid_until or FUTURE) > self.now and old.forgotten is None:
            self.commit(old.stream, new, revisions=(ending,))
            self.records[old.id] = replace(old, valid_until=new.created, superseded_by=new.id)
        else:
            with pytest.raises(Conflict):
                self.commit(old.stream, new, revisions=(ending,))

    @precondition(lambda self: self.records)
    @rule(data=st.data())
    def another_stream_cannot_write(self, data: st.DataObject) -> None:
        old = self.one(data)
        other = next(stream for stream in STREAMS if stream != old.stream)
        self.commit(other, revisions=(Revision(id=old.id, forgotten=1.0),))
        assert self.runner.run(self.store.erase(key_of(other), [old.id])) == 0

    @precondition(lambda self: self.records)
    @rule(data=st.data())
    def erase(self, data: st.DataObject) -> None:
        old = self.one(data)
        assert self.runner.run(self.store.erase(old.stream, [old.id])) == 1
        del self.records[old.id]

    @rule(stream=streams)
    def erase_all(self, stream: str) -> None:
        gone = [id_ for id_, record in self.records.items() if record.stream == stream]
        assert self.runner.run(self.store.erase(key_of(stream))) == len(gone)
        for id_ in gone:
            del self.records[id_]

    @rule()
    def restart(self) -> None:
        self.runner.run(self.store.close())
        self.store = SqliteStore(self.place.name)

    @rule()
    def compact(self) -> None:
        self.runner.run(self.second.compact())

    @invariant()
    def all_readers_see_the_same(self) -> None:
        for stream in STREAMS:
            ours = [self.seen(record) for record in self.records.values() if record.stream == stream]
            for store in (self.store, self.second):
                assert [
                    self.seen(record) for record in (self.runner.run(store.changes(key_of(stream), 0))).records
                ] == ours
                assert [
                    self.seen(record)
                    for record in self.runner.run(store.records(key_of(stream), [each.id for each in ours]))
                ] == ours
            assert self.runner.run(self.store.streams()) == sorted({record.stream for record in self.records.values()})

    @invariant()
    def changes_report_everything(self) -> None:
        for stream in STREAMS:
            changes = self.runner.run(self.store.changes(key_of(stream), self.upto[stream]))
            self.upto[stream] = changes.upto
            self.mirror |= {record.id: self.seen(record) for record in changes.records}
            for id_ in changes.gone:
                self.mirror.pop(id_, None)
        assert self.mirror == {id_: self.seen(record) for id_, record in self.records.items()}

    @invariant()
    def latest_and_find_same_agree(self) -> None:
        for stream in STREAMS:
            holding = self.holding(stream)
            assert [each.id for each in self.runner.run(self.store.latest(key_of(stream), n=999, now=self.now))] == [
                each.id for each in holding
            ]
            notes = {normalised(each.text) for each in holding if each.kind == "note"}
            known = self.runner.run(
                self.second.find_same(key_of(stream), "note", ["TEA", "coffee.", "nobody"], now=self.now)
            )
            assert known.keys() == notes & {"tea", "coffee"}

    def seen(self, record: Record) -> Record:
        return replace(record, seq=0)


def test_a_store_behaves_like_a_dictionary(another: subprocess.Popen[str]) -> None:
    Machine.another = another
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=20, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
