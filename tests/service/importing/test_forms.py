from __future__ import annotations

import io
import json
import zipfile

import pytest
from foreign_samples import NOW, SAMPLES, held, take_in

from mindstream import SqliteStore
from mindstream.clock import parse_iso
from mindstream.errors import InputError
from mindstream.memory.store.record import Triple, is_tainted
from mindstream.service.importing.reading import FORMS, Form


async def test_mem0_memories_keep_date_user_and_metadata(store: SqliteStore) -> None:
    run = await take_in(store, "mem0", "mem0.json", each_user=True)
    assert (run.done.written, dict(run.done.users)) == (3, {"ann": 2, "bob": 1})
    cello, graph = await held(store)
    assert (cello.kind, cello.text, cello.by) == ("note", "Ann plays the cello on Tuesdays", "mem0")
    assert cello.created == pytest.approx(parse_iso("2025-03-01T18:00:00.123456Z"))
    assert cello.data["metadata"] == {"topic": "music", "n": 1} and cello.data["source_id"] == "m-1"
    assert graph.about == Triple("ann", "plays", "cello")
    (bob,) = await held(store, "bob")
    assert bob.keywords == ("sport",)
    assert {name: (each.count, each.example) for name, each in run.tally.lost.items()} == {
        "hash": (2, "aa"), "score": (1, "0.3"), "missing dates": (1, "ann plays cello"),
    }  # fmt: skip


async def test_mem0_relations_are_read_from_each_page(store: SqliteStore) -> None:
    relation = {"source": "ann", "relationship": "plays", "target": "cello"}
    pages = [
        {"results": [{"memory": "Ann plays the cello"}], "relations": [relation, "ann"]},
        {"results": [], "relations": [relation | {"target": "chess"}]},
    ]
    run = await take_in(store, "mem0", json.dumps(pages).encode())
    found = [each.about for each in await held(store) if each.about]
    assert found == [Triple("ann", "plays", "cello"), Triple("ann", "plays", "chess")]
    assert run.tally.lost["relations"].why == "it is not a JSON object"


async def test_mem0_platform_fields_are_kept_and_cannot_remove_the_foreign_mark(
    store: SqliteStore,
) -> None:
    run = await take_in(store, "mem0", "mem0_platform.json")
    (found,) = await held(store)
    assert found.episode == "trip-7" and found.valid_until == parse_iso("2099-12-31")
    assert found.data["agent_id"] == "kitchen" and found.data["updated_at"] == "2024-07-02T12:00:00-07:00"
    assert found.data["more"] == {"immutable": True, "structured_attributes": {"day": 1, "month": 7}}
    assert found.data["metadata"] == {"source": "form", "tainted": False} and is_tainted(found)
    assert run.done.left_out == 1 and run.tally.lost["created_at"].example == "yesterday"
    assert "nothing to read" in run.tally.lost["items"].why


def zipped(**files: str) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name.replace("__", "/").replace("_", ".", 1), text)
    return made.getvalue()


@pytest.mark.parametrize("packed", [False, True])
async def test_the_visible_branch_of_a_chatgpt_export_is_imported(store: SqliteStore, packed: bool) -> None:
    text = (SAMPLES / "chatgpt.json").read_text("utf-8")
    run = await take_in(store, "chatgpt", zipped(conversations_json=text, chat_html="<p>") if packed else text.encode())
    asked, answered = await held(store)
    assert (asked.text, asked.by, asked.kind, asked.episode) == (
        "Which strings are these?",
        "ann",
        "observation",
        "c-1",
    )
    assert (answered.text, answered.by, answered.created) == ("They are cello strings.", "ChatGPT", 1_700_000_004.0)
    assert answered.data["title"] == "Cello strings" and answered.data["model"] == "gpt-5"
    assert is_tainted(answered) and not is_tainted(asked)
    lost = {name: each.example for name, each in run.tally.lost.items()}
    assert asked.data["files"] == ["strings.jpg"] and lost["messages: assistant to bio"] == "Ann owns a cello."
    assert lost["messages of other branches"] == "Guitar strings." and "message.content" not in lost
    assert "at th" in lost["messages: assistant, thoughts"]
    assert run.tally.lost["message.content.parts"].count == 2 and "image_as" in lost["message.content.parts"]
    assert lost.get("files of the archive") == ("chat.html" if packed else None)


