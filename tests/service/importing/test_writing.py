from __future__ import annotations

import asyncio
import gzip
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from foreign_samples import NOW, held, take_in

from mindstream import ManualClock, Memory, SqliteStore
from mindstream.clock import EARLIEST, LATEST
from mindstream.errors import InputError
from mindstream.memory.store.record import MAX_TEXT, RecordDraft, is_tainted
from mindstream.models.embedders.embedder import WordLlama
from mindstream.service.importing.giving import WRITERS, Given
from mindstream.service.importing.reading import FORMS, Form, Source, reader
from mindstream.service.importing.writing import BATCH, Import, pieces


def mem0(*memories: dict[str, Any]) -> bytes:
    return json.dumps({"results": memories}).encode()


async def test_known_texts_are_not_written_again_and_reported(store: SqliteStore) -> None:
    async with Memory(store, "ann", WordLlama(), ManualClock(NOW)) as stream:
        await stream.retain_all([RecordDraft(text="Drinks tea.", kind="note")])
    ended = {"id": "3", "memory": "drinks TEA", "expiration_date": "2020-01-01"}
    run = await take_in(store, "mem0", mem0({"id": "1", "memory": "drinks tea"}, {"id": "2", "memory": "Rows"}, ended))
    assert (run.done.written, run.done.same) == (2, 1)
    assert run.tally.lost["items"].example == "drinks tea"
    assert [record.text for record in await held(store)] == ["Drinks tea.", "Rows", "drinks TEA"]


async def test_concurrent_imports_write_each_record_once(store: SqliteStore) -> None:
    file = mem0(*({"id": str(n), "memory": f"thing {n}"} for n in range(2 * BATCH + 3)))
    one, other = await asyncio.gather(take_in(store, "mem0", file), take_in(store, "mem0", file))
    assert one.done.written + other.done.written == 2 * BATCH + 3 == len(await held(store))


async def test_a_changed_text_of_a_known_item_is_reported_not_written(store: SqliteStore) -> None:
    old = {"id": "1", "memory": "Rows on Sundays", "created_at": "2024-01-01"}
    await take_in(store, "mem0", mem0(old))
    run = await take_in(store, "mem0", mem0(old | {"memory": "Rows no more"}))
    assert (run.done.known, run.tally.lost["changed texts"].example) == (1, "Rows no more")


