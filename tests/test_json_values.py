"""JSON that is damaged is read as an empty value; texts are found at any depth."""

from __future__ import annotations

import pytest

from mindstream.json_values import parsed, parsed_or_none, texts_in


@pytest.mark.parametrize("damaged", ["{", "[1]", "null", b"\xff", None, 3, "[" * 100_000])
def test_damaged_json_is_read_as_an_empty_object(damaged: object) -> None:
    assert parsed(damaged, dict) == {}


def test_sound_json_of_the_expected_type_is_returned() -> None:
    assert parsed('{"a": [1]}', dict) == {"a": [1]} and parsed(b"[1, 2]", list) == [1, 2]
    assert parsed_or_none("3") == 3 and parsed_or_none("three") is None


def test_texts_are_found_without_the_names_of_fields() -> None:
    assert list(texts_in({"name": "Ann", "more": [{"deep": "Bob"}, 3, None, "Cy"]})) == ["Ann", "Bob", "Cy"]
