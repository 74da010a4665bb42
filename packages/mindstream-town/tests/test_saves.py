"""Saved simulations: unchanged after reading and writing; invalid ones refused with file and reason."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest
from mindstream_town.formats.files import whole_folder
from mindstream_town.formats.saves import read_save, settle_clock, write_save
from mindstream_town.world.tree import parse_address

from mindstream.errors import InputError

SHARED = Path(__file__).parents[4] / "shared/data/town"
NODE: dict[str, Any] = {
    "node_count": 1,
    "type_count": 1,
    "type": "event",
    "depth": 0,
    "created": "2023-02-13 08:00:00",
    "expiration": None,
    "subject": "bed",
    "predicate": "is",
    "object": "idle",
    "description": "bed is idle",
    "embedding_key": "bed is idle",
    "poignancy": 1,
    "keywords": ["idle", "bed"],
    "filling": [],
    "ours": {"kept": 1.0},
}
CHAT = NODE | {"node_count": 2, "type": "chat", "filling": [["Ann Poe", "Hello."], ["Bob", "Hi."]]}
THOUGHT = NODE | {
    "node_count": 3,
    "type": "thought",
    "depth": 1,
    "created": "2023-02-13 08:00:50",
    "expiration": "2023-03-15 08:00:00",
    "filling": ["node_1", "node_2"],
}
META: dict[str, Any] = {
    "fork_sim_code": "base",
    "start_date": "February 13, 2023",
    "curr_time": "February 13, 2023, 08:00:10",
    "sec_per_step": 10,
    "maze_name": "the_ville",
    "persona_names": ["Ann Poe"],
    "step": 1,
    "ours": [True, None],
}
NUMBERS = [
    "vision_r",
    "att_bandwidth",
    "retention",
    "age",
    "concept_forget",
    "daily_reflection_time",
    "daily_reflection_size",
    "overlap_reflect_th",
    "kw_strg_event_reflect_th",
    "kw_strg_thought_reflect_th",
    "recency_w",
    "relevance_w",
    "importance_w",
    "recency_decay",
    "importance_trigger_max",
    "importance_trigger_curr",
    "importance_ele_n",
    "thought_count",
]
TEXTS = ["daily_plan_req", "first_name", "last_name", "innate", "learned", "currently", "lifestyle"]
NULLS = [
    "act_address",
    "act_start_time",
    "act_duration",
    "act_description",
    "act_pronunciatio",
    "act_obj_description",
    "act_obj_pronunciatio",
    "chatting_with",
    "chat",
    "chatting_end_time",
]
SCRATCH: dict[str, Any] = {
    **dict.fromkeys(NUMBERS, 8),
    **dict.fromkeys(TEXTS, "words"),
    **dict.fromkeys(NULLS),
    "name": "Ann Poe",
    "recency_decay": 0.99,
    "living_area": "the Ville:flat:room",
    "curr_time": "February 13, 2023, 08:00:10",
    "curr_tile": [1, 0],
    "daily_req": ["read"],
    "f_daily_schedule": [["sleeping", 480], ["reading", 960]],
    "f_daily_schedule_hourly_org": [],
    "act_event": ["Ann Poe", None, None],
    "act_obj_event": ["bed", None, None],
    "chatting_with_buffer": {"Bob": -7},
    "act_path_set": False,
    "planned_path": [[0, 0], [1, 0]],
    "ours": "kept",
}
PERSONA = "personas/Ann Poe/bootstrap_memory"
MEMORY = f"{PERSONA}/associative_memory"
FILES: dict[str, Any] = {
    "reverie/meta.json": META,
    "environment/0.json": {"Ann Poe": {"maze": "the_ville", "x": 0, "y": 0, "ours": 1}},
    "movement/0.json": {
        "persona": {"Ann Poe": {"movement": [1, 0], "pronunciatio": "💤", "description": "sleeping @ x", "chat": None}},
        "meta": {"curr_time": "February 13, 2023, 08:00:00"},
        "ours": 2,
    },
    f"{PERSONA}/scratch.json": SCRATCH,
    f"{PERSONA}/spatial_memory.json": {"the Ville": {"flat": {"room": ["bed"], "bath": []}}},
    f"{MEMORY}/nodes.json": {"node_3": THOUGHT, "node_2": CHAT, "node_1": NODE},
    f"{MEMORY}/embeddings.json": {"bed is idle": [0.1, -1e-17, 1 / 3]},
    f"{MEMORY}/kw_strength.json": {"kw_strength_event": {"bed": 1}, "kw_strength_thought": {}, "ours": 0},
}
BEFORE = {"curr_time": "February 13, 2023, 08:00:00"}
ROOM = parse_address("the Ville:flat:room")


def write(folder: Path, **changed: Any) -> Path:
    for name, data in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({**data, **changed.get(path.stem, {})}))
    return folder


def contents(folder: Path) -> dict[str, object]:
    """Return the content of a folder's JSON files; number types count, the order of keys does not."""
    files = {str(path.relative_to(folder)): json.loads(path.read_text()) for path in folder.rglob("*.json")}
    return {name: json.dumps(data, sort_keys=True) for name, data in files.items()}


