"""Saved simulations become towns that can continue, and towns become saved simulations."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hamlet import hamlet
from keys import key_of_resident
from mindstream_town.events import Acted
from mindstream_town.formats.maps import load_map
from mindstream_town.formats.saves import Save, read_save, read_whispers, write_save
from mindstream_town.formats.town_file import STAMP, parse_time
from mindstream_town.journal import rows_after
from mindstream_town.saves.exporting import save_of_town
from mindstream_town.saves.importing import begin_from_save, setting_of_save
from mindstream_town.town import Town
from mindstream_town.world.tiles import TileWorld, build_tiles
from mindstream_town.world.tree import parse_address
from numpy.typing import NDArray
from test_saves import ROOM, SHARED, contents, write

from mindstream.errors import InputError
from mindstream.models.embedders.embedder import embedder

NOON, MORNING = 12 * 360, 6 * 360 + 99


def flat() -> TileWorld:
    return build_tiles(ROOM.upto(1), (3, 1), bytes(3), [ROOM, ROOM.child("bed"), ROOM.child("desk")])


def saved(folder: Path, **scratch: Any) -> Save:
    """Return a save whose resident reads at her desk, and has nine minutes to go."""
    doing = {
        "act_address": "the Ville:flat:room:desk", "act_start_time": "February 13, 2023, 07:59:30", "act_duration": 9,
        "act_description": "reading (a letter)", "planned_path": [[2, 0]], "importance_trigger_max": 10,
        "importance_trigger_curr": 7,
    }  # fmt: skip
    write(folder, scratch=doing | scratch, meta={"step": 2881, "curr_time": "February 13, 2023, 08:00:10"})
    (folder / "environment/2881.json").write_text(json.dumps({"Ann Poe": {"maze": "the_ville", "x": 1, "y": 0}}))
    return read_save(folder)


async def test_an_imported_resident_continues_where_the_save_ended(tmp_path: Path) -> None:
    await begin_from_save(tmp_path / "town", saved(tmp_path / "save"), flat())
    async with Town.open(tmp_path / "town") as town:
        ann = town.residents["Ann Poe"]
        state, setting = ann.state, town.setting
        assert town.step == 2_880 and setting.when(0).hour == 0 and setting.people["Ann Poe"].start == (1, 0)
        assert state.act is not None and state.act.what == "reading (a letter)" and state.gathered == 3.0
        assert (state.spot(2_880), state.spot(2_881)) == ((1, 0), (2, 0)), "the rest of her route"
        assert setting.when(state.act.until).strftime("%H:%M:%S") == "08:09:00", "from the next whole minute on"
        assert [block.minutes for block in state.blocks] == [480, 960] and state.seen == (("bed", "is", "idle"),)
        records = await ann.memory.store.latest(key_of_resident("Ann Poe"), None, 99, now=setting.moment(2_880))
        kinds = [(each.kind, each.text, each.depth, each.importance) for each in records if each.kind != "note"]
        assert kinds == [
            ("observation", "bed is idle", 0, 1.0), ("chat", "Hello.", 0, 1.0), ("chat", "Hi.", 0, 1.0),
            ("thought", "bed is idle", 1, 1.0),
        ]  # fmt: skip
        assert set(records[-1].evidence) == {each.id for each in records if each.kind in ("observation", "chat")}
        await town.run(until=NOON)
        acts = [row.event async for row in rows_after(town.store) if isinstance(row.event, Acted)]
        first, second = await town.digest(), acts[1]
        assert second.step == state.act.until and second.act.what.startswith("reading")
    await begin_from_save(tmp_path / "again", saved(tmp_path / "save2"), flat())
    async with Town.open(tmp_path / "again") as town:
        await town.run(until=3_000)
    async with Town.open(tmp_path / "again") as town:
        await town.run(until=NOON)
        assert await town.digest() == first
    with pytest.raises(InputError, match="contains data already"):
        await begin_from_save(tmp_path / "again", saved(tmp_path / "save3"), flat())


def test_similar_names_are_matched_and_reported(tmp_path: Path) -> None:
    told: list[str] = []
    save = saved(tmp_path, living_area="the Ville:flat :rooms")
    whispers = {"Anne Poe": ("You like tea",), "Zoe": ("You too",)}
    setting = setting_of_save(save, flat(), whispers=whispers, tell=told.append)
    ann = setting.people["Ann Poe"]
    assert ann.home == str(ROOM)
    assert [each.text for each in ann.memories] == ["You like tea"] and f"{ROOM}:bed" in ann.knows
    assert told == [
        "whispers: 'Anne Poe' is interpreted as 'Ann Poe'",
        "whispers: there is no resident 'Zoe'",
        "Ann Poe: living_area: 'the Ville:flat :rooms' is interpreted as 'the Ville:flat:room'",
        "Ann Poe: spatial memory: 'the Ville:flat:bath' is not on the map",
    ]


@pytest.mark.parametrize(
    ("spot", "walls", "wrong"),
    [
        ((9, 0), [0, 0, 0], "outside of the map"),
        ((0, 0), [1, 0, 0], "is a wall"),
        ((0, 0), [0, 1, 0], "cannot be reached from"),
    ],
)
async def test_a_resident_without_a_way_home_is_refused_before_writing(
    tmp_path: Path, spot: tuple[int, int], walls: list[int], wrong: str
) -> None:
    save = saved(tmp_path / "save", living_area="the Ville:flat:room:desk")
    where = {"Ann Poe": {"maze": "the_ville", "x": spot[0], "y": spot[1]}}
    (tmp_path / "save/environment/2881.json").write_text(json.dumps(where))
    world = build_tiles(ROOM.upto(1), (3, 1), bytes(walls), [ROOM, ROOM.child("bed"), ROOM.child("desk")])
    with pytest.raises(InputError, match=f"Ann Poe: living_area: .*{wrong}.*correct scratch.json"):
        await begin_from_save(tmp_path / "town", save, world)
    assert not (tmp_path / "town").exists()


async def test_a_cancelled_import_leaves_no_files(tmp_path: Path) -> None:
    class Stopped:
        in_process, name, width = True, "stopped", 4

        async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
            if any("idle" in text for text in texts):
                raise asyncio.CancelledError
            return np.ones((len(texts), 4), np.float32)

    with pytest.raises(asyncio.CancelledError):
        await begin_from_save(tmp_path / "town", saved(tmp_path / "save"), flat(), embed=Stopped())
    assert list((tmp_path / "town").iterdir()) == []
    await begin_from_save(tmp_path / "town", read_save(tmp_path / "save"), flat())
    async with Town.open(tmp_path / "town") as town:
        assert town.step == 2_880


@pytest.mark.parametrize(
    ("key", "value", "wrong"),
    [
        ("vision_r", -1, "scratch.json: vision_r: .* the most frequent value is -1"),
        ("act_start_time", "February 13, 9999, 08:00:00", "scratch.json: act_start_time: .*a year from 1970 to 9000"),
        ("importance_trigger_curr", float("nan"), "scratch.json: importance_trigger_curr"),
    ],
)
def test_an_invalid_number_is_refused_with_its_key(tmp_path: Path, key: str, value: object, wrong: str) -> None:
    with pytest.raises(InputError, match=wrong):
        setting_of_save(saved(tmp_path, **{key: value}), flat())


async def test_an_export_extends_the_original_save(tmp_path: Path) -> None:
    save = saved(tmp_path / "save", act_pronunciatio="📖", concept_forget=3)
    await begin_from_save(tmp_path / "town", save, flat())
    write_save(save, tmp_path / "before")
    async with Town.open(tmp_path / "town") as town:
        vectors = town.residents["Ann Poe"].memory.embedder
        write_save(await save_of_town(town.store, town.setting, vectors, saved=save), tmp_path / "after")
        before, after = contents(tmp_path / "before"), contents(tmp_path / "after")
        assert {name: after[name] for name in before} == before
        await town.run(until=NOON)
        later = await save_of_town(town.store, town.setting, vectors, saved=save)
        with pytest.raises(InputError, match="was not imported from that save"):
            await save_of_town(town.store, town.setting, vectors, saved=replace(save, meta=replace(save.meta, step=7)))
    write_save(later, tmp_path / "later")
    ann = read_save(tmp_path / "later").personas["Ann Poe"]
    assert ann.scratch.concept_forget == 3 and ann.scratch.extra == {"ours": "kept"}
    assert ann.scratch.act_pronunciatio != "📖", "she does something else"
    assert ann.memory.nodes[-3:] == save.personas["Ann Poe"].memory.nodes, "new numbers, no changed node"
    assert set(later.recording.environments) >= {0, 2_881, NOON + 1} and later.meta.extra == save.meta.extra


def comparable(node: Any) -> dict[str, object]:
    """Return the comparable part of a node: its number depends on the notes at the beginning of a town's stream."""
    return {
        key: value for key, value in asdict(replace(node, extra={})).items()
        if key not in ("node_id", "node_count", "type_count", "filling")
    }  # fmt: skip


