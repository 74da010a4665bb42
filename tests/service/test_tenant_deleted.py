"""A deleted tenant leaves no row, no other file, and no byte in the files."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import postgres_server
import pytest
from both_stores import STORES, opener
from world import Words

from mindstream import Coach, ManualClock, Memory, Mind
from mindstream.clock import DAY_S
from mindstream.errors import ErasedMeanwhile, InputError, StorageError
from mindstream.identifiers import StreamName
from mindstream.log.audit import Deed
from mindstream.log.events import Opened, Remembered, Thought
from mindstream.log.files import history
from mindstream.log.retention import Rule
from mindstream.memory.opening import open_store
from mindstream.memory.store.checkpoints import Checkpoint
from mindstream.memory.store.record import RecordDraft, Triple
from mindstream.memory.store.sql_store import SqlStore
from mindstream.memory.store.store import RESULT, Entry, NewWork, WorkReleased
from mindstream.models.prompt import ask
from mindstream.models.rules import Rules
from mindstream.service.operations.operation import operations_of
from mindstream.service.privacy.erase import delete_tenant, erase_person
from mindstream.service.privacy.retention import set_rule
from mindstream.sharing.admission import Pair, lay_in, offer
from mindstream.sharing.grading import DraftRubric
from mindstream.sharing.pool import Pool

if TYPE_CHECKING:
    import psycopg

WORDS = {
    "text": "Zibethtext", "log": "Zibethlog", "slot": "zibethslot", "keyword": "Zibethkey", "about": "Zibethabout",
    "data": "Zibethdata", "by": "Zibethby", "session": "Zibethsession", "error": "Zibetherror", "check": "Zibethcheck",
    "name": "zibethname", "tenant": "zibethtenant",
    "work": "zibethwork", "unique": "zibethunique", "pool": "Zibethpool",
    "result": "Zibethresult", "came": "Zibethcame",
}  # fmt: skip


async def plant(
    store: SqlStore, user: str, clock: ManualClock, words: Mapping[str, str] = WORDS
) -> tuple[list[str], bytes]:
    """Write one row of each kind; return the ids and the bytes of a vector."""
    async with Memory(store, user, Words(), clock) as memory:
        drafts = [RecordDraft(
            text=f"{words['text']} number {n} sings", kind="note", by=words["by"], episode=words["session"],
            keywords=(words["keyword"],), about=Triple("user", "keeps", words["about"]), data={"own": words["data"]},
        ) for n in range(300)]  # fmt: skip
        records = await memory.build_records(drafts)
        entry = Entry(Remembered(count=300, kinds={"note": 300}), words["by"], tuple(records))
        (row,) = await memory.commit(
            entry, wake=NewWork((words["work"],), "me", clock.now() + 9e9), unique=words["unique"],
            checkpoint=Checkpoint("head", 1, words["check"].encode()),
        )  # fmt: skip
        work = await store.claim(memory.key, words["work"], "me", clock.now(), clock.now() + 9e9)
        await memory.commit(put_back=WorkReleased(tuple(each.id for each in work), "me", f"failed at {words['error']}"))
        await memory.commit(Entry(Thought(slot="s", about=(row.seq,), text=words["log"], model="m"), "s"))
        (version,) = await memory.build_records(
            [RecordDraft(text="believed", kind="belief", slot=words["slot"], version=1, data={"value": {}})]
        )
        await memory.commit(Entry(Remembered(count=1, kinds={"belief": 1}), "s", (version,)))
    vector = records[7].vector
    assert vector is not None
    return [each.id for each in records[:5]], np.asarray(vector, np.float16).tobytes()


def found(places: Iterable[Path], wanted: Iterable[bytes]) -> list[str]:
    """Return the words that occur in the bytes of files."""
    contents = [(path, path.read_bytes()) for path in places if path.is_file()]
    return sorted({f"{word!r} in {path.name}" for path, content in contents for word in wanted if word in content})


def cluster() -> list[Path]:
    """Return all files of the PostgreSQL server except the log before the last write, and its text log."""
    with postgres_server.psycopg_admin() as admin:
        for _ in range(2):
            admin.execute("SELECT pg_switch_wal()")
            admin.execute("CHECKPOINT")
        (home,) = map(Path, admin.execute("SHOW data_directory").fetchone() or ())
    return [path for path in home.rglob("*") if "pg_wal" not in path.parts and path.name != "log"]


@pytest.mark.parametrize("kind", STORES)
async def test_deleting_a_tenant_leaves_no_byte_of_it(kind: str, folder: Path) -> None:
    clock, open_one = ManualClock(1e9), opener(kind, folder)
    ours = open_one()
    acme = open_one(WORDS["tenant"])
    ids, vector = await plant(acme, WORDS["name"], clock)
    async with Pool.open(acme, "rivers", guarded=False) as pool:
        await pool.create("geography", WORDS["name"], members=["*"])
        await lay_in(pool, [Pair(f"Which river is in {WORDS['pool']}?", "The Tiber.")], WORDS["name"])
    await set_rule(ours, Rule(WORDS["tenant"], 90 * DAY_S))
    async with Memory(ours, "olga", Words(), clock) as olga:
        kept = await olga.retain("The river Quaxon is long.", "note")
    key = acme.key(StreamName("user", WORDS["name"]))
    for stream in (key, operations_of(WORDS["tenant"])):
        await acme.keep(stream, f"{RESULT}{WORDS['result']}", clock.now(), lambda _: WORDS["came"])
    await acme.compact()  # as upkeep does: ANALYZE reads every table
    if kind == "sqlite":
        typed = history(folder, key)
        typed.parent.mkdir(parents=True)
        typed.write_text(f"+{WORDS['text']}\n")
        (folder / "mended-20261122T032126Z").mkdir()
        shutil.copyfile(folder / "mindstream.db", folder / "mended-20261122T032126Z" / "mindstream.db")
    wanted = [*(word.encode() for word in WORDS.values()), *(each.encode() for each in ids), vector]
    places = cluster if kind == "postgres" else lambda: [*folder.rglob("*")]
    before = found(places(), wanted)
    assert {word for word in wanted if any(repr(word) in each for each in before)} == {*wanted}, (
        "all files hold the text at first"
    )
    gone = await delete_tenant(acme, folder if kind == "sqlite" else None)
    assert gone.rows["records"] > 300 and gone.rows["work"] >= 1
    await ours.note(
        clock.now(), Deed("tenant_deleted", "command", "olga", tenant=WORDS["tenant"], counts=gone.counts())
    )
    await acme.close()
    assert found(places(), wanted) == []
    assert [each.text for each in (await ours.changes(olga.key, 0)).records] == [kept.text]
    assert [each.did for each in await ours.audit(tenant=WORDS["tenant"])] == ["tenant_deleted"]
    await ours.close()


@contextlib.contextmanager
def older_reader() -> Iterator[psycopg.Connection]:
    """Begin a transaction that sees the rows as they are now, as an export or ANALYZE by the server does."""
    with postgres_server.psycopg_admin() as reader:
        reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        reader.execute("SELECT count(*) FROM pg_class")
        yield reader


async def test_deleted_bytes_do_not_stay_because_another_transaction_could_read_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """VACUUM FULL copies rows that were deleted after the snapshot of another transaction of the database began."""
    clock, open_one = ManualClock(1e9), opener("postgres", folder)
    words = {key: f"q{word}" for key, word in WORDS.items()}  # other words than those of the test above
    acme = open_one(words["tenant"])
    await plant(acme, words["name"], clock, words)
    wanted = [word.encode() for key, word in words.items() if key not in ("pool", "result", "came")]
    with older_reader():
        monkeypatch.setattr("mindstream.memory.store.postgres.connection.SEEN_S", 0.3)
        with pytest.raises(
            StorageError, match=r"an older transaction of the database .* end that transaction \(process"
        ):
            await delete_tenant(acme)
    with older_reader() as reader:  # it ends while the deletion waits
        monkeypatch.setattr("mindstream.memory.store.postgres.connection.SEEN_S", 60.0)
        deleting = asyncio.ensure_future(delete_tenant(acme))
        await asyncio.sleep(0.5)
        assert not deleting.done()
        reader.execute("COMMIT")
        await deleting
    await acme.close()
    assert found(cluster(), wanted) == []
    with pytest.raises(InputError, match="there are no data of a tenant"):
        again = open_one(words["tenant"])
        try:
            await delete_tenant(again)
        finally:
            await again.close()


async def test_deleting_an_unknown_tenant_is_refused(folder: Path) -> None:
    open_one = opener("sqlite", folder)
    for tenant, said in (("acme", "there are no data of a tenant 'acme'"), ("", "are not a tenant")):
        store = open_one(tenant)
        with pytest.raises(InputError, match=said):
            await delete_tenant(store, folder)
        await store.close()


@pytest.mark.parametrize("kind", STORES)
async def test_erasing_a_person_keeps_the_namesake_in_another_tenant(kind: str, folder: Path) -> None:
    clock, open_one = ManualClock(1e9), opener(kind, folder)
    stores = [open_one("acme"), open_one("other")]
    for store in stores:
        async with Pool.open(store, "rivers", guarded=False) as pool:
            await pool.create("geography", "olga", members=["*"])
            await pool.freeze_rubric(await ask(Rules(), DraftRubric(domain="geography")), "olga")
            await offer(
                pool,
                Pair(f"Which river flows through Zibethville, {store.tenant.name}?", "The Quaxon does."),
                "ann",
                Rules(),
            )
        async with Memory(store, "ann", Words(), clock) as ann:
            await ann.retain(f"{store.tenant.name} knows Zibeth", "note")
    gone = await erase_person(stores[0], "ann", clock)
    assert gone.rows["records"] == 1 and gone.elsewhere > 0
    rows = [await store.events() for store in stores]
    told = ["".join(f"{row.by} {row.event.model_dump_json()}" for row in each) for each in rows]
    assert "Zibeth" not in told[0] and "ann" not in told[0] and "Zibethville" in told[1]
    assert await stores[0].streams() != await stores[1].streams()
    with pytest.raises(InputError, match="there is no user"):
        await erase_person(stores[0], "ann", clock)
    for store in stores:
        await store.close()


@pytest.mark.parametrize("kind", STORES)
async def test_a_mind_open_elsewhere_writes_no_erased_text_back(kind: str, folder: Path) -> None:
    clock, open_one = ManualClock(1e9), opener(kind, folder)
    here, there = open_one(), open_one()
    async with Mind.open(there, user="ann", embed=Words(), clock=clock, responder=Coach.using()) as mind:
        await mind.send("The parrot Zibeth sings.")
        await mind.settled()
        await erase_person(here, "ann", clock)
        with pytest.raises(ErasedMeanwhile):
            await mind.send("Does it sing still?")
        key = there.key(StreamName("user", "ann"))
        assert await here.events(key) == []
    assert await here.events(key) == [], "also when it ends"
    async with Mind.open(there, user="ann", embed=Words(), clock=clock, responder=Coach.using()) as mind:
        await mind.send("A new beginning.")
    assert [row.event.kind for row in await here.events(key, kinds=["heard", Opened.kind])] == [Opened.kind, "heard"]
    for store in (here, there):
        await store.close()


def test_no_tenant_name_stands_for_all_tenants(folder: Path) -> None:
    """The store that sees all tenants is for servers; as a tenant name it would delete everything."""
    for name in ("*", "%", "../acme", "ac\nme"):
        with pytest.raises(InputError, match="tenant"):
            open_store(folder, name)
    assert not folder.exists()
