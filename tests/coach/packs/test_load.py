from __future__ import annotations

import os
from pathlib import Path

import pytest

from mindstream.coach.packs.load import load
from mindstream.errors import PackError

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


def test_an_unknown_pack_lists_the_available_packs() -> None:
    with pytest.raises(PackError, match=r"no pack 'slep'.*sleep"):
        load("slep")


@pytest.mark.parametrize(
    ("file", "text", "told"),
    [
        ("pack", SMALL.replace("[wishes]", "[wishes, sugar]"), "names the field 'sugar'"),
        ("pack", "name: [unclosed", r"pack\.yaml:\d+: not YAML"),
        ("topics", "- id: mint\n  name: mint\n  words: [mint]\n  colour: green\n", r"topics\.yaml:4: topics.0.colour"),
        (
            "steps",
            "- {id: s, title: t, do: d, why: w, evidence: strong, topics: [x]}",
            r"steps\.yaml:1: steps\.0\.topics names the topic 'x', which topics\.yaml does not have",
        ),
        (
            "topics",
            "- {id: mint, name: m, words: [mint], field: wish}",
            r"topics\.yaml:1: .*'wish'.*did you mean 'wishes'",
        ),
        ("pack", SMALL.replace("goal: know", "gaol: know"), r"phases\.0\.gaol is not known here; did you mean 'goal'"),
        ("safety", "- id: a\n  say: s\n  patterns:\n    en: ['(']\n", r"safety\.yaml:4: .*regular expression"),
    ],
)
def test_a_broken_pack_is_refused_with_file_and_line(tmp_path: Path, file: str, text: str, told: str) -> None:
    with pytest.raises(PackError, match=told):
        load(a_pack(tmp_path, **{file: text}))


BOMB = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10)
)
MERGES = "a0: &a0 {k: v}\n" + "".join(f"a{n}: &a{n}\n  <<: [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40))
TRICKS = {
    "lists in lists": ("[" * 100_000, "1: it is nested too deeply"),
    "mappings in mappings": ("{a: " * 100_000, "1: it is nested too deeply"),
    "both in both": ("a:\n  [" + "{a: [" * 50_000, "2: it is nested too deeply"),
    "deep by lines": ("\n".join(" " * n + "a:" for n in range(900)), "31: it is nested too deeply"),
    "a key twice": ("name: a\ntitle: b\nname: c\n", "3: the key 'name' is there twice"),
    "a key twice, deep": ("a:\n  - {b: 1, c: 2}\n  - b: 1\n    b: [2]\n", "4: the key 'b' is there twice"),
    "a key twice in one line": ("{a: {}, b: [a, a], a: 1}", "1: the key 'a' is there twice"),
    "a bomb": (SMALL + BOMB, "12: anchors and aliases"),
    "a bomb of merges": (SMALL + MERGES, "12: anchors and aliases"),
    "a mapping in itself": ("a: &a\n  b: *a\n", "1: anchors and aliases"),
    "code": (
        SMALL + "languages: !!python/object/apply:os.system ['true']\n",
        "12: the tag 'tag:yaml.org,2002:python/object",
    ),
    "a number of 5,000 digits": (SMALL + f"languages:\n  - {'9' * 5000}\n", "13: not YAML: Exceeds the limit"),
    "many parts": (SMALL + "languages: [" + "a," * 100_000 + "]\n", "12: it has too many parts"),
    "many unknown keys": (SMALL + "".join(f"k{n}: 1\n" for n in range(4_000)), "and 3990 more"),
    "a large file": ("#" * 2_000_000, ": is too large: at most 1,000,000 bytes are read"),
}


@pytest.mark.parametrize(("text", "told"), TRICKS.values(), ids=TRICKS)
def test_malicious_yaml_is_refused_before_parsing(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(PackError) as refused:
        load(a_pack(tmp_path, pack=text))
    assert told in str(refused.value)


@pytest.mark.parametrize("file", ["pack.yaml", "topics.yaml"])
def test_a_named_pipe_is_refused_without_blocking(tmp_path: Path, file: str) -> None:
    (a_pack(tmp_path) / file).unlink(missing_ok=True)
    os.mkfifo(tmp_path / file)
    with pytest.raises(PackError, match="is not a regular file"):
        load(tmp_path)


@pytest.mark.parametrize("name", ["b" * 300, "a\0b", "../../..", "", "_new"])
def test_an_invalid_pack_name_is_refused(name: str) -> None:
    with pytest.raises(PackError, match="no pack "):
        load(name)


def test_all_faults_are_reported_at_once_with_their_position(tmp_path: Path) -> None:
    folder = a_pack(tmp_path, pack=SMALL.replace("title: Tea\n", ""), topics="- {id: mint, name: m, words: 3}")
    with pytest.raises(PackError) as refused:
        load(folder)
    first, second, *_ = str(refused.value).splitlines()
    assert "pack.yaml:1: title is missing" in first and "topics.yaml:1: topics.0.words" in second


def test_a_changed_pack_is_reloaded(tmp_path: Path) -> None:
    assert load(a_pack(tmp_path)).title == "Tea"
    changed = tmp_path / "pack.yaml"
    changed.write_text(SMALL.replace("title: Tea", "title: Better tea, much better"), "utf-8")
    os.utime(changed, (1e9, 1e9))
    assert load(tmp_path).title == "Better tea, much better"


def test_a_pack_can_reuse_a_shipped_alarm_with_its_own_text(tmp_path: Path) -> None:
    (alarm,) = load(a_pack(tmp_path, safety="- {shipped: suicide, say: Call somebody.}")).alarms
    assert alarm.id == "suicide" and alarm.recogniser == "danger" and alarm.say == "Call somebody."
    with pytest.raises(PackError, match="shipped"):
        load(a_pack(tmp_path, safety="- {shipped: [suicide], say: Call somebody.}"))
