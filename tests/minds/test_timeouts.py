"""The timeouts of a mind follow from its models."""

from __future__ import annotations

from mindstream import Models, Timeouts


def test_default_timeouts_follow_the_models() -> None:
    quick = Timeouts().fill(Models.named({"default": "https://models.example.org/v1#m"}))
    slow = Timeouts().fill(Models.named({"default": "ollama:m"}))
    assert 60 < quick.silence_s < slow.silence_s and slow.silence_s > 300
    assert quick.thinking_s < slow.thinking_s == 900


def test_a_models_timeout_applies_to_its_role_only() -> None:
    table = {"talker": "https://models.example.org/v1#m", "reasoner": "ollama:m"}
    found = Timeouts().fill(Models.named(table, patience_s={"ollama:m": 2_000}))
    assert found.thinking_s == 6_000 and found.silence_s < 200
