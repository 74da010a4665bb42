"""Which results of tools are untrusted: those of a trait, and single ones."""

from __future__ import annotations

import pytest

from mindstream.models.model import Call
from mindstream.tools.call import UntrustedText, call_tool
from mindstream.tools.tool import Traits, tool


async def test_a_result_can_be_untrusted_though_its_tool_is_not() -> None:
    def look(where: str) -> str:
        """Look somewhere."""
        return UntrustedText("theirs") if where == "outside" else "ours"

    tools = [tool(look)]
    assert (await call_tool(Call("look", '{"where": "outside"}'), tools)).untrusted
    assert not (await call_tool(Call("look", '{"where": "inside"}'), tools)).untrusted


def test_the_earlier_name_of_the_trait_works_with_a_warning() -> None:
    with pytest.warns(DeprecationWarning, match="untrusted="):
        traits = Traits(foreign=True)  # type: ignore[call-arg]
    assert traits == Traits(untrusted=True) and traits.foreign  # type: ignore[attr-defined]
