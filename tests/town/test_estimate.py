"""What a town would ask of models, told before it lives."""

from __future__ import annotations

from hamlet import hamlet

from mindstream.town.estimate import cost_usd, count_calls


async def test_what_rules_answer_is_no_call_and_costs_nothing() -> None:
    counted = await count_calls(hamlet(), 9 * 360)
    model = {"default": "openai:gpt-5-mini"}
    both = counted.without_rules(model | {"importance": "rules"})
    assert "rate_importance" in counted.without_rules(model).by_kind
    assert both.by_kind.keys() == counted.by_kind.keys() - {"rate_importance"}
    assert not counted.without_rules({"default": "rules"}).by_kind
    assert 0 < (cost_usd(both, model) or 0) < (cost_usd(counted, model) or 0)