async def test_an_export_contains_all_that_the_published_code_reads(tmp_path: Path) -> None:
    async with Town.open(tmp_path / "town", hamlet()) as town:
        await town.run(until=NOON)
        write_save(await save_of_town(town.store, town.setting, embedder("wordllama")), tmp_path / "out")
    out = tmp_path / "out"
    meta = json.loads((out / "reverie/meta.json").read_text())
    standing = json.loads((out / f"environment/{meta['step']}.json").read_text())
    for name in meta["persona_names"]:
        folder = out / "personas" / name / "bootstrap_memory"
        assert all(type(standing[name][key]) is int for key in "xy")
        scratch = json.loads((folder / "scratch.json").read_text())
        assert parse_time(scratch["curr_time"]) and parse_time(scratch["act_start_time"])
        assert type(scratch["act_duration"]) is int and len(scratch["act_event"]) == len(scratch["act_obj_event"]) == 3
        for schedule in ("f_daily_schedule", "f_daily_schedule_hourly_org"):
            assert sum(minutes for _, minutes in scratch[schedule]) == 1_440, "every minute of a day can be looked up"
        world, sector, arena = scratch["living_area"].split(":")[:3]
        assert arena in json.loads((folder / "spatial_memory.json").read_text())[world][sector]
        nodes = json.loads((folder / "associative_memory/nodes.json").read_text())
        vectors = json.loads((folder / "associative_memory/embeddings.json").read_text())
        assert list(nodes) == [f"node_{number}" for number in range(len(nodes), 0, -1)] and nodes
        for node in nodes.values():
            assert len(vectors[node["embedding_key"]]) == 256 and parse_time(node["created"], STAMP)
            rests = [nodes[each]["depth"] for each in node["filling"] if node["type"] == "thought"]
            assert node["depth"] == (1 + max(rests, default=0) if node["type"] == "thought" else 0), (
                "counted from its evidence"
            )


