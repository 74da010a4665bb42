"""Support of beliefs by messages is checked by looking up words."""

from __future__ import annotations

import pytest

from mindstream.text.classifier import Support, complaint

SAID = (
    "I lie awake until three, because of the neighbour's music.",
    "我凌晨三点才睡着",
    "no",
    "It is 61 dB &lt;at night>",
)


@pytest.mark.parametrize(
    "quoted",
    [
        "because of the neighbour's music",
        "I lie awake … the neighbour's music",
        "凌晨三点",
        "I lie awake; the neighbour's music",
        "凌晨三点；lie awake",
        "no",
        "61 dB <at night>",
    ],
)
def test_quotations_of_the_text_are_supported(quoted: str) -> None:
    assert Support(SAID).has_quotation(quoted)


@pytest.mark.parametrize(
    "quoted",
    ["because of my children", "", "…", "I", "music … lie awake at noon", "lie awake; at noon", "三", "o", "NO WAY"],
)
def test_other_quotations_are_not_supported(quoted: str) -> None:
    assert not Support(SAID).has_quotation(quoted)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("neighbour's music", True),
        ("music from the neighbours", True),
        ("their spouse and two children", False),
        ("61 dB", True),
        ("62 dB", False),
        ("三点睡着", True),
    ],
)
def test_a_text_without_a_quotation_is_supported_by_shared_words(text: str, holds: bool) -> None:
    assert Support(SAID).has_most_words(text) is holds


def test_a_complaint_names_the_unsupported_parts_and_is_short() -> None:
    told = complaint(["goals: fly to the moon", "x" * 5_000])
    assert "“goals: fly to the moon”" in told and "rests_on" in told and len(told) < 700
