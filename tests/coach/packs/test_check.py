from __future__ import annotations

import re
from pathlib import Path

import pytest

from mindstream.coach.packs.check import new, thin_spots
from mindstream.coach.packs.load import SHIPPED, load, shipped_packs
from mindstream.errors import InputError

DOCS = Path(__file__).parents[3] / "docs" / "packs.md"


def test_the_pack_template_equals_its_documentation() -> None:
    sections = re.split(r"^## ", DOCS.read_text("utf-8"), flags=re.MULTILINE)[1:]
    fences = {section.split("\n")[0]: re.findall(r"```yaml\n(.*?)```", section, re.DOTALL) for section in sections}
    shown = {name: texts[0] for name, texts in fences.items() if texts}
    assert len(shown) == 5
    for name, text in shown.items():
        assert (SHIPPED / "_new" / name).read_text("utf-8") == text, f"{name} differs from docs/packs.md"


def test_a_new_pack_can_be_loaded(tmp_path: Path) -> None:
    pack = load(new(tmp_path / "my-own-Pack"))
    assert pack.name == "my_own_pack"
    with pytest.raises(InputError, match="exists already"):
        new(tmp_path / "my-own-Pack")


def test_the_check_reports_missing_resources_and_unknown_phrases(tmp_path: Path) -> None:
    folder = new(tmp_path / "thin")
    (folder / "resources.yaml").unlink()
    (folder / "phrases.yaml").write_text("gret: [Hello]", "utf-8")
    told = "\n".join(thin_spots(load(folder)))
    assert "step 'shorter' has 0 resources" in told
    assert "unknown phrase 'gret'" in told


def test_alarms_on_harmless_sentences_are_reported(tmp_path: Path) -> None:
    folder = new(tmp_path / "loud")
    (folder / "harmless.txt").write_text("# common\nmy tea is killing me\nI burnt my tongue\nhello\n", "utf-8")
    alarms = (
        "- {id: burn, say: Water., patterns: {en: ['burn']}}\n"
        "- {id: danger, say: Call., hint_ask: Is it?, patterns: {en: ['die']}, hints: {en: ['killing me']}}"
    )
    (folder / "safety.yaml").write_text(alarms, "utf-8")
    told = [spot for spot in thin_spots(load(folder)) if "harmless" in spot]
    assert told == [
        "alarm 'danger' hears a hint (by its words) in the harmless 'my tea is killing me'",
        "alarm 'burn' stops the talk on the harmless 'I burnt my tongue'",
    ]


def test_a_hint_without_a_question_and_missing_harmless_sentences_are_reported(tmp_path: Path) -> None:
    folder = new(tmp_path / "mute")
    (folder / "harmless.txt").unlink()
    (folder / "safety.yaml").write_text("- {id: d, say: Call., patterns: {en: [die]}, hints: {en: [end]}}", "utf-8")
    told = "\n".join(thin_spots(load(folder)))
    assert "alarm 'd' has no 'hint_ask'" in told and "no harmless.txt" in told


@pytest.mark.parametrize("name", shipped_packs())
def test_shipped_packs_pass_the_check(name: str) -> None:
    assert thin_spots(load(name)) == []
