"""Stored results are found again: by any process with the file, and from workers' files, however these ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from mindstream.errors import InputError
from mindstream.evaluation_cache import EvaluationCache


def test_rows_of_workers_are_merged_and_incomplete_lines_dropped(tmp_path: Path) -> None:
    file = tmp_path / "kept.jsonl"
    ours = EvaluationCache(file)
    ours.keep("a", {"n": 1})
    killed = EvaluationCache(file, part="7")
    killed.keep("b", {"n": 2})
    assert killed.find("a") == {"n": 1} and ours.find("b") is None and killed.file is not None
    with killed.file.open("a") as half:
        half.write('{"key": "c", "n"')
    again = EvaluationCache(file, part="7")
    assert again.find("b") == {"n": 2} and again.find("c") is None
    again.keep("c", {"n": 3})
    ours.merge_parts()
    assert ours.rows == {"a": {"n": 1}, "b": {"n": 2}, "c": {"n": 3}} == EvaluationCache(file).rows
    assert list(tmp_path.iterdir()) == [file]


def test_leftover_worker_files_are_merged_at_open(tmp_path: Path) -> None:
    file = tmp_path / "kept.jsonl"
    part = EvaluationCache(file, part="none-bare-False")
    part.keep("a", {"n": 1})
    assert part.file is not None
    with part.file.open("a") as half:
        half.write('{"key": "b"')
    assert EvaluationCache(file).rows == {"a": {"n": 1}}
    assert list(tmp_path.iterdir()) == [file]
    (tmp_path / "kept.jsonl.x.part").write_text("my notes\n")
    with pytest.raises(InputError, match="is not an evaluation cache"):
        EvaluationCache(file)