def test_a_save_survives_reading_and_writing(tmp_path: Path) -> None:
    save = read_save(write(tmp_path / "in"))
    write_save(save, tmp_path / "out")
    assert contents(tmp_path / "in") == contents(tmp_path / "out")
    ann = save.personas["Ann Poe"]
    assert ann.scratch.f_daily_schedule[0] == ("sleeping", 480) and ann.scratch.extra == {"ours": "kept"}
    assert [node.node_id for node in ann.memory.in_order()] == ["node_1", "node_2", "node_3"]
    assert ann.memory.nodes[0].evidence == ("node_1", "node_2") and ann.memory.nodes[1].evidence == ()
    assert ROOM.child("bed") in ann.places
    assert ann.memory == read_save(tmp_path / "out").personas["Ann Poe"].memory
    assert save.recording.environment(0)["Ann Poe"].spot == (0, 0)
    assert save.recording.movement(0).persona["Ann Poe"].movement == (1, 0)
    with pytest.raises(InputError, match=r"movement/7.json: the step is not recorded"):
        save.recording.movement(7)


def test_steps_can_be_read_from_an_archive(tmp_path: Path) -> None:
    folder = write(tmp_path / "in")
    with tarfile.open(folder / "movement+environment.tar.gz", "w:gz") as archive:
        for kind in ("environment", "movement"):
            archive.add(folder / kind, f"{kind}/somewhere/{kind}")
        evil = tarfile.TarInfo("../../environment/1.json")
        evil.size = 2
        archive.addfile(evil, io.BytesIO(b"{}"))
    write_save(read_save(folder), tmp_path / "folders")
    for kind in ("environment", "movement"):
        shutil.rmtree(folder / kind)
    write_save(read_save(folder), tmp_path / "archive")
    assert contents(tmp_path / "archive") == contents(tmp_path / "folders")
    (folder / "movement+environment.tar.gz").write_bytes(b"\x1f\x8b" + bytes(30))
    with pytest.raises(InputError, match=r"tar.gz: cannot be unpacked"):
        read_save(folder)


@pytest.mark.parametrize(
    ("file", "change", "wrong"),
    [
        (
            "meta",
            {"persona_names": ["Bob"]},
            "persona_names: 'Bob' has no folder in .*: add the folder, or remove the name",
        ),
        ("meta", {"persona_names": ["../Ann Poe"]}, "cannot be the name of a folder"),
        ("meta", {"maze_name": "\ud800"}, "meta.json: a text contains an unpaired surrogate"),
        ("meta", {"step": -1}, "meta.json: step: expected a number from 0 to .*, found -1"),
        ("meta", {"sec_per_step": 0}, "meta.json: sec_per_step: expected 1 to 86,400 seconds, found 0"),
        ("scratch", {"name": "Eve"}, "scratch.json: name: expected 'Ann Poe', the folder's name, found 'Eve'"),
        ("scratch", {"planned_path": [[0, "x"]]}, r"scratch.json: planned_path.0.1: .*'x'"),
        ("nodes", {"node_9": NODE}, "nodes.json: node_4 is missing"),
        (
            "nodes",
            {"node_3": THOUGHT | {"filling": ["node_8"]}},
            "node_3: filling names 'node_8', but there is no such node",
        ),
        ("nodes", {"node_3": {"node_count": 3}}, "'node_3': type_count: Field required"),
        ("embeddings", {"two": [1.0]}, "'two': expected 3 numbers, found 1"),
        ("embeddings", {"two": [1.0, float("nan"), 0]}, "'two': a number is infinite or NaN"),
        ("spatial_memory", {"the Ville": []}, "spatial_memory.json: the Ville: expected a JSON object"),
    ],
)
def test_a_bad_save_is_refused_with_file_and_reason(tmp_path: Path, file: str, change: Any, wrong: str) -> None:
    with pytest.raises(InputError, match=wrong):
        read_save(write(tmp_path, **{file: change}))


