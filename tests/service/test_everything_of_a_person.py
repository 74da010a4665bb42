"""An archive holds everything of a person: a word is planted in each table, column and file."""

from __future__ import annotations

import itertools
import json
import zipfile
from pathlib import Path

import pytest
from both_stores import STORES, opener
from test_tenant_deleted import WORDS, plant
from world import Words

from mindstream import ManualClock, Memory
from mindstream.errors import InputError, StorageError
from mindstream.identifiers import StreamName
from mindstream.log.audit import Deed
from mindstream.log.erasure import ROWS
from mindstream.log.files import history
from mindstream.log.sql import Sql
from mindstream.memory.store.store import RESULT
from mindstream.models.prompt import ask
from mindstream.models.rules import Rules
from mindstream.service.privacy.person import collect_personal_data, write_archive
from mindstream.sharing.admission import Pair, offer
from mindstream.sharing.grading import DraftRubric
from mindstream.sharing.pool import Pool

NOBODYS = {"counters", "salts", "erasures", "audit", "retention", "mindstream_migrations", "sqlite_sequence", "writers"}
INDEXES = {"segments", "places", "postings", "nearness", "unindexed", "lineage", "log_lineage"}
"""Tables of which no row is a person's, or that are made of the records and go with them, by a trigger: a new one is
either here or in what is erased and exported."""
CATALOGUE = {
    "sqlite": "SELECT m.name, p.name, p.type FROM sqlite_master AS m JOIN pragma_table_info(m.name) AS p"
    " WHERE m.type = 'table'",
    "postgres": "SELECT table_name, column_name, data_type FROM information_schema.columns"
    " WHERE table_schema = current_schema()",
}


def plant_everywhere(rows: Sql, kind: str, key: str) -> dict[str, str]:
    """Put a unique word into each text column of a person's rows; return the word of each column."""
    columns = [tuple(map(str, row)) for row in rows.execute(CATALOGUE[kind]).fetchall()]
    tables = {table for table, _, _ in columns if not table.startswith("sqlite_stat")}
    assert tables - NOBODYS - INDEXES == ROWS.keys(), "a new table needs an entry here"
    planted, number = dict[str, str](), itertools.count()
    for table, column, type_ in columns:
        if table not in ROWS or column in (ROWS[table][0], "tenant"):
            continue
        if type_.upper() in ("TEXT", "BLOB", "BYTEA"):
            word = f"zibeth{next(number):03d}"
            value = word if type_.upper() == "TEXT" else word.encode()
            there = f"{ROWS[table][0]} = ?"
            mark = "ctid" if kind == "postgres" else "rowid"
            one = f"{mark} = (SELECT min({mark}) FROM {table} WHERE {there})" if has_mark(table, kind) else there
            assert rows.execute(f"UPDATE {table} SET {column} = ? WHERE {one}", (value, key)).rowcount, (table, column)
            planted[word] = f"{table}.{column}"
    return planted


def has_mark(table: str, kind: str) -> bool:
    return kind == "postgres" or table not in ("checkpoints", "uniques", "streams", "kept")


@pytest.mark.parametrize("kind", STORES)
async def test_the_archive_holds_words_from_every_column_and_file(kind: str, folder: Path, tmp_path: Path) -> None:
    clock, store = ManualClock(1e9), opener(kind, folder)()
    await plant(store, "ann", clock, {name: f"tapir {name}" for name in WORDS})
    key = store.key(StreamName("user", "ann"))
    await store.erase(key, [(await store.latest(key, ["note"], now=clock.now()))[0].id])
    async with Memory(store, "bob", Words(), clock) as bob:
        await bob.retain("what Quaxon told bob", "note")
    async with Pool.open(store, "rivers", guarded=False) as pool:
        await pool.create("geography", "olga", members=["*"])
        await pool.freeze_rubric(await ask(Rules(), DraftRubric(domain="geography")), "olga")
        await offer(pool, Pair("Which river flows through Zanzibarville?", "The Xibex does."), "ann", Rules())
    await store.note(clock.now(), Deed("exported", "command", "olgas-machine", about=key))
    typed = history(folder, key)
    typed.parent.mkdir(parents=True)
    typed.write_text("+zibethtyped\n")
    await store.keep(key, f"{RESULT}one", clock.now(), lambda _: "came")
    planted = await store.write(lambda rows: plant_everywhere(rows, kind, key))
    assert len(planted) == 30
    found = await collect_personal_data(store, "ann", clock.now(), folder)
    write_archive(found, tmp_path / "ann.zip")
    with zipfile.ZipFile(tmp_path / "ann.zip") as archive:
        names = archive.namelist()
        content = {name: archive.read(name).decode() for name in names}
    whole = "".join(content.values())
    assert {where for word, where in planted.items() if word not in whole} == set()
    for word in ("zibethtyped", "Zanzibarville", "Xibex", "olgas-machine", "pool rivers"):
        assert word in whole, word
    assert "Quaxon" not in whole, "only of this person"
    for name in names:
        if name.endswith(".jsonl"):
            assert all(isinstance(json.loads(line), dict) for line in content[name].splitlines())
    assert "<script" not in content["index.html"] and "All data of ann" in content["index.html"]
    assert (tmp_path / "ann.zip").stat().st_mode & 0o077 == 0
    with pytest.raises(StorageError, match="exists already"):
        write_archive(found, tmp_path / "ann.zip")
    with pytest.raises(InputError, match="there is no user"):
        await collect_personal_data(store, "carla", clock.now(), folder)
    await store.close()


@pytest.mark.parametrize("kind", STORES)
async def test_the_audit_in_the_archive_is_of_the_own_tenant_only(kind: str, folder: Path) -> None:
    clock, open_one = ManualClock(1e9), opener(kind, folder)
    async with open_one() as ours, open_one("acme") as acme:
        for store, tenant in ((ours, ""), (acme, "acme")):
            async with Memory(store, "ann", Words(), clock) as ann:
                await ann.retain("Ann was here.", "note")
            await ours.note(clock.now(), Deed("exported", "rest", f"token of {tenant}", about="ann", tenant=tenant))
        for store, tenant in ((ours, ""), (acme, "acme")):
            audit = (await collect_personal_data(store, "ann", clock.now(), ours=ours)).rows["audit"]
            assert [row["who"] for row in audit] == [f"token of {tenant}"]