async def test_numbered_parts_of_an_export_are_read_in_order(store: SqliteStore) -> None:
    (talk,) = json.loads((SAMPLES / "chatgpt.json").read_text("utf-8"))
    other = json.dumps([talk]).replace("n-", "m-").replace("c-1", "c-2")
    parts = {"export__conversations-000_json": json.dumps([talk]), "export__conversations-001_json": other}
    assert (await take_in(store, "chatgpt", zipped(**parts))).done.written == 4
    assert [record.episode for record in await held(store)] == ["c-1", "c-1", "c-2", "c-2"]


async def test_a_claude_export_gives_messages_and_reports_the_rest_as_lost(
    store: SqliteStore,
) -> None:
    run = await take_in(store, "claude", "claude.json")
    asked, answered = await held(store)
    assert (asked.by, asked.text, asked.data["files"]) == ("ann", "What do I pack for Oslo?", ["map.png", "list.txt"])
    assert (answered.by, answered.text, answered.episode) == ("Claude", "A rain coat.", "d-1")
    assert answered.created == parse_iso("2025-05-01T08:00:20Z") and answered.data["title"] == "Packing list"
    lost = run.tally.lost
    assert lost["messages of other branches"].example == "An umbrella."
    assert lost["message.attachments.extracted_content"].example == "socks"
    assert {"message.content: thinking", "message.content: tool_use"} <= lost.keys()


async def test_json_lines_keep_the_known_fields(store: SqliteStore) -> None:
    run = await take_in(store, "jsonl", "lines.jsonl", each_user=True)
    boiler, plan, sauna, answer = await held(store)
    assert sauna.created == parse_iso("2023-05-05") and sauna.by == "ann" and not is_tainted(sauna)
    assert (answer.text, answer.by, answer.data["role"]) == ("Noted.", "assistant", "assistant") and is_tainted(answer)
    assert boiler.created == parse_iso("2023-05-04") and boiler.data["metadata"] == {"room": "cellar"}
    assert not is_tainted(boiler) and boiler.data["source_id"] == "7"
    assert plan.kind == "note" and plan.created == NOW
    (gate,) = await held(store, "dora")
    assert (gate.by, gate.kind, gate.data["more"]) == ("Olga", "observation", {"colour": "red"}) and is_tainted(gate)
    assert {name: each.example for name, each in run.tally.lost.items()} == {
        "kind": "plan", "line": "17", "dates": "32472144000.0", "missing dates": "Says the neighbour: the gate sticks.",
    }  # fmt: skip
    assert run.tally.lost["line"].count == 2


async def test_an_agent_file_gives_its_blocks_and_messages(store: SqliteStore) -> None:
    run = await take_in(store, "letta", "letta.af")
    boat, block, asked, answered = await held(store)
    assert (boat.text, boat.keywords, boat.created) == ("Chad keeps a boat.", ("boat",), parse_iso("2025-09-01"))
    assert (block.kind, block.text, block.data["label"]) == ("note", "First name: Chad", "human")
    assert (asked.text, asked.by, asked.created) == ("I race on Sunday", "ann", parse_iso("2025-10-31T22:57:00Z"))
    assert (answered.text, answered.by) == ("Good luck, Chad!", "Sam")
    lost = {name: each.example for name, each in run.tally.lost.items()}
    assert "heartbeat" in lost["messages: user"] and lost["agent.system"] == "You are Sam."
    assert {"tools", "skills", "archives", "block.limit", "missing dates", "message.content: image"} <= lost.keys()


async def test_passages_of_archival_memory_keep_tags_dates_and_metadata(store: SqliteStore) -> None:
    run = await take_in(store, "letta", "letta_archival.json")
    (boat,) = await held(store)
    assert boat.keywords == ("boat",) and boat.data["metadata"] == {"trip": 2}
    assert boat.created == pytest.approx(parse_iso("2025-11-05T23:04:24.901468Z"))
    assert run.tally.lost["items"].example == "Gone." and "embedding" in run.tally.lost


