"""Three turns of the coach with a real small model in every role, without errors."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
from gguf import TALK, turns

from mindstream.models.providers.address import local_file


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.skipif(
    local_file() is None or find_spec("xllamacpp") is None,
    reason="the model `local` is not installed: mindstream model get",
)
async def test_three_turns_with_a_real_model_give_no_errors() -> None:
    found = await turns("local", TALK[:3])
    assert [turn["by"] for turn in found["turns"]] == ["local"] * 3
    assert all(turn["said"] for turn in found["turns"])
    assert found["errors_shown"] == [], "no error reaches the user"
    failed = [call for call in found["failed_calls"] if "PromptTooLong" not in call]
    assert failed == [], "replies that were too long were cut and requested again"
    assert found["replies_over_their_limit"] == 0
    assert found["errors_logged"] == []
    assert any(sum(turn["cached_tokens"].values()) > 300 for turn in found["turns"][1:]), "prefixes are cached"
