"""Everything left by a person is erased: in pools, other minds, and documents with no other reader."""

from __future__ import annotations

from pathlib import Path

import pytest
from keys import key_of

from mindstream import Coach, Mind, SqliteStore
from mindstream.errors import InputError
from mindstream.log.events import Heard, Remembered
from mindstream.memory.memory import Memory
from mindstream.memory.store.checkpoints import Checkpoint
from mindstream.memory.store.record import RecordDraft
from mindstream.memory.store.store import Commit, Entry
from mindstream.models.prompt import ask
from mindstream.models.rules import Rules
from mindstream.service.calling import open_user_memory
from mindstream.service.privacy import erase as erasing
from mindstream.settings import Settings
from mindstream.sharing.admission import Pair, lay_in, offer
from mindstream.sharing.grading import DraftRubric
from mindstream.sharing.learning import NAME
from mindstream.sharing.pool import Pool
from mindstream.tools.documents import open_documents


def holds(folder: Path, word: str) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.is_file() and word.encode() in path.read_bytes()]


async def erase(folder: Path, user: str) -> erasing.UserData:
    async with open_user_memory(Settings(data=folder, user=user)) as found:
        kept = await erasing.find_user_data(found, folder)
        await erasing.erase(found, folder, kept)
        with pytest.raises(InputError, match="there is no user"):
            await erasing.find_user_data(found, folder)
        return kept


async def test_erasing_a_person_leaves_no_byte_of_them_in_a_pool(folder: Path) -> None:
    cities = {"Paris": "Seine", "Rome": "Tiber", "Vienna": "Danube", "London": "Thames", "Seoul": "Han"}
    laid = [Pair(f"Which river flows through {city}?", f"The {river} does.") for city, river in cities.items()]
    async with Pool.open(folder, "cities", guarded=False) as pool:
        await pool.create("geography", "olga", members=["*"])
        await pool.freeze_rubric(await ask(Rules(), DraftRubric(domain="geography")), "olga")
        await lay_in(pool, laid, "olga")
        await offer(
            pool,
            Pair("Which river flows through Zorroville?", "The Zibeth flows through Zorroville."),
            "zorro",
            Rules(),
        )
        asked = Pair("Which river flows through my Zanzibarina?", "The Quaxon flows there.", "", "zorro")
        own = await offer(pool, asked, "ben", Rules())
        drawn = Pair("Which river flows through Ulm?", "The Danube flows through Ulm.", examples=(own.id,))
        await offer(pool, drawn, "ben", Rules())
        await pool.share("zorro", ["ben", "zorro"])
        kept = Checkpoint(NAME, 1, b"weights of all")
        learned = Entry(Remembered(count=0, kinds={}), NAME)
        await pool.memory.store.commit(Commit(mind=pool.memory.key, at=1.0, entries=(learned,), checkpoint=kept))
    async with Pool.open(folder, "stones") as pool:
        await pool.create("stones", "zorro")
    for word in ("zorro", "Zorroville", "Zibeth", "Zanzibarina", "Quaxon", "weights of all"):
        assert holds(folder, word), word
    kept_of = await erase(folder, "zorro")
    assert set(kept_of.elsewhere) == {"pool:cities", "pool:stones"}
    assert any("'stones' stays" in each for each in kept_of.stays)
    for word in ("zorro", "Zorroville", "Zibeth", "Zanzibarina", "Quaxon", "weights of all"):
        assert holds(folder, word) == [], word
    async with Pool.open(folder, "cities") as pool:
        found = await pool.recall("Which river flows through Paris?", 10, reader="olga")
        assert found and all("[erased]" not in each.query for each in found)
        assert all(each.query != "Which river flows through Ulm?" for each in found), (
            "it was derived from erased records"
        )


@pytest.mark.parametrize(
    ("owner", "members", "erased", "stays"),
    [
        ("zorro", [], "zorro", False),
        ("zorro", ["olga", "*"], "zorro", False),
        ("olga", ["zorro"], "zorro", True),
        ("olga", ["*"], "zorro", True),
    ],
)
async def test_the_domain_of_a_pool_is_erased_with_its_owner(
    folder: Path, owner: str, members: list[str], erased: str, stays: bool
) -> None:
    domain = 'sayings about the "Zibeth", «é» of my aunt'
    async with Pool.open(folder, "sayings", guarded=False) as pool:
        await pool.create(domain, owner, members=members)
        await pool.freeze_rubric(await ask(Rules(), DraftRubric(domain="sayings")), owner)
        await offer(pool, Pair("What does one say of tea?", "It is never too late for it."), owner, Rules())
    async with Memory.open(folder, erased) as memory:
        await memory.retain("It rains.")
    await erase(folder, erased)
    assert bool(holds(folder, "Zibeth")) is stays and holds(folder, erased) == []
    async with Pool.open(folder, "sayings", guarded=False) as pool:
        created = (await pool.state()).created
        assert created is not None and created.domain == (domain if stays else "sayings")


async def test_words_of_a_person_in_another_mind_are_erased_and_the_rest_stays(folder: Path) -> None:
    async with Mind.open(folder, user="ann", responder=Coach.using()) as mind:
        async for _ in mind.hear("The parrot Zibeth sings.", by="zorro"):
            pass
        assert await mind.send("I keep a diary of the tides.")
        await mind.settled()
    await erase(folder, "zorro")
    assert holds(folder, "Zibeth") == [] == holds(folder, "zorro")
    assert holds(folder, "diary of the tides")


async def test_erasing_a_user_named_like_a_reasoner_erases_nothing_of_others(folder: Path) -> None:
    async with Mind.open(folder, user="ann", responder=Coach.using()) as mind:
        await mind.send("I keep a diary of the tides.")
        await mind.settled()
        before = len(await mind.memory.store.events(key_of("ann"), kinds=[Heard.kind, "said", "thought"]))
    for name in ("coach", "facts", "sleep"):
        async with Memory.open(folder, name) as stream:
            await stream.retain_all([RecordDraft(text="a note of my own", kind="note")])
        await erase(folder, name)
    store = SqliteStore(folder)
    rows = await store.events(key_of("ann"), kinds=[Heard.kind, "said", "thought"])
    await store.close()
    assert len(rows) == before and all("[erased]" not in row.event.model_dump_json() for row in rows)


async def test_passages_are_erased_with_the_last_user_who_searched_them(folder: Path, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.md").write_text("# Birds\n\nThe parrot Zibeth sings at noon.\n")
    for reader in ("zorro", "ben"):
        async with Memory.open(folder, reader) as stream:
            await stream.retain_all([RecordDraft(text=f"{reader} was here", kind="note")])
        async with open_documents(docs, folder, reader=reader) as documents:
            await documents.refresh()
    first = await erase(folder, "zorro")
    assert any("another user has searched" in each for each in first.stays)
    assert holds(folder, "Zibeth") and not holds(folder, "zorro")
    last = await erase(folder, "ben")
    assert len(last.elsewhere) == 1 and holds(folder, "Zibeth") == []
