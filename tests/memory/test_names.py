"""Stream names have a kind: no name typed for one kind reaches a stream of another."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from contextlib import AbstractAsyncContextManager
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from world import Words

from mindstream import ChatBot, FakeModel, ManualClock, Memory, Mind, SqliteStore
from mindstream.errors import Conflict, InputError, MindstreamError
from mindstream.identifiers import (
    StreamKey,
    StreamKind,
    StreamName,
    checked_name,
    checked_tenant,
    id_of,
    name_of,
    shown_name,
    tenant_of,
)
from mindstream.location import Location
from mindstream.log.database import FILE, open_database
from mindstream.log.events import Failed, Remembered
from mindstream.log.files import history
from mindstream.memory.opening import open_store
from mindstream.memory.store.queries import INSERT, insertion, sum_of_event
from mindstream.memory.store.record import Kind, Record, RecordDraft, new_id
from mindstream.memory.store.store import Commit, Entry
from mindstream.memory.store.tables import MIGRATIONS
from mindstream.server.tokens import Tokens
from mindstream.service.doctor.repair import faults, looking_into, mend
from mindstream.service.operations.offered import read_towns
from mindstream.service.operations.operation import Forbidden, Principal
from mindstream.settings import Settings
from mindstream.sharing.admission import Pair, lay_in
from mindstream.sharing.pool import Pool
from mindstream.tools.documents import open_documents

KINDS: tuple[StreamKind, ...] = ("user", "pool", "resident", "town", "documents")
TYPED = ["verse", "pool:verse", "#pool#verse", "acme#user#ann", "town", "life", "documents.0123456789abcdef", "ann"]
AWKWARD = "anAÀаοI1l０Ａﬀ Ⅳé:|/.@+-_ᅠㅤ茶\u0301\u200b\u202e#'\0"


# The attacks.


@pytest.mark.parametrize("tenant", ["_town", "_", "_life", "__", "_Town.2"])
async def test_reserved_tenant_names_are_refused(tenant: str, folder: Path) -> None:
    async def make_token() -> None:
        async with SqliteStore(folder) as store:
            await Tokens(lambda: store, ManualClock()).new(tenant, "read", 1)

    for opened in (open_store, SqliteStore):
        with pytest.raises(InputError, match="reserved"):
            opened(folder, tenant)
    with pytest.raises(InputError, match="reserved"):
        await make_token()
    with pytest.raises(InputError, match="reserved"):
        read_towns([f"{tenant}/ville={folder}"])
    async with open_store(Location(folder, tenant=tenant)) as own:
        assert tenant_of(own.key(StreamName("town", "town"))) == tenant, "internal parts are opened by location"


async def test_a_user_named_like_a_pool_cannot_read_or_erase_it(tmp_path: Path) -> None:
    async with Pool.open(tmp_path, "verse") as pool:
        await pool.create("verse", "olga", members=(), shared=False)
        await lay_in(pool, [Pair("A line on tea?", "Steam climbs the window.")], "olga")
        key = pool.memory.key
    async with Mind.open(tmp_path, user="pool:verse") as mind:
        assert await mind.memory.recall("tea, steam, window", touch=False) == []
        assert "Steam" not in str(await mind.memory.store.events(mind.memory.key))
        await mind.memory.store.erase(mind.memory.key)
        assert len((await mind.memory.store.changes(key, 0)).records) == 1


async def test_a_user_named_like_documents_cannot_read_or_poison_them(tmp_path: Path) -> None:
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "a.md").write_text("The violin is under the stairs.")
    async with open_documents(tmp_path / "papers", tmp_path / "data", embed=Words()) as documents:
        await documents.refresh()
        typed = f"documents.{documents.memory.name}"
        async with Memory.open(documents.memory.store, typed, embed=Words()) as attacker:
            assert await attacker.recall("violin stairs") == []
            await attacker.retain("The violin is in the attic.", "document")
        assert len(await documents.memory.recall("violin", 9, kinds=["document"], touch=False)) == 1


async def test_the_second_of_two_concurrent_pool_creations_is_refused(tmp_path: Path) -> None:
    async with Pool.open(tmp_path, "verse") as one, Pool.open(tmp_path, "verse") as other:
        both = await asyncio.gather(one.create("a", "ann"), other.create("b", "bob"), return_exceptions=True)
        assert sorted(type(each).__name__ for each in both) == ["InputError", "NoneType"]
        state = await one.state()
        assert state.created and state.created == (await other.state()).created


async def test_a_plain_key_cannot_name_another_kind_of_stream(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    for typed in ("#pool#verse", "acme#user#ann", "a#b", ""):
        with pytest.raises(InputError):
            store.key(StreamName("user", typed))
    for made in ("#user#ann", "##", "#pool#", "x#pool#a#b", "#king#ann"):
        with pytest.raises(InputError):
            await store.commit(said(StreamKey(made)))
    await store.close()


# Lookalike names.


@pytest.mark.parametrize(("there", "typed"), [("ann", "аnn"), ("Ivo", "Ӏvo")])
async def test_a_lookalike_user_name_is_refused_and_nothing_is_written(there: str, typed: str, tmp_path: Path) -> None:
    async with Mind.open(tmp_path, user=there) as mind:
        with pytest.raises(InputError, match="looks the same"):
            async with Mind.open(mind.memory.store, user=typed):
                pass
        pool = StreamName("pool", typed)
        await mind.memory.store.commit(said(mind.memory.store.key(pool)))  # no danger between different kinds


async def test_names_are_normalised_and_case_is_kept(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    assert store.key(StreamName("user", "Ａnn")) == store.key(StreamName("user", "Ann"))
    assert store.key(StreamName("user", "e\u0301va")) == store.key(StreamName("user", "éva"))
    for typed in ("Ann", "ann", "ANN"):
        await store.commit(said(store.key(StreamName("user", typed))))
    async with Memory.open(store, "Ａnn", embed=Words()) as stream:
        assert stream.name == "Ann"
        assert len(await store.events(stream.key)) == 1
    await store.close()


SPELLINGS = [
    ("Zoë", "Zoe\u0308"), ("Łukasz 2", "  Łukasz\u00a02\u3000"), ("ann", "ann\u200b"), ("ann", "ann\ufeff\n"),
    ("ann", "annᅠ"),
    ("देवनागरी", "देव\u200cनागरी"), ("ｔｅａ．house", "tea.house"), ("한국", "\u1112\u1161\u11ab\u1100\u116e\u11a8"),
]  # fmt: skip


@pytest.mark.parametrize(("written", "read"), SPELLINGS)
async def test_equivalent_spellings_name_the_same_user_session_pool_agent_and_token(
    written: str, read: str, tmp_path: Path
) -> None:
    async with Memory.open(tmp_path, written, embed=Words()) as memory:
        await memory.retain_messages([{"role": "user", "content": "Tea at four."}], session=written)
        store, name = memory.store, memory.name
        async with Memory.open(store, read, embed=Words()) as same:
            assert same.name == name and len(await same.sessions()) == 1
            assert len(await same.recall("tea", touch=False)) == 1
            assert (await same.forget(session=read)).records == 1
        async with Mind.open(store, user=read, session=read) as mind:
            assert mind.session == name
        async with Pool.open(store, written, embed=Words()) as pool:
            await pool.create("tea", written, members=(read,))
        async with Pool.open(store, read, embed=Words()) as pool:
            assert (await pool.member_state(read)).members == (name,)
            await lay_in(pool, [Pair("When is tea?", "At four.")], read)
            assert len(await pool.recall("tea", reader=written)) == 1
    principal = Principal(checked_tenant("acme"), frozenset({"read"}), only=written)
    assert principal.of(read).user == name
    with pytest.raises(Forbidden):
        principal.of(f"x{read.strip()}")
    assert Settings(user=read).user == name


@pytest.mark.parametrize(
    "typed", ["", " ", "\u200b", "a\0b", "-ann", "\u0301a", "a#b", "x" * 101, "a\nb", "🙂", "Anna 🙂", "'Ann'", "’"]
)
def test_an_invalid_name_is_refused_with_the_allowed_characters(typed: str) -> None:
    with pytest.raises(InputError, match="use 1 to 100 letters") as refused:
        checked_name(typed, "user")
    assert len(str(refused.value)) < 250


@pytest.mark.parametrize("name", [None, 7, b"ann"])
async def test_a_name_that_is_no_string_is_refused(name: Any, folder: Path) -> None:
    opened: list[AbstractAsyncContextManager[object]] = [
        Memory(folder, name),
        Memory.open(folder, name),
        Mind.open(folder, user=name),
        Pool.open(folder, name),
        ChatBot.open(folder, user=name, model=FakeModel(["Hello!"])),
    ]
    for each in opened:
        with pytest.raises(InputError, match=f"expected a name as a string, found {type(name).__name__}"):
            async with each:
                pass


@pytest.mark.parametrize("typed", ["O'Neill", "O’Neill", "d\u02bcArtagnan", "Zoë O'Brien-王明", "N'Golo"])
def test_apostrophes_in_names_are_normalised(typed: str) -> None:
    assert checked_name(typed) == typed.replace("’", "'").replace("\u02bc", "'")


async def test_data_of_an_earlier_version_is_found_by_either_spelling(tmp_path: Path) -> None:
    for written, read in (("ann ", "ann"), ("Ｂｏｂ", "Bob"), ("evaᅠ", "eva\u200b"), ("e\u0301va", "éva")):
        folder = tmp_path / read
        async with Memory.open(folder, "x", embed=Words()) as memory:
            await memory.retain("Tea at four.", "note")
        with contextlib.closing(sqlite3.connect(folder / FILE)) as database, database:
            for table, column in (("log", "mind"), ("records", "stream"), ("streams", "key")):
                database.execute(f"UPDATE {table} SET {column} = ?", (written,))
            database.execute("UPDATE streams SET normal = ?", (written,))
        for typed in (written, read):
            async with Memory.open(folder, typed, embed=Words()) as memory:
                assert (await memory.latest("note", 5))[0].text == "Tea at four."
                await memory.retain("read" if typed == read else "written", "note")
        async with Memory.open(folder, read, embed=Words()) as memory:
            assert len(await memory.latest("note", 5)) == 3


# Ten thousand pairs.


names = st.builds(
    lambda kind, typed: (kind, typed),
    st.sampled_from(KINDS),
    st.sampled_from(TYPED) | st.text(AWKWARD, min_size=1, max_size=5) | st.text(min_size=1, max_size=4),
)
"""A kind, and text typed by a user."""


def test_ten_thousand_pairs_of_names_are_isolated(tmp_path: Path) -> None:
    pairs = crossings = 0
    written: set[str] = set()

    @settings(max_examples=90, suppress_health_check=list(HealthCheck), database=None, derandomize=True)
    @given(st.lists(names, min_size=32, max_size=40, unique=True))
    def across(drawn: list[tuple[StreamKind, str]]) -> None:
        nonlocal pairs, crossings
        found: list[StreamName] = []
        for kind, typed in drawn:
            with contextlib.suppress(InputError):
                found.append(StreamName(kind, typed))
        runner.run(write_all(store, found, written))
        for name in found:
            texts = {record.text for record in runner.run(store.changes(store.key(name), 0)).records}
            rows = runner.run(store.events(store.key(name)))
            assert {row.mind for row in rows} <= {store.key(name)}
            crossings += len(texts - {whose(name)})
        pairs += len(list(combinations(found, 2)))

    with asyncio.Runner() as runner:
        store = SqliteStore(tmp_path)
        across()
        runner.run(store.close())
    assert pairs >= 10_000 and crossings == 0


async def write_all(store: SqliteStore, found: list[StreamName], written: set[str]) -> None:
    """Write into each stream a text that identifies its owner, once."""
    fresh = {store.key(name): name for name in found if store.key(name) not in written}
    written.update(fresh)
    commits = (store.commit(said(key, whose(name))) for key, name in fresh.items())
    for done in await asyncio.gather(*commits, return_exceptions=True):
        assert isinstance(done, list | InputError), "written, or refused as a lookalike of another name"


def whose(name: StreamName) -> str:
    return f"{name.kind} {name.normal!r}"


def said(key: StreamKey, text: str = "hello") -> Commit:
    record = Record(id=new_id(1e9), stream=key, kind="chat", text=text, created=1e9, accessed=1e9)
    return Commit(mind=key, at=1e9, entries=(Entry(Remembered(count=1, kinds={"chat": 1}), "x", (record,)),))


@given(st.sampled_from(KINDS), st.text(AWKWARD, min_size=1, max_size=5), st.sampled_from(["", "acme", "a-1"]))
def test_a_stream_key_parses_to_its_name(kind: StreamKind, typed: str, tenant: str) -> None:
    try:
        name = StreamName(kind, typed, tenant)
    except InputError:
        return
    again = name_of(name.key)
    assert (again.kind, again.id, again.tenant, again.key) == (kind, name.normal, tenant, name.key)
    assert (shown_name(name.key), id_of(name.key, kind), tenant_of(name.key)) == (name.normal, name.normal, tenant)


# Names of an earlier version.


def old_folder(folder: Path) -> None:
    """Write a folder as the version before kinds of names did."""
    folder.mkdir()
    connection = open_database(folder / FILE, MIGRATIONS[:5])
    rows = [
        ("pool:verse", "pool_created", "olga"), ("pool:ann", "heard", "pool:ann"), ("town", "town_began", "town"),
        ("Ada Brook", "moved_in", "Ada Brook"), ("Ada Brook", "remembered", "whisper"),
        ("documents.0123456789abcdef", "remembered", "x"),
        ("ann", "heard", "ann"), ("аnn", "heard", "аnn"), ("Ａnn", "heard", "Ａnn"), ("Ann", "heard", "Ann"),
        ("ann", "task_changed", "life"), ("ann", "task_changed", "ann"),
    ]  # fmt: skip
    for seq, (mind, kind, by) in enumerate(rows, 1):
        row = (mind, 1e9, by, kind, "{}")
        connection.execute("INSERT INTO log VALUES (?, ?, ?, ?, ?, ?, ?)", (seq, *row, sum_of_event(*row)))
        held: Kind = "document" if mind.startswith("documents.") else "chat"
        record = Record(id=new_id(1e9), stream=StreamKey(mind), kind=held, text=mind, created=1e9, accessed=1e9)
        connection.execute(INSERT, insertion(record, seq, 1))
    connection.execute("UPDATE counters SET value = 1 WHERE name = 'changed'")
    connection.close()


def of_old(name: StreamName) -> str:
    return {"pool": "pool:", "documents": "documents."}.get(name.kind, "") + name.id


OLD = [
    StreamName("pool", "verse"), StreamName("user", "pool:ann"), StreamName("town", "town"),
    StreamName("resident", "Ada Brook"), StreamName("documents", "0123456789abcdef"), StreamName("user", "ann"),
    StreamName("user", "аnn"), StreamName("user", "Ａnn"), StreamName("user", "Ann"),
]  # fmt: skip


@pytest.mark.parametrize("mended", [False, True])
async def test_streams_of_an_earlier_version_are_kept_even_if_names_clash(mended: bool, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    old_folder(folder)
    if mended:
        assert not mend(folder).aside
    store = SqliteStore(folder)
    for name in OLD:
        texts = {record.text for record in (await store.changes(store.key(name), 0)).records}
        assert texts == {of_old(name)}, name
        await store.commit(said(store.key(name)))
    for gone in ("pool:verse", "documents.0123456789abcdef", "town", "Ada Brook"):
        assert await store.events(store.key(StreamName("user", gone))) == []
    told = [(row.event.entry()[0], row.by) for row in await store.events() if row.system]
    assert told == [("remembered", "whisper"), ("task_changed", "life")]
    with pytest.raises(Conflict):
        created = Commit(
            mind=store.key(OLD[0]), at=1e9, entries=(Entry(Failed(text="", where=""), "x"),), unique="created"
        )
        await store.commit(created)
    await store.close()
    with looking_into(folder / FILE) as connection:
        wrong = {fault.what for fault in faults(connection) if not fault.harmless}
    assert wrong <= {"rows of the log that this mindstream cannot read"}, "which are incomplete in this test"


async def test_a_damaged_row_is_still_reported_after_migration(tmp_path: Path) -> None:
    old_folder(tmp_path / "data")
    with contextlib.closing(sqlite3.connect(tmp_path / "data" / FILE, isolation_level=None)) as connection:
        connection.execute("UPDATE records SET words_sum = 7 WHERE stream = 'pool:verse'")
        connection.execute("UPDATE log SET sum = 7 WHERE mind = 'pool:verse'")
    await SqliteStore(tmp_path / "data").close()
    with looking_into(tmp_path / "data" / FILE) as connection:
        found = [fault.what for fault in faults(connection) if fault.user == StreamName("pool", "verse").key]
    for what in ("rows of the log", "records"):
        assert f"{what} that differ from what was written; their readable content is kept" in found


# Files.


def test_names_that_differ_only_in_case_have_separate_files(tmp_path: Path) -> None:
    typed = ("ann", "Ann", "ANN", "ÉVA", "éva", "%41nn")
    files = []
    for each in typed:
        with contextlib.suppress(MindstreamError):
            files.append(history(tmp_path, StreamName("user", each).key).name)
    assert len({each.casefold() for each in files}) == len(files) == 5


def test_shell_history_of_an_earlier_version_is_found(tmp_path: Path) -> None:
    old = tmp_path / "history" / "Ann.txt"
    old.parent.mkdir()
    old.write_text("+hello\n")
    assert history(tmp_path, StreamName("user", "ann").key).exists() is False
    assert history(tmp_path, StreamName("user", "Ann").key).read_text() == "+hello\n"
    assert not old.exists()


SESSIONS = [
    "a/b",
    " mon ",
    "e\u0301t\u00e9",
    "ｆull",
    "ﬁn",
    "O’Neill",
    "a\u200db",
    "😀",
    "two\nlines",
    "half \ud83d",
    "50%",
]


@pytest.mark.parametrize("session", SESSIONS)
async def test_a_session_has_one_name_for_writing_listing_and_forgetting(session: str, tmp_path: Path) -> None:
    async with Memory.open(tmp_path, "ann", embed=Words()) as memory:
        await memory.retain("The ferry leaves at nine.", episode=session)
        await memory.retain_messages([{"role": "user", "content": "When does it leave?"}], session=session)
        assert len(await memory.list(session=session)) == 2
        await memory.forget(session=session)
        assert await memory.list() == []


async def test_records_of_a_session_under_an_older_form_of_its_name_are_found(tmp_path: Path) -> None:
    async with Memory.open(tmp_path, "ann", embed=Words()) as memory:
        await memory.retain_all([RecordDraft(text="The ferry leaves at nine.", episode=" e\u0301 ")])
        await memory.retain("It is late.", episode=" e\u0301 ")
        assert [each.text for each in await memory.list(1, session=" e\u0301 ")] == ["It is late."]
        await memory.forget(session=" e\u0301 ")
        assert await memory.list() == []