async def test_zep_facts_keep_their_validity(store: SqliteStore) -> None:
    await take_in(store, "zep", "zep.json", each_user=True)
    (said,) = await held(store)
    assert (said.by, said.episode, said.text) == ("ann", "t-1", "I moved to Lyon in June.")
    crm, summary, lyon, nice = sorted(await held(store, "eva"), key=lambda each: each.text[6:])
    assert summary.text == "Eva moved to Lyon." and crm.created == parse_iso("2025-06-30") and is_tainted(crm)
    assert lyon.about == Triple("Eva", "LIVES_IN", "Lyon") and lyon.data["metadata"] == {"sure": True}
    assert (lyon.valid_from, lyon.valid_until) == (parse_iso("2025-06-01"), None)
    assert (nice.valid_from, nice.valid_until) == (parse_iso("2020-01-01"), parse_iso("2025-06-01"))


async def test_items_of_a_langgraph_store_go_to_the_user_of_their_namespace(store: SqliteStore) -> None:
    run = await take_in(store, "langmem", "langmem.json", each_user=True)
    (finn,), (gina,), (hal,) = [await held(store, name) for name in ("finn", "gina", "profile")]
    assert finn.text == "Finn reads Dutch." and "value" not in finn.data
    assert finn.created == pytest.approx(parse_iso("2025-01-02T03:04:05.678901Z"))
    assert gina.text == "Gina keeps bees" and gina.data["value"] == {"text": "Gina keeps bees", "hives": 3}
    assert json.loads(hal.text) == {"name": "Hal", "age": 40} and hal.data["namespace"] == ["profile"]
    assert list(run.tally.lost) == ["score"]


# Tables and chats.


async def test_a_table_of_excel_is_imported(store: SqliteStore) -> None:
    run = await take_in(store, "csv", "csv.csv")
    tomatoes, fence = await held(store)
    assert tomatoes.text.splitlines() == ["Ann grows tomatoes;", "and basil"] and fence.by == "Bob"
    assert tomatoes.created == parse_iso("2025-05-01T08:00:00Z") and tomatoes.keywords == ("garden", "food")
    assert tomatoes.data["more"] == {"Mood": "calm"} and "missing dates" in run.tally.lost


@pytest.mark.parametrize(
    "table",
    [
        b"question,answer\nWhere is Ulm?,In Germany.\n",
        "Question\tAnswer\r\nWhere is Ulm?\tIn Germany.\r\n".encode("utf-16"),
        b'"prompt";"completion"\r"Where is Ulm?";"In Germany."\r',
        "role,content,Größe\nuser,Where is Ulm?,die Straße für Müller\nassistant,In Germany.,schöne Grüße\n".encode(
            "cp1252"
        ),
        b"\xef\xbb\xbfsep=,\r\nInstruction,Input,Output\r\nWhere is,Ulm?,In Germany.,more,cells\r\n",
        b'{"input": "Where is Ulm?", "output": "In Germany.", "id": 7}\n',
    ],
    ids=["commas", "tabs in UTF-16", "semicolons and \\r", "roles in cp1252", "alpaca", "JSON Lines"],
)
async def test_questions_and_answers_are_two_messages(store: SqliteStore, table: bytes) -> None:
    await take_in(store, "jsonl" if table.startswith(b"{") else "csv", table)
    question, answer = await held(store)
    assert (question.text.split(), answer.text) == (["Where", "is", "Ulm?"], "In Germany.")
    assert (question.by, answer.by, is_tainted(question), is_tainted(answer)) == ("ann", "assistant", False, True)


@pytest.mark.parametrize(
    ("table", "why"),
    [
        (b" \r\n", "is empty"),
        (b"text\n", "found text"),
        (b"a\x00\x01\x02\xff\xfe\x9f" * 50, r"is not text|not UTF-8"),
    ],
    ids=["empty", "header alone", "binary"],
)
async def test_what_is_no_table_is_refused(store: SqliteStore, table: bytes, why: str) -> None:
    with pytest.raises(InputError, match=why):
        await take_in(store, "csv", table)


async def test_a_long_cell_and_an_unknown_header_are_told(store: SqliteStore) -> None:
    run = await take_in(store, "csv", f"text\n{'word ' * 40_000}\n".encode())
    assert run.done.written > 0
    other = await take_in(store, "csv", b"name,colour\nAnn,red\n")
    assert other.done.written == 0 and "it is not an object with text" in other.tally.lost["line"].why