def zipped(**files: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return made.getvalue()


LINE, OTHER = b'{"text": "Rows"}', b'{"text": "Sings"}'
NODE = {"author": {"role": "user"}, "content": "Rows", "id": "1"}
TALK = json.dumps([{"id": "c", "current_node": "a", "mapping": {"a": {"message": NODE}}}]).encode()
WRAPPED: list[tuple[str, Form, bytes, int]] = [
    ("gzip", "mem0", gzip.compress(mem0({"id": "1", "memory": "Rows"})), 1),
    ("gzip of lines", "jsonl", gzip.compress(LINE + b"\n" + OTHER), 2),
    ("an archive of gzip", "chatgpt", gzip.compress(zipped(**{"a/Conversations.json": TALK})), 1),
    ("an archive of two", "jsonl", zipped(**{"a.jsonl": LINE, "b.JSON": OTHER, "notes.txt": b"no"}), 2),
    ("a copy's name", "chatgpt", zipped(**{"conversations (2).json": TALK}), 1),
    ("content as a text", "chatgpt", TALK, 1),
    ("a list", "jsonl", b"[" + LINE + b",\n" + OTHER + b"]", 2),
    ("an indented list", "jsonl", json.dumps([json.loads(LINE), json.loads(OTHER)], indent=2).encode("utf-16"), 2),
    ("an indented object", "jsonl", json.dumps({"items": [json.loads(LINE)]}, indent=1).encode(), 1),
    ("record separators, zeros", "jsonl", b"\x1e" + LINE + b"\n\x00\x00\n\x1e" + OTHER + b"\n", 2),
    ("parts", "jsonl", b'{"content": [{"type": "text", "text": "Rows"}, {"type": "image_url"}], "role": "user"}', 1),
    ("a message", "jsonl", b'{"id": "1", "message": {"role": "user", "content": "Rows"}}', 1),
    (
        "NaN and Infinity, as Python writes them",
        "mem0",
        mem0(
            {"id": "1", "memory": "Rows", "score": float("nan")}, {"id": "2", "memory": "Sings", "score": float("inf")}
        ),
        2,
    ),
    (
        "line breaks in a text",
        "mem0",
        b'[{"id": "1", "memory": "Rows", "why": "a\n\tb"}, {"id": "2", "memory": "Sings"}]',
        2,
    ),
    ("a long number", "zep", b'{"edges": [{"uuid": 123456789012345678901234567890, "fact": "Rows"}]}', 1),
    (
        "deleted memories",
        "mem0",
        mem0(
            {"id": "1", "memory": "Rows"},
            {"id": "2", "memory": "Sings", "event": "DELETE"},
            {"id": "3", "memory": "Swims", "is_deleted": 1},
            {"id": "4", "memory": "Skates", "deleted_at": "2024-01-01"},
        ),
        1,
    ),
    ("line ends of old computers", "jsonl", LINE + b"\r" + OTHER + b"\r", 2),
    ("a comma after each line", "jsonl", LINE + b",\n" + OTHER + b",\n", 2),
    ("NaN in a line", "jsonl", b'{"text": "Rows", "score": NaN}\n' + OTHER, 2),
    ("texts alone", "jsonl", b'"Rows"\n"Sings"', 2),
    ("other letter case", "jsonl", b'{"Text": "Rows"}\n{"CONTENT": "Sings"}', 2),
    (
        "conversations for fine-tuning",
        "jsonl",
        b'{"messages": [{"role": "user", "content": "Rows"}, {"role": "assistant", "content": "Sings"}]}',
        2,
    ),
    (
        "ShareGPT",
        "jsonl",
        b'[{"id": "x", "conversations": [{"from": "human", "value": "Rows"}, {"from": "gpt", "value": "Sings"}]}]',
        2,
    ),
    ("data", "mem0", b'{"data": [{"id": "1", "memory": "Rows"}]}', 1),
    ("an empty list first", "mem0", b'{"results": [], "memories": [{"id": "1", "memory": "Rows"}]}', 1),
    ("results in results", "mem0", b'{"results": {"results": [{"id": "1", "memory": "Rows"}]}}', 1),
    ("rows of a vector store", "mem0", b'[{"id": "1", "payload": {"data": "Rows", "user_id": "ann"}}]', 1),
    (
        "pages of results",
        "mem0",
        b'[{"results": [{"id": "1", "memory": "Rows"}]}, {"results": [{"id": "2", "memory": "Sings"}]}]',
        2,
    ),
    ("results in memories", "mem0", b'{"memories": {"results": [{"id": "1", "memory": "Rows"}]}}', 1),
    ("memories in data", "mem0", b'{"data": {"memories": [{"id": "1", "memory": "Rows"}]}}', 1),
    ("the answer of add", "mem0", b'[{"id": "1", "event": "ADD", "data": {"memory": "Rows"}}]', 1),
    (
        "deleted memories, otherwise said",
        "mem0",
        mem0(
            {"id": "1", "memory": "Rows"},
            {"id": "2", "memory": "Sings", "state": "deleted"},
            {"id": "3", "memory": "S", "event": "delete"},
        ),
        1,
    ),
    ("deleted lines", "jsonl", LINE + b'\n{"text": "a", "deleted": true}\n{"text": "b", "status": "Deleted"}', 1),
    (
        "Telegram",
        "jsonl",
        b'{"name": "X", "messages": [{"id": 1, "type": "service", "text": ""}, {"id": 2, "type": "message",'
        b' "from": "Otto", "text": ["Ro", {"type": "bold", "text": "ws"}], "date_unixtime": "1714557601"}]}',
        1,
    ),
    (
        "all of Telegram",
        "jsonl",
        b'{"chats": {"list": [{"id": 4, "messages": [{"from": "Otto", "text": "Rows"}]}]}}',
        1,
    ),
    (
        "Open WebUI",
        "jsonl",
        b'[{"id": "c", "chat": {"messages": [{"role": "user", "content": "Rows"}], "history": {}}}]',
        1,
    ),
    (
        "LibreChat",
        "jsonl",
        b'{"messages": [{"sender": "User", "text": "", "content": [{"type": "text", "text": {"value": "Rows"}}]}]}',
        1,
    ),
    (
        "Gemini's contents",
        "jsonl",
        b'{"role": "user", "parts": [{"text": "Rows"}]}\n{"role": "model", "parts": [{"text": "Sings"}]}',
        2,
    ),
    (
        "LangChain",
        "jsonl",
        b'{"page_content": "Rows", "metadata": {}}\n{"type": "ai", "data": {"content": "Sings"}}',
        2,
    ),
    ("core memory by label", "letta", b'{"core_memory": {"human": "Rows"}, "messages": []}', 1),
    ("an agent of the API", "letta", b'{"id": "a", "memory": {"blocks": [{"label": "human", "value": "Rows"}]}}', 1),
    ("passages in passages", "letta", b'[{"passage": {"id": "p", "text": "Rows"}}]', 1),
    (
        "a pasted text",
        "claude",
        b'[{"uuid": "c", "chat_messages": [{"sender": "human", "text": "",'
        b' "attachments": [{"file_name": "", "extracted_content": "Rows"}]}]}]',
        1,
    ),
    (
        "a voice note",
        "claude",
        b'[{"uuid": "c", "chat_messages": [{"sender": "human", "content": [{"type": "voice_note", "text": "Rows"}]}]}]',
        1,
    ),
    ("role and content", "claude", b'[{"uuid": "c", "chat_messages": [{"role": "user", "content": "Rows"}]}]', 1),
]


@pytest.mark.parametrize(("form", "data", "count"), [row[1:] for row in WRAPPED], ids=[row[0] for row in WRAPPED])
async def test_every_file_structure_is_read(store: SqliteStore, form: Form, data: bytes, count: int) -> None:
    run = await take_in(store, form, data)
    texts = [record.text for record in await held(store)]
    assert texts == ["Rows", "Sings"][:count] and run.done.written == count


@pytest.mark.parametrize(
    ("given", "at"),
    [
        ("9999-12-31T23:59:59Z", LATEST),
        ("9999-12-31", LATEST),
        (253_402_300_799, LATEST),
        (253_402_300_799_999, LATEST),
        ("2024-05-01T12:00:00z", 1_714_564_800.0),
        ("2024-05-01 12:00:00 UTC", 1_714_564_800.0),
        ("2024/5/1 12:00", 1_714_564_800.0),
        ("2024-05-01T14:00:00+02:00[Europe/Berlin]", 1_714_564_800.0),
        ("2024-05-01T14:00:00[Europe/Berlin]", 1_714_564_800.0),
        ("2024-04-30T24:00:00Z", 1_714_521_600.0),
        ("2016-12-31T23:59:60Z", 1_483_228_800.0),
        ("Wed, 01 May 2024 12:00:00 GMT", 1_714_564_800.0),
        ({"$date": "2024-05-01T12:00:00Z"}, 1_714_564_800.0),
        ({"$date": {"$numberLong": "1714564800000"}}, 1_714_564_800.0),
        ({"_seconds": 1_714_564_800, "_nanoseconds": 0}, 1_714_564_800.0),
    ],
)
async def test_the_end_of_a_fact_is_read_in_the_forms_of_databases(store: SqliteStore, given: Any, at: float) -> None:
    edges = [{"uuid": "1", "fact": "Rows", "valid_at": "0001-01-01T00:00:00", "invalid_at": given}]
    run = await take_in(store, "zep", json.dumps({"edges": edges}).encode())
    (found,) = await held(store)
    assert (found.valid_from, found.valid_until) == (EARLIEST, at)
    assert run.done.written == 1


@pytest.mark.parametrize(
    ("line", "by", "told"),
    [
        ({"text": "x", "user_id": "ann", "createdAt": "2024-05-01", "sessionId": "s", "tags": ["a", "b"]}, "", {}),
        ({"text": "x", "timestamp": "2024-5-1", "thread_id": "s", "keywords": "a, b"}, "", {}),
        ({"text": "x", "date": 20240501, "run_id": "s", "labels": ["a", "b"]}, "", {}),
        (
            {
                "content": "x",
                "author": {"id": "9", "name": "otto"},
                "ts": "1714521600.0",
                "chat_id": "s",
                "tags": "a,b",
            },
            "otto",
            {},
        ),
        (
            {"text": "x", "type": "message", "user": "U1", "ts": "1714521600.0", "tags": ["a", "b"], "episode": "s"},
            "U1",
            {},
        ),
        ({"text": "x", "from": None, "time": 1714521600000, "episode": "s", "tags": ["a", "b"]}, "unknown", {}),
        (
            {
                "text": "x",
                "sender": "User",
                "isCreatedByUser": True,
                "createdAt": "2024.05.01",
                "session": "s",
                "tags": "a,b",
            },
            "",
            {"isCreatedByUser": True},
        ),
    ],
)
async def test_fields_of_other_programs_are_read(
    line: dict[str, Any], by: str, told: dict[str, Any], store: SqliteStore
) -> None:
    """So another's words are not stored as the user's own, and keep their date, conversation and keywords."""
    await take_in(store, "jsonl", json.dumps(line).encode())
    (found,) = await held(store)
    assert (found.text, found.by, is_tainted(found)) == ("x", by or "ann", bool(by))
    assert (found.created, found.episode, found.keywords) == (1_714_521_600.0, "s", ("a", "b"))
    assert found.data.get("more", {}) == ({"type": "message"} if "type" in line else told)


@pytest.mark.parametrize("name", ["valid_to", "validUntil", "invalid_at", "expires_at", "expiration_date"])
async def test_the_end_of_a_line_is_read_under_every_usual_name(name: str, store: SqliteStore) -> None:
    line = {"text": "Rows", "valid_at": "2024-01-01", name: "2024-05-01"}
    await take_in(store, "jsonl", json.dumps(line).encode())
    (found,) = await held(store)
    assert (found.valid_from, found.valid_until) == (1_704_067_200.0, 1_714_521_600.0)


async def test_a_fact_that_ends_when_it_begins_is_kept(store: SqliteStore) -> None:
    edges = [{"uuid": "1", "fact": "Rows", "valid_at": "2024-05-01", "invalid_at": "2024-05-01"}]
    run = await take_in(store, "zep", json.dumps(edges).encode())
    (found,) = await held(store)
    assert (found.valid_from, found.valid_until) == (None, 1_714_521_600.0) and "valid_from" in run.tally.lost


async def test_a_conversation_of_chatgpt_without_dates_keeps_its_branch_and_order(store: SqliteStore) -> None:
    def node(parent: str | None, text: str, role: str, at: float | None) -> dict[str, Any]:
        return {"parent": parent, "message": {"author": {"role": role}, "content": text, "id": text, "create_time": at}}

    talk = {"a": node(None, "Rows", "user", None), "b": node("a", "Sings", "assistant", None)}
    await take_in(store, "chatgpt", json.dumps([{"id": "c", "update_time": 9.0, "mapping": talk}]).encode())
    assert [(each.text, each.created) for each in await held(store)] == [("Rows", 9.0), ("Sings", 9.0)]


async def test_a_first_message_of_chatgpt_without_a_date_stays_first(store: SqliteStore) -> None:
    talk = {
        "a": {"parent": None, "message": {"author": {"role": "user"}, "content": "Rows", "id": "1"}},
        "b": {
            "parent": "a",
            "message": {"author": {"role": "user"}, "content": "Sings", "id": "2", "create_time": 5.0},
        },
    }
    file = [{"id": "c", "title": None, "create_time": None, "update_time": 9.0, "mapping": talk, "current_node": "b"}]
    await take_in(store, "chatgpt", json.dumps(file).encode())
    assert [(each.text, each.created) for each in await held(store)] == [("Rows", 5.0), ("Sings", 5.0)]


async def test_messages_of_letta_keep_their_authors(store: SqliteStore) -> None:
    kinds = {"user_message": "Rows", "reasoning_message": "Hm", "assistant_message": "Sings", "system_message": "Be"}
    file = [{"message_type": kind, "content": text, "date": "2024-05-01"} for kind, text in kinds.items()]
    await take_in(store, "letta", json.dumps(file).encode())
    assert [(each.text, each.by, each.created) for each in await held(store)] == [
        ("Rows", "ann", 1_714_521_600.0),
        ("Sings", "Letta", 1_714_521_600.0),
    ]


@pytest.mark.parametrize(
    "row",
    [
        {"prefix": "memories.ann", "key": "k", "value": '{"content": "Rows"}'},
        {"namespace": "memories.ann", "key": "k", "value": {"data": "Rows"}},
    ],
)
async def test_rows_of_a_langgraph_table_are_read(row: dict[str, Any], store: SqliteStore) -> None:
    await take_in(store, "langmem", json.dumps(row).encode(), each_user=True)
    (found,) = await held(store, "ann")
    assert (found.text, found.data["namespace"]) == ("Rows", ["memories", "ann"])


async def test_two_items_with_one_id_are_reported(store: SqliteStore) -> None:
    run = await take_in(store, "mem0", mem0({"id": "1", "memory": "Rows"}, {"id": "1", "memory": "Sings"}))
    assert run.done.written == 1 and run.tally.lost["items"].example == "Sings"


async def test_a_text_too_long_for_one_record_is_split(store: SqliteStore) -> None:
    text = " ".join(f"wörd{n}" for n in range(25_000))
    run = await take_in(store, "mem0", mem0({"id": "1", "memory": text}))
    parts = await held(store)
    assert run.done.written == len(parts) == 3 and [part.data["part"] for part in parts] == [1, 2, 3]
    assert " ".join(part.text for part in parts) == text
    assert all(len(part.text) <= MAX_TEXT for part in parts)


async def test_a_text_is_kept_without_unusable_metadata(store: SqliteStore) -> None:
    deep: dict[str, Any] = {}
    for _ in range(60):
        deep = {"in": deep, "n": 1}
    run = await take_in(store, "mem0", mem0({"id": "1", "memory": "Rows", "metadata": deep}))
    (found,) = await held(store)
    assert found.text == "Rows" and "metadata" not in found.data and found.data["source_id"] == "1"
    assert "deep" in run.tally.lost["fields of an item"].why


async def test_an_invalid_user_name_is_reported(store: SqliteStore) -> None:
    run = await take_in(store, "mem0", mem0({"id": "1", "memory": "Rows", "user_id": "../x\n"}), each_user=True)
    assert run.done.left_out == 1 and "letters, digits" in run.tally.lost["items"].why


def bomb() -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("conversations.json", b'[{"title": "' + b"a" * (65 << 20) + b'"}]')
    return made.getvalue()


HOSTILE = {
    "cut off": (b'{"results": [{"id": "1", "memory": "a"}, {"id":', "not JSON"),
    "nothing": (b"", "not JSON: the file is empty"),
    "a number": (b"17", "expected JSON objects"),
    "no JSON": (b"\x89PNG\r\n\x1a\n", r"not JSON in the first 8 bytes \(lexical error[^;]*; nothing was imported$"),
    "a ZIP": (zipped(**{"export.zip": zipped(**{"memories.json": b"[]"})}), "unpack it"),
    "a broken archive": (b"PK\x03\x04" + b"0" * 100, "archive cannot be read"),
    "an archive of one huge object": (bomb(), "unpacks to 65 MB"),
}


@pytest.mark.parametrize("kind", HOSTILE)
async def test_an_invalid_file_is_refused_with_its_name(kind: str, store: SqliteStore) -> None:
    data, told = HOSTILE[kind]
    form: Form = "chatgpt" if "archive" in kind else "mem0"
    with pytest.raises(InputError, match=told) as caught:
        await take_in(store, form, data)
    assert str(caught.value).startswith("file") and len(str(caught.value)) < 500


def talk(n: int) -> dict[str, Any]:
    said = {
        "id": f"m{n}",
        "author": {"role": "user"},
        "content": {"content_type": "text", "parts": [f"I row {n} miles"]},
    }
    return {
        "conversation_id": f"c{n}",
        "current_node": "a",
        "mapping": {"a": {"message": said, "parent": None}, "b": None},
    }


def saying(n: int) -> dict[str, Any]:
    return {"uuid": f"c{n}", "chat_messages": [{"uuid": f"m{n}", "sender": "human", "text": f"I row {n} miles"}]}


ITEMS: dict[Form, tuple[str, str, Callable[[int], dict[str, Any]]]] = {
    "mem0": ('{"results": [', "]}", lambda n: {"id": f"{n}", "memory": f"Ann rows {n} miles", "user_id": "ann"}),
    "letta": ("[", "]", lambda n: {"id": f"{n}", "text": f"Ann rows {n} miles"}),
    "zep": ("[", "]", lambda n: {"uuid": f"{n}", "fact": f"Ann rows {n} miles", "user_id": "ann"}),
    "langmem": (
        "[",
        "]",
        lambda n: {"namespace": ["memories", "ann"], "key": f"{n}", "value": {"content": f"{n} miles"}},
    ),
    "chatgpt": ("[", "]", talk),
    "claude": ("[", "]", saying),
    "jsonl": ("", "", lambda n: {"id": f"{n}", "text": f"Ann rows {n} miles", "user": "ann"}),
}
BREAKS = [(1, 0, "{broken"), (2, 0, '{"a": tru}'), (501, 0, '{"id": "x", "memory": "cut o'), (3, 2, "\x01")]
"""The number of items before the break, the number of known ones, and the break itself."""


def written_out(form: Form, items: list[dict[str, Any]], broken: str = "", zipped: bool = False) -> bytes:
    before, after, _ = ITEMS[form]
    lines = [*map(json.dumps, items), *([broken] if broken else [])]
    text = "\r\n\n".join(lines) if form == "jsonl" else before + ",".join(lines) + after
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("export\\2026\\conversations.json", text)
        archive.writestr("export/users.json", "[]")
    return made.getvalue() if zipped else text.encode()


@pytest.mark.parametrize(("count", "there", "broken"), BREAKS)
@pytest.mark.parametrize("form", ITEMS)
async def test_a_broken_file_is_imported_up_to_the_error_and_counted(
    form: Form, count: int, there: int, broken: str, store: SqliteStore
) -> None:
    is_zip, item = form in ("chatgpt", "claude"), ITEMS[form][2]
    before = [item(n) for n in range(count)]
    if there:
        await take_in(store, form, written_out(form, before[:there]), each_user=True)
    with pytest.raises(InputError) as caught:
        await take_in(store, form, written_out(form, before, broken, is_zip), each_user=True)
    new = count - there
    said = f"; {new} record{'s' * (new != 1)} before it {'was' if new == 1 else 'were'} imported"
    assert said in str(caught.value) and (f", {there} existed; " in str(caught.value)) == bool(there)
    assert len(await held(store)) == count
    dry = Import(form, store, None, ManualClock(NOW), "ann")
    with pytest.raises(InputError, match=f"; 0 records before it would be imported, {count} existed$"):
        await dry.run(
            reader(form)(Source("f", io.BytesIO(written_out(form, before, broken))), dry.tally), lambda _: None
        )
    mended = await take_in(store, form, written_out(form, [*before, item(count)], zipped=is_zip), each_user=True)
    assert (mended.done.written, mended.done.known) == (1, count) and len(await held(store)) == count + 1


VARIANTS: dict[str, Callable[[str], bytes]] = {
    "UTF-8 with a mark": lambda text: text.encode("utf-8-sig"),
    "UTF-16 with a mark": lambda text: text.encode("utf-16"),
    "UTF-16 LE": lambda text: text.encode("utf-16-le"), "UTF-16 BE": lambda text: text.encode("utf-16-be"),
    "UTF-32": lambda text: text.encode("utf-32"),
}  # fmt: skip


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("form", ["mem0", "jsonl"])
async def test_json_is_read_in_every_unicode_encoding(form: Form, variant: str, store: SqliteStore) -> None:
    item = {"id": "1", "memory": "Ann rows to Åland – 水", "metadata": None, "created_at": "1714521600123"}
    text = json.dumps({"results": [item]} if form == "mem0" else item, ensure_ascii=False)
    run = await take_in(store, form, VARIANTS[variant](text))
    (found,) = await held(store)
    assert (found.text, found.created, run.done.written) == ("Ann rows to Åland – 水", 1714521600.123, 1)


@pytest.mark.parametrize("form", ["mem0", "jsonl"])
@pytest.mark.parametrize(
    ("codec", "name"), [("cp1252", "windows-1252"), ("cp932", "Shift_JIS"), ("cp1251", "windows-1251")]
)
async def test_json_in_another_encoding_is_refused_with_its_name(
    form: Form, codec: str, name: str, store: SqliteStore
) -> None:
    words = {
        "cp1252": "Das Fahrrad für Übergrößen steht im Keller",
        "cp932": "自転車は地下室にあります",
        "cp1251": "Велосипед стоит в подвале",
    }
    item = {"id": "1", "memory": words[codec]}
    text = json.dumps({"results": [item]} if form == "mem0" else item, ensure_ascii=False)
    with pytest.raises(InputError, match=f"is not UTF-8 text; it is probably {name}: save it as UTF-8; nothing was"):
        await take_in(store, form, text.encode(codec))


def packed(content: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", content)
    return made.getvalue()


@pytest.mark.parametrize(
    "content", [b"[" + b"{}," * 8_000_000 + b"{}]", b'[{"a": "' + b" " * (40 << 20) + b'"}]', b"[" * (33 << 20)]
)
async def test_an_archive_that_unpacks_to_far_more_than_its_size_is_refused(content: bytes, store: SqliteStore) -> None:
    for form in ("chatgpt", "claude"):
        with pytest.raises(InputError, match="times its size in the archive"):
            await take_in(store, form, packed(content))


def test_a_long_text_is_cut_in_one_pass() -> None:
    text = "wordé " * 400_000
    parts = list(pieces(text))
    assert "".join(parts) == text and max(map(len, parts)) <= MAX_TEXT and len(parts) < 200


ODD: list[Any] = [
    None, 1, "a", [], {}, {"mapping": 1}, {"mapping": {"a": 1, "b": {"message": {"author": [], "content": {}}}}},
    {"mapping": {"a": {"parent": "a", "message": {"author": {"role": []}, "content": {"parts": 1}}}},
     "current_node": "a"},
    {"chat_messages": [1, {"uuid": [], "sender": {}, "content": [1], "attachments": 1, "parent_message_uuid": []}]},
    {"id": {}, "memory": [], "user_id": [], "created_at": [], "categories": {}, "metadata": [1]},
    {"text": {}, "kind": [], "created_at": True}, {"role": "user", "content": [1], "tool_calls": [1]},
    {"namespace": {}, "key": [], "value": [1]}, {"namespace": [[], 1], "value": {"content": {"content": []}}},
    {"fact": 1, "source_node_uuid": [], "valid_at": {}}, {"content": 1, "role": []}, {"summary": [], "name": {}},
    {"label": 1, "value": {}}, {"is_deleted": True}, {"created_at": 1e300, "text": "a"},
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
async def test_unexpected_objects_raise_only_known_errors(form: Form, store: SqliteStore) -> None:
    names = ("agents", "blocks", "messages", "nodes", "episodes", "edges", "items", "results", "relations")
    await take_in(store, form, "\n".join(json.dumps(each) for each in ODD if isinstance(each, dict)).encode())
    if form not in ("jsonl", "csv"):
        await take_in(store, form, json.dumps(ODD).encode())
        await take_in(store, form, json.dumps(dict.fromkeys(names, ODD)).encode())
        await take_in(store, form, json.dumps({"agents": [{"messages": ODD}]}).encode())


@pytest.mark.parametrize("form", WRITERS)
async def test_an_export_in_a_foreign_format_imports_unchanged(form: Any, store: SqliteStore, tmp_path: Path) -> None:
    first = mem0(
        {"id": "1", "memory": "Rows “far”", "created_at": "2024-01-01T10:00:00.25Z", "metadata": {"n": 1},
         "categories": ["sport"], "run_id": "r"},
        {"id": "2", "memory": "Over", "expiration_date": "2020-01-01"},
    )  # fmt: skip
    await take_in(store, "mem0", first)
    given = Given()
    lines = [line async for line in WRITERS[form](Memory(store, "ann", WordLlama(), ManualClock(NOW)), given)]
    assert (given.records, given.left_out) == (1, 1)
    other = SqliteStore(tmp_path / "other")
    run = Import(form, other, WordLlama(), ManualClock(NOW), "ann")
    await run.run(reader(form)(Source("file", io.BytesIO("\n".join(lines).encode())), run.tally), lambda _: None)
    (before, _), (after,) = await held(store), await held(other)
    assert (after.text, after.created) == (before.text, before.created)
    if form != "langmem":  # it has no place for these
        assert (after.keywords, after.episode, after.by) == (("sport",), "r", "mem0")
        assert after.data["metadata"] == {"n": 1} and after.data["source_id"] == "1"
    await other.close()
