"""Tool search with two hundred invented tools and needs in other words."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from mindstream.errors import InputError
from mindstream.models.embedders.embedder import shared_embedder
from mindstream.models.model import Call, ToolSpec
from mindstream.models.prompt import Prompt
from mindstream.models.rules import FakeModel
from mindstream.tools.call import run_tool_loop
from mindstream.tools.tool import Tool
from mindstream.tools.tool_search import ToolIndex, find_tools_tool

THINGS = {
    "calendar": "appointment in the diary", "mail": "message in the mailbox", "bugs": "bug report of a program",
    "crm": "client in the sales book", "billing": "bill for goods sold", "album": "picture in the album",
    "kitchen": "dish with its ingredients", "jukebox": "list of songs", "airline": "seat on an aeroplane",
    "lodging": "room for the night", "lamps": "light in the house", "heating": "radiator of a room",
    "clinic": "medical file of a person", "stocks": "holding on the exchange", "freight": "shipment with a carrier",
    "cloud": "virtual machine on the server", "database": "row of an SQL table", "archive": "paper in the archive",
    "dictionary": "phrase in another language", "garden": "plant with its bed",
}  # fmt: skip
ACTS = {
    "create": ("Make a new {}.", "title"), "list": ("Enumerate every {}.", "limit"),
    "remove": ("Take a {} away for good.", "id"), "update": ("Change the fields of a {}.", "fields"),
    "search": ("Look a {} up by words.", "query"), "export": ("Write each {} to a CSV file.", "path"),
    "share": ("Give another account access to a {}.", "account"), "schedule": ("Set when a {} is due.", "time"),
    "summarise": ("Condense a {} into a few sentences.", "length"),
    "watch": ("Raise an alarm when a {} is no longer as before.", "threshold"),
}  # fmt: skip
UNSEEN = {
    "calendar_remove": "call off the meeting with the landlord",
    "mail_create": "send Peter a note that I will be late",
    "bugs_create": "the app crashes at login, file that",
    "crm_search": "which customers do we have in Hamburg",
    "billing_list": "which invoices are there from last year",
    "album_search": "the snapshot of the dog on the beach",
    "kitchen_create": "keep grandmother's recipe for apple pie",
    "jukebox_share": "my friend wants to hear my playlist",
    "airline_create": "book me a ticket to Oslo on the morning plane",
    "lodging_remove": "we do not need the hotel in Vienna any more",
    "lamps_list": "which bulbs are on at home",
    "heating_schedule": "warm up the bathroom before six",
    "clinic_update": "write the new blood pressure into the patient record",
    "stocks_list": "what shares do I own",
    "freight_watch": "tell me as soon as the delivery is delayed",
    "cloud_remove": "shut down the old VM, nobody uses it",
    "database_search": "which records have an empty email column",
    "archive_export": "a file with all documents of the year as a spreadsheet",
    "dictionary_create": "add a translation of good night in Finnish",
    "garden_watch": "notice when the tomatoes in the greenhouse wilt",
}


class Invented:
    def __init__(self, name: str, description: str, argument: str) -> None:
        schema = {"type": "object", "properties": {argument: {"type": "string"}}, "required": [argument]}
        self.spec = ToolSpec(name, description, schema)

    async def __call__(self, call: Call) -> str:
        return f"{self.spec.name} did it"


def invented() -> list[Tool]:
    return [
        Invented(f"{thing}_{act}", words.format(what), argument)
        for thing, what in THINGS.items()
        for act, (words, argument) in ACTS.items()
    ]


async def share_found(needs: dict[str, str], k: int = 6) -> float:
    shelf = ToolIndex(invented(), shared_embedder())
    found = {name: [each.spec.name for each in await shelf.find(need, k)] for name, need in needs.items()}
    return sum(name in names for name, names in found.items()) / len(needs)


async def test_half_of_the_unseen_needs_find_their_tool_among_two_hundred() -> None:
    assert await share_found(UNSEEN) >= 0.5


async def test_a_unique_word_in_a_tool_name_decides() -> None:
    odd = Invented("zotero_add", "Keep it there.", "entry")
    shelf = ToolIndex([*invented(), odd], shared_embedder())
    assert (await shelf.find("put this paper into Zotero, please", 3))[0] is odd


async def test_chinese_needs_find_tools_by_character_pairs() -> None:
    chinese = [
        Invented(f"t{n}", f"{what}。", "内容") for n, what in enumerate(["查询天气预报", "发送电子邮件", "播放音乐"])
    ]
    shelf = ToolIndex([*invented(), *chinese], shared_embedder())
    assert [(await shelf.find(need, 1))[0].spec.name for need in ("明天天气怎么样", "给妈妈发邮件", "来点音乐")] == [
        "t0", "t1", "t2"
    ]  # fmt: skip


def test_two_tools_with_one_name_are_refused() -> None:
    with pytest.raises(InputError):
        ToolIndex([*invented(), Invented("mail_list", "Another.", "x")], shared_embedder())


# Attached during a run.


class Report(BaseModel):
    text: str


class Errand(Prompt[Report]):
    task: str = "x"

    @classmethod
    def words(cls) -> str:
        return "# user\n{{ task }}"


async def test_tools_that_were_found_can_be_called_next() -> None:
    attached: list[Tool] = []
    attached.append(find_tools_tool(ToolIndex(invented(), shared_embedder()), attached, 3))
    model = FakeModel({
        "errand": [
            [Call("find_tools", '{"need": "cancel the flight to Lisbon"}', "1")],
            [Call("find_tools", '{"need": "cancel my flight"}', "2"), Call("airline_remove", '{"id": "7"}', "3")],
            Report(text="done"),
        ]
    })  # fmt: skip
    assert (await run_tool_loop(model, Errand(), attached)).text == "done"
    offered = [[each.name for each in asked.tools] for asked in model.asked]
    assert offered[0] == ["find_tools"] and "airline_remove" in offered[1]
    assert all(len(set(names)) == len(names) for names in offered), "no tool is attached twice"
    results = [turn.text for turn in model.asked[-1].turns if turn.role == "tool"]
    assert "airline_remove: Take a seat" in results[0] and "airline_remove did it" in results[2]
