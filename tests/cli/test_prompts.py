from __future__ import annotations

from pathlib import Path

from running import mistaken, run

import mindstream

SOURCE = Path(mindstream.__file__).parent


def test_every_prompt_is_listed_with_its_role() -> None:
    rows = {row["name"]: row for row in run("prompts", "--json").rows}
    shipped = {path.stem for path in SOURCE.rglob("*.md") if "packs" not in path.relative_to(SOURCE).parts}
    assert rows.keys() == shipped
    assert rows["talk"]["role"] == "talker" and rows["talk"]["own"] is None


def test_copied_prompts_are_used_and_never_overwritten(tmp_path: Path) -> None:
    words = tmp_path / "words"
    words.mkdir()
    (words / "talk.md").write_text("# user\nSay {{ text }}.\n")
    (words / "tlak.md").write_text("")
    copied = run("prompts", "copy", words)
    assert copied.code == 0 and "talk.md exists already" in copied.err
    assert (words / "talk.md").read_text() == "# user\nSay {{ text }}.\n"
    listed = run("prompts", "--prompts", words, "--json")
    rows = {row["name"]: row for row in listed.rows}
    assert all(row["own"] == str(words / f"{name}.md") for name, row in rows.items())
    assert [name for name, row in rows.items() if row["changed"]] == ["talk"]
    assert "no prompt of mindstream itself has this name" in listed.err and "tlak.md" in listed.err
    told = run("prompts", MINDSTREAM_PROMPTS=str(words)).out
    assert "(not changed yet)" in told and str(words / "talk.md") in told


def test_an_invalid_prompts_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "cannot be written" in mistaken(run("prompts", "copy", tmp_path / "file"))
    assert "does not exist" in mistaken(run("prompts", "--prompts", tmp_path / "nowhere"))