def test_the_short_form_is_read(tmp_path: Path) -> None:
    full = write(tmp_path / "full")
    moves = json.loads((full / "movement/0.json").read_text())["persona"]
    later = {"Ann Poe": moves["Ann Poe"] | {"movement": [0, 0]}}
    short = tmp_path / "short"
    shutil.copytree(full / "personas", short / "personas")
    shutil.copy(full / "reverie/meta.json", short)
    (short / "master_movement.json").write_text(json.dumps({"2": later, "1": {}, "0": moves, "3": {}}))
    save = read_save(short)
    assert [save.recording.movement(k).persona["Ann Poe"].movement for k in range(4)] == [
        (1, 0),
        (1, 0),
        (0, 0),
        (0, 0),
    ]
    assert list(save.recording.movements) == [0, 1, 2, 3] and not save.recording.environments
    assert save.personas == read_save(full).personas
    (short / "master_movement.json").write_text(json.dumps({"0": moves, "two": later}))
    with pytest.raises(InputError, match=r"master_movement.json: expected whole numbers"):
        read_save(short)
    (short / "meta.json").unlink()
    with pytest.raises(InputError, match=r"contains neither reverie/meta.json nor meta.json"):
        read_save(short)


def test_files_that_can_be_recomputed_may_be_missing(tmp_path: Path) -> None:
    folder = write(tmp_path / "in")
    whole = read_save(folder)
    for file in ("embeddings.json", "kw_strength.json"):
        (folder / MEMORY / file).unlink()
    meta = {key: each for key, each in META.items() if key not in ("fork_sim_code", "start_date", "persona_names")}
    (folder / "reverie/meta.json").write_text(json.dumps(meta))
    save = read_save(folder)
    assert (save.meta.start_date, save.meta.persona_names) == ("February 13, 2023", ("Ann Poe",))
    memory = save.personas["Ann Poe"].memory
    assert memory.nodes == whole.personas["Ann Poe"].memory.nodes and not memory.embeddings.keys
    assert memory.strength.kw_strength_thought == {}, "idle nodes do not count"
    write_save(save, tmp_path / "out")
    assert not (tmp_path / "out" / MEMORY / "embeddings.json").exists()


def test_an_incomplete_folder_is_removed(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(InputError, match="broken off"), whole_folder(out) as beside:
        (beside / "half").mkdir()
        raise InputError("broken off")
    assert list(tmp_path.iterdir()) == []
    out.mkdir()
    with whole_folder(out) as beside:
        (beside / "whole").touch()
    assert [each.name for each in tmp_path.rglob("*")] == ["out", "whole"]


def test_a_contradictory_meta_file_is_corrected_by_the_residents_times(tmp_path: Path) -> None:
    clock = {"curr_time": "February 13, 2023, 08:00:10", "step": 16, "sec_per_step": 1_800}
    told: list[str] = []
    save = settle_clock(read_save(write(tmp_path / "odd", meta=clock, scratch=BEFORE)), told.append)
    assert (save.meta.step, save.meta.sec_per_step) == (2_881, 10) and "using step 2881 with 10 seconds" in told[0]
    for change in ({"step": 2_881, "sec_per_step": 10}, {"step": 1, "sec_per_step": 10}):
        told.clear()
        fine = read_save(write(tmp_path / f"{change['step']}", meta=clock | change, scratch=BEFORE))
        assert settle_clock(fine, told.append) == fine and not told, "a day need not begin at midnight"


@pytest.mark.skipif(not SHARED.exists(), reason="the published saves and map of Park 2023 are not available")
def test_saves_of_the_authors_survive_reading_and_writing(tmp_path: Path) -> None:
    for name in ("base_the_ville_n25", "base_the_ville_n3"):
        save = read_save(SHARED / name)
        write_save(save, tmp_path / name)
        assert contents(SHARED / name) == contents(tmp_path / name)
    recorded = read_save(SHARED / "save-step-3-8")
    assert [len(each.memory.nodes) for each in recorded.personas.values()] == [278, 120, 139]
    assert len(recorded.recording.environments) == 4090
