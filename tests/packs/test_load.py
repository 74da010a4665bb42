from __future__ import annotations

import os
from pathlib import Path

import pytest

from mindstream.errors import PackError
from mindstream.packs.load import load, shipped

SMALL = """\
name: tea
title: Tea
constitution: Talk about tea.
phases:
  - name: asking
    goal: know
    instructions: ask
    thinking: think
    fields: [wishes]
fields:
  wishes: {about: what they wish, type: list}
"""


def a_pack(folder: Path, **files: str) -> Path:
    for name, text in {"pack": SMALL, **files}.items():
        (folder / f"{name}.yaml").write_text(text, "utf-8")
    return folder


def test_a_pack_is_read_from_a_folder(tmp_path: Path) -> None:
    pack = load(a_pack(tmp_path))
    assert pack.belief().model_dump() == {"phase": "asking", "wishes": []}


def test_an_unknown_pack_names_those_that_are_there() -> None:
    with pytest.raises(PackError, match=r"no pack 'slep'.*sleep"):
        load("slep")


@pytest.mark.parametrize(
    ("file", "text", "told"),
    [
        ("pack", SMALL.replace("goal: know", "gaol: know"), r"pack\.yaml:\d+: phases.0"),
        ("pack", SMALL.replace("[wishes]", "[wishes, sugar]"), "names the field 'sugar'"),
        ("pack", "name: [unclosed", r"pack\.yaml:\d+: not YAML"),
        ("pack", "- a list", r"pack\.yaml:1: .*mapping"),
        ("topics", "- id: mint\n  name: mint\n  cues: [mint]\n  colour: green\n", r"topics\.yaml:4: topics.0.colour"),
        ("topics", "mint: 1", r"topics\.yaml:1: .*list"),
        ("steps", "- {id: s, title: t, do: d, why: w, evidence: firm, topics: []}", r"steps\.yaml:1: steps.0.evidence"),
        (
            "steps",
            "- {id: s, title: t, do: d, why: w, evidence: strong, topics: [x]}",
            r"steps\.yaml:1: steps\.0\.topics names the topic 'x', which topics\.yaml does not have",
        ),
        (
            "topics",
            "- {id: mint, name: m, cues: [mint], field: wish}",
            r"topics\.yaml:1: .*'wish'.*did you mean 'wishes'",
        ),
        ("pack", SMALL.replace("goal: know", "gaol: know"), r"phases\.0\.gaol is not known here; did you mean 'goal'"),
        ("safety", "- id: a\n  say: s\n  patterns:\n    en: ['(']\n", r"safety\.yaml:4: .*regular expression"),
    ],
)
def test_a_broken_pack_is_refused_with_file_and_line(tmp_path: Path, file: str, text: str, told: str) -> None:
    with pytest.raises(PackError, match=told):
        load(a_pack(tmp_path, **{file: text}))


def test_every_fault_is_told_at_once_each_where_it_stands(tmp_path: Path) -> None:
    folder = a_pack(tmp_path, pack=SMALL.replace("title: Tea\n", ""), topics="- {id: mint, name: m, cues: 3}")
    with pytest.raises(PackError) as refused:
        load(folder)
    first, second, *_ = str(refused.value).splitlines()
    assert "pack.yaml:1: title is missing" in first and "topics.yaml:1: topics.0.cues" in second


def test_a_changed_pack_is_read_anew(tmp_path: Path) -> None:
    assert load(a_pack(tmp_path)).title == "Tea"
    changed = tmp_path / "pack.yaml"
    changed.write_text(SMALL.replace("title: Tea", "title: Better tea, much better"), "utf-8")
    os.utime(changed, (1e9, 1e9))
    assert load(tmp_path).title == "Better tea, much better"


@pytest.mark.parametrize("name", shipped())
def test_what_is_shipped_can_be_read_and_every_step_has_resources(name: str) -> None:
    pack = load(name)
    for step in pack.steps:
        found = [resource for resource in pack.resources if set(resource.topics) & set(step.topics)]
        assert len(found) >= 2, f"{name}: the step {step.id} has {len(found)} resources"
    for language in pack.languages:
        for topic in pack.topics:
            assert pack.cues(language)[topic.id], f"{name}: {topic.id} has no cues in {language}"
