"""Personal data is replaced by a mark before anything is stored, sent or shown."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_endpoint import KEY, FakeEndpoint
from hamlet import hamlet
from mindstream_town.town import Town

from mindstream import Coach, ManualClock, Memory, Mind, SqliteStore, redaction
from mindstream.errors import SettingsError
from mindstream.log.events import Heard, Logged, Redacted
from mindstream.memory.store.record import RecordDraft, Triple
from mindstream.memory.store.store import Commit
from mindstream.models.embedders.embedder import WordLlama
from mindstream.models.providers.provider import provider
from mindstream.redaction import Cleaned
from mindstream.service.importing.reading import Source, reader
from mindstream.service.importing.writing import Import
from mindstream.service.operations.memory import RetainRequest, retain
from mindstream.service.operations.operation import LOCAL_PRINCIPAL
from mindstream.service.operations.runtime import Runtime
from mindstream.service.transfer import Header, export, import_records, read_export
from mindstream.settings import Settings
from mindstream.sharing.admission import Pair, lay_in
from mindstream.sharing.pool import Pool
from mindstream.text.personal import open_redactor
from mindstream.tools.call import observe_text


class Numbers:
    """Removes a known word, so that redaction is visible without the library."""

    def clean(self, text: str) -> Cleaned:
        count = text.count("4711")
        return Cleaned(text.replace("4711", "[phone]"), Counter({"phone": count} if count else {}))


def bytes_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest.fixture
def switched_on() -> Iterator[None]:
    redaction.switch_on(Numbers())
    yield
    redaction.switch_on(None)


@pytest.mark.usefixtures("switched_on")
async def test_redacted_parts_of_an_utterance_reach_neither_disk_nor_model(folder: Path, door: FakeEndpoint) -> None:
    model = provider(f"{door.url}#any", api_key=KEY, patience_s=5)
    async with Mind.open(
        folder, user="ann", model={"talker": model, "default": "rules"}, responder=Coach.using()
    ) as mind:
        rows = [row async for row in mind.hear("Call 4711, or again 4711, at night.")]
        await mind.settled()
    await model.aclose()
    told = [row.event for row in rows if isinstance(row.event, Heard | Redacted)]
    assert isinstance(told[0], Heard) and told[0].text == "Call [phone], or again [phone], at night."
    assert told[1:] == [Redacted(kinds={"phone": 2})], "the kinds are logged, not the values"
    asked = repr(door.asked)
    assert "Call [phone]" in asked and "4711" not in asked
    assert b"4711" not in bytes_of(folder)


@pytest.mark.usefixtures("switched_on")
async def test_retained_imported_and_observed_texts_are_redacted(folder: Path, tmp_path: Path) -> None:
    clock = ManualClock()
    redaction.switch_on(None)
    async with SqliteStore(tmp_path / "before") as store:
        ann = Memory(store, "ann", WordLlama(), clock)
        about = Triple("ann", "dials", "4711")
        await ann.retain("It was 4711 before.", "note", data={"said": ["4711"]}, keywords=("code 4711",), about=about)
        lines = [line.encode() async for line in export(ann)]
    redaction.switch_on(Numbers())
    passage = {"id": "1", "text": "Ann's code is 4711", "metadata": {"code": ["4711"]}, "tags": ["4711"]}
    source = Source("passages", io.BytesIO(json.dumps([passage]).encode()))
    async with SqliteStore(folder) as store, Memory(store, "ann", WordLlama(), clock) as memory:
        await memory.retain("The door opens with 4711.", "note")
        await memory.retain_all([RecordDraft(text="4711 it is", kind="chat")])
        with read_export(lines, "before", Header) as held:
            await import_records(Memory(store, "ann", WordLlama(), clock), held, lambda _: None)
        taken = Import("letta", store, WordLlama(), clock, "ann")
        await taken.run(reader("letta")(source, taken.tally), lambda _: None)
        records = (await store.changes(memory.key, 0)).records
        await memory.correct(records[0].id, "The door opens with 4711 and a pull.")
    texts = [each.text for each in records]
    assert texts == ["The door opens with [phone].", "[phone] it is", "It was [phone] before.", "Ann's code is [phone]"]
    assert records[2].data == {"said": ["[phone]"]} and records[3].data["metadata"] == {"code": ["[phone]"]}
    assert records[3].keywords == ("[phone]",) and b"4711" not in bytes_of(folder)
    assert observe_text("found: 4711").text == "found: [phone]"


@pytest.mark.usefixtures("switched_on")
async def test_keywords_and_data_of_retained_texts_are_redacted(folder: Path) -> None:
    async with Runtime(Settings(data=folder)) as runtime:
        ask = RetainRequest(text="It is 4711.", keywords=["code 4711"], data={"code": {"door": ["4711"]}})
        told = await retain(runtime, LOCAL_PRINCIPAL.of("ann"), ask)
        assert told.redacted == {"phone": 1}
        (record,) = await (await runtime.memory(LOCAL_PRINCIPAL.of("ann"))).latest("note")
    assert (record.text, record.keywords, record.data) == (
        "It is [phone].",
        ("code [phone]",),
        {"code": {"door": ["[phone]"]}},
    )
    assert b"4711" not in bytes_of(folder)


@pytest.mark.usefixtures("switched_on")
async def test_redaction_and_message_are_logged_together_or_not_at_all(folder: Path) -> None:
    """Otherwise an answer that never arrives would block this message and all later ones."""
    async with Mind.open(folder, user="ann", responder=Coach.using()) as mind:
        commits = list[Commit]()
        commit = mind.memory.store.commit

        async def watched(*given: Commit) -> list[Logged]:
            commits.extend(given)
            return await commit(*given)

        mind.memory.store.commit = watched  # type: ignore[method-assign]
        await anext(rows := mind.hear("Call 4711."))
        await rows.aclose()
    (first,) = [[type(each.event) for each in one.entries] for one in commits if one.wake and one.entries]
    assert first == [Heard, Redacted]


@pytest.mark.usefixtures("switched_on")
async def test_texts_in_pools_and_towns_are_redacted(folder: Path, tmp_path: Path) -> None:
    async with Pool.open(tmp_path / "pool", "codes") as pool:
        await pool.create("doors", "olga", members=["*"])
        (laid,) = await lay_in(pool, [Pair("Which code opens 4711?", "4711 opens it.")], "olga")
        assert (laid.query, laid.answer) == ("Which code opens [phone]?", "[phone] opens it.")
    async with Town.open(folder, hamlet()) as town:
        name = next(iter(town.residents))
        assert (await town.whisper(name, "The code is 4711.")).text == "The code is [phone]."
        ann = await town.embody("Ann Visits", as_visitor=True)
        await ann.do("dial 4711", minutes=1)
    assert b"4711" not in bytes_of(folder) + bytes_of(tmp_path / "pool")


def test_an_unknown_redactor_is_named() -> None:
    with pytest.raises(SettingsError, match="there is no redactor 'regex'"):
        open_redactor("regex")


@pytest.fixture(scope="module")
def presidio() -> redaction.Redactor:
    pytest.importorskip("presidio_analyzer", reason="mindstream[redact] is not installed")
    return open_redactor("presidio")


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("Mail ann.b+x@example.org today.", "Mail [email] today."),
        ("Card 4111 1111 1111 1111, not 4111 1111 1111 1112.", "Card [card], not 4111 1111 1111 1112."),
        ("Ruf 030 901820 an.", "Ruf [phone] an."),
        ("npm/bootstrap@5.3.0 on 127.0.0.1", "npm/bootstrap@5.3.0 on 127.0.0.1"),
        ("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!", "[key]!"),
        ("I sleep from 22:30 to 6:45.", "I sleep from 22:30 to 6:45."),
    ],
)
def test_presidio_takes_out_what_has_a_form(said: str, kept: str, presidio: redaction.Redactor) -> None:
    cleaned = presidio.clean(said)
    assert cleaned.text == kept and bool(cleaned.taken) == (said != kept)
    assert presidio.clean(cleaned.text) == Cleaned(cleaned.text), "a mark is not redacted again"


@pytest.mark.usefixtures("presidio")
def test_redaction_recall_on_the_sealed_set_is_as_documented() -> None:
    from redaction import measure  # benchmarks/

    lines = Path(__file__).parents[2] / "benchmarks" / "redaction.jsonl"
    read = [json.loads(line) for line in lines.read_text("utf-8").splitlines()]
    found = measure([each for each in read if each["set"] == "sealed"])
    assert {kind for kind, row in found.items() if row["recall"] >= 0.9} == {
        "email", "card", "iban", "ip", "key", "phone",
    }  # fmt: skip