CHATS = {
    "Android, German": "27.10.25, 14:06 - Ann: Hi\n27.10.25, 14:07 - Bob M.: Ja.\nUm acht: wie immer.\n",
    "iOS, German": "[27.10.25, 14:06:00] Ann: Hi\r\n\u200e[27.10.25, 14:07:00] ~\u202fBob M.: Ja.\r\n"
    "Um acht: wie immer. \u200e<edited>\r\n[27.10.25, 14:08:01] Bob M.: \u200eimage omitted\r\n",
    "Android, US": "10/27/25, 2:06\u202fPM - Ann: Hi\n10/27/25, 2:07\u202fPM - Bob M.: Ja.\nUm acht: wie immer.\n",
    "iOS, US": "[10/27/25, 2:06:00\u202fPM] Ann: Hi\n[10/27/25, 2:07:00 PM] Bob M.: Ja.\nUm acht: wie immer.\n",
    "Android, UK": "27/10/2025, 14:06 - Ann: Hi\n27/10/2025, 14:07 - Bob M.: Ja.\nUm acht: wie immer.\n",
    "ISO": "2025-10-27, 14:06 - Ann: Hi\n2025-10-27, 14:07 - Bob M.: Ja.\nUm acht: wie immer.\n",
    "Spanish": "27/10/25, 2:06 p.\u00a0m. - Ann: Hi\n27/10/25, 2:07 p. m. - Bob M.: Ja.\nUm acht: wie immer.\n",
}


@pytest.mark.parametrize("form", CHATS)
@pytest.mark.parametrize("packed", [False, True])
async def test_a_chat_of_whatsapp_is_imported(store: SqliteStore, form: str, packed: bool) -> None:
    data = CHATS[form].encode()
    await take_in(store, "whatsapp", zipped(**{"Chat with Bob_txt": CHATS[form]}, photo_jpg="x") if packed else data)
    hi, yes = await held(store)
    assert (hi.text, yes.text) == ("Hi", "Ja.\nUm acht: wie immer.")
    assert (hi.by, yes.by, hi.kind, is_tainted(yes)) == ("Ann", "Bob M.", "observation", True)
    assert hi.created == parse_iso("2025-10-27T14:06:00Z") and yes.created == parse_iso("2025-10-27T14:07:00Z")


@pytest.mark.parametrize(
    ("dates", "first"),
    [
        (["01/02/25", "03/02/25", "14/02/25"], "2025-02-01"),
        (["01/02/25", "01/03/25", "01/14/25"], "2025-01-02"),
        (["11/12/24", "12/01/25", "02/02/25"], "2024-12-11"),
    ],
)
async def test_the_order_of_day_and_month_is_found_in_the_whole_chat(
    store: SqliteStore, dates: list[str], first: str
) -> None:
    chat = "".join(f"{date}, 10:00 - Ann: Day {number}\n" for number, date in enumerate(dates))
    await take_in(store, "whatsapp", chat.encode())
    assert (await held(store))[0].created == parse_iso(f"{first}T10:00:00Z")


async def test_notices_media_and_repeated_messages_of_a_chat(store: SqliteStore) -> None:
    run = await take_in(store, "whatsapp", "whatsapp.txt")
    assert [record.text for record in await held(store)] == [
        "Kommst du morgen?", "Ja.\nUm acht: wie immer.", "Gut", "Gut",
    ]  # fmt: skip
    assert run.tally.lost.keys() >= {"notices", "media"}
    with pytest.raises(InputError):
        await take_in(store, "whatsapp", zipped(photo_jpg="x"))
    none = await take_in(store, "whatsapp", b"only a letter\n")
    assert none.done.written == 0 and "lines" in none.tally.lost


def sample(form: Form) -> str:
    stem = "lines" if form == "jsonl" else form
    return next(file.name for file in sorted(SAMPLES.iterdir()) if file.stem == stem)


@pytest.mark.parametrize("form", FORMS)
async def test_a_second_import_adds_nothing(form: Form, store: SqliteStore) -> None:
    first = await take_in(store, form, sample(form), each_user=True)
    again = await take_in(store, form, sample(form), each_user=True)
    assert first.done.written > 0
    assert (again.done.written, again.done.known) == (0, first.done.written)


async def test_with_trust_nothing_is_marked_as_foreign(store: SqliteStore) -> None:
    await take_in(store, "claude", "claude.json", trusted=True)
    assert not any(map(is_tainted, await held(store)))
