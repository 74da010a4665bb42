"""A model converts the prose of a town file into keys once; comments stay, and invalid towns are not written."""

from __future__ import annotations

import json
import tomllib
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from hamlet import PROSE as WRITTEN
from mindstream_town.formats.town_file import parse_town
from mindstream_town.preparing import Preparing
from mindstream_town.prompts.plans import PreparePlaces, PrepareResident

from mindstream.errors import InputError, ModelError
from mindstream.models.model import Part, Piece, Request
from mindstream.models.roles import Models

PROSE = WRITTEN.replace("[[residents]]", "# she bakes\n[[residents]]", 1).replace(
    'relations = [{ who = "Ben Hale", as = "husband" }]',
    'relations = [{ who = "Ben Hale", as = "husband" }]  # since 2010\n'
    'seeds = ["There is a reading evening.", "It rains."]',
)


def number(listed: tuple[str, ...], wanted: str) -> int:
    return next(n for n, each in enumerate(listed, 1) if each.startswith(wanted))


def answer(ask: PrepareResident | PreparePlaces) -> dict[str, Any]:
    if isinstance(ask, PreparePlaces):
        cafe = {"place": number(ask.places, "Oak Cafe:cafe"), "purpose": ["eat"], "owners": ["Ada", "nobody here"]}
        return {"places": [cafe, {"place": 900, "purpose": ["eat"]}], "danger": ["on fire"], "fine": ["clean"]}
    counter = number(ask.places, "Oak Cafe:cafe:counter")
    day = [
        {"start": "06:00", "end": "08:00", "what": "getting up", "place": 0},
        {
            "start": "08:00",
            "end": "18:00",
            "what": "working",
            "place": counter,
            "on": ["monday", "friday"],
            "duty": True,
        },
        {"start": "18:00", "end": "18:00", "what": "nothing", "place": 0},
        {"start": "18:00", "end": "22:00", "what": "reading", "place": 8_000},
    ]
    evening = {"what": "hosting a reading evening", "place": number(ask.places, "Oak Cafe:cafe"), "day": "2023-02-14",
               "start": "17:00", "end": "19:00", "host": "Ada", "who": ["Cleo", "the mayor"]}  # fmt: skip
    agreed = [evening | {"of": 1, "text": "There is a reading evening."}, evening | {"of": 0, "text": "It is on."}]
    bed = 1 + next((n for n, each in enumerate(ask.places) if each == f"{ask.home}:bed"), -1)
    return {
        "day": day, "bed": bed, "agreed": agreed if ask.sentences else [],
        "knows": [{"who": "Cleo Marsh", "kind": "guest"}, {"who": "nobody", "kind": "x"}],
    }  # fmt: skip


class Reads:
    """A model that writes keys, and records its requests."""

    name = "reads"

    def __init__(self, wrong: dict[str, Any] | None = None) -> None:
        self.asked: list[Any] = []
        self._wrong = wrong or {}

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        self.asked.append(request.prompt)
        assert isinstance(request.prompt, PrepareResident | PreparePlaces)
        yield Piece(json.dumps(answer(request.prompt) | self._wrong))


async def test_prose_is_converted_to_keys_and_the_rest_is_kept() -> None:
    model, preparing = Reads(), Preparing(PROSE, Path())
    assert preparing.left == ["Ada Brook", "Ben Hale", "Cleo Marsh", "places"]
    text = await preparing.run(Models(model))
    assert not any("Mill House" in each for each in model.asked[2].places), (
        "the prompt for Cleo does not contain others' homes"
    )
    assert len(model.asked) == 4 and "# she bakes" in text and "# since 2010" in text
    before, after = tomllib.loads(PROSE), tomllib.loads(text)
    ada = after["residents"][0]
    for key in ("name", "learned", "currently", "lifestyle", "routine", "home", "knows"):
        assert ada[key] == before["residents"][0][key]
    assert after["map"] == before["map"] and after["town"] == before["town"]
    assert "where" not in ada["day"][0] and len(ada["day"]) == 3
    assert ada["day"][1]["duty"] is True and ada["day"][1]["where"] == "Oak Cafe:cafe:counter"
    assert ada["relations"] == [{"who": "Ben Hale", "as": "husband"}, {"who": "Cleo Marsh", "as": "guest"}]
    assert ada["seeds"][1] == "It rains."
    town = parse_town(text, Path())
    assert str(town.residents[0].bed).endswith(":bed")
    first, second, third = town.residents[0].memories
    assert first.text == "There is a reading evening." and first.appointment is not None
    assert first.appointment.place == "Hamlet:Oak Cafe:cafe" and first.appointment.who == ("Cleo Marsh",)
    assert first.appointment.host == "Ada Brook" and second.appointment is None
    assert third.text == "It is on." and third.appointment is not None
    assert [each.casefold() for each in town.conditions.danger] == ["on fire"] and after["places"] == [
        {"address": "Oak Cafe:cafe", "purpose": ["eat"], "owners": ["Ada Brook"]}
    ]


async def test_prepared_parts_are_not_requested_again() -> None:
    text = await Preparing(PROSE, Path()).run(Models(Reads()))
    model = Reads()
    assert await Preparing(text, Path()).run(Models(model)) == text and not model.asked
    some = text.replace('name = "Cleo Marsh"', 'name = "Cleo Marsh"\n# day below', 1)
    some = some[: some.rindex("day = [")] + some[some.index("]\n", some.rindex('what = "reading"')) + 2 :]
    again = await Preparing(some, Path()).run(Models(model))
    assert [each.who for each in model.asked] == ["Cleo Marsh"] and "# day below" in again


async def test_invalid_keys_and_town_files_are_refused() -> None:
    wrong = {"day": [{"start": "08:00", "end": "09:00", "what": "x", "place": 1, "on": ["someday"]}]}
    with pytest.raises(ModelError, match="entries for Ada Brook"):
        await Preparing(PROSE, Path()).run(Models(Reads(wrong)))
    with pytest.raises(InputError, match="is missing"):
        Preparing("[town]\n", Path())