@pytest.mark.skipif(not SHARED.exists(), reason="the published saves and map of Park 2023 are not available")
async def test_saves_of_the_authors_can_be_continued(tmp_path: Path) -> None:
    world = load_map(SHARED / "the_ville")
    save = read_save(SHARED / "save-step-3-8")
    await begin_from_save(tmp_path / "town", save, world, seed=1)
    async with Town.open(tmp_path / "town") as town:
        assert town.step == 4_088
        await town.run(until=5_000)
        end = await save_of_town(town.store, town.setting, embedder("wordllama"), upto=4_088)
        spots = {name: position.spot for name, position in save.recording.environment(4_089).items()}
        assert {name: each.spot for name, each in end.recording.environment(4_089).items()} == spots
    for name, persona in save.personas.items():
        nodes = [node for node in end.personas[name].memory.in_order() if node.predicate != "remember"]
        assert [comparable(node) for node in nodes] == [comparable(node) for node in persona.memory.in_order()]
    whispers = read_whispers(SHARED / "the_ville/agent_history_init_n25.csv")
    base = read_save(SHARED / "base_the_ville_n25")
    await begin_from_save(tmp_path / "base", base, world, whispers=whispers)
    async with Town.open(tmp_path / "base") as town:
        await town.run(until=8_639)
        assert len(town.residents) == 25 and all(each.state.act for each in town.residents.values())
    assert parse_address(base.personas["Tom Moreno"].scratch.living_area) in world.places
