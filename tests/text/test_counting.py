"""How many there are is said as people say it."""

from __future__ import annotations

import pytest

from mindstream.text.counting import count_of


@pytest.mark.parametrize(("n", "said"), [(0, "0 steps"), (1, "1 step"), (2, "2 steps"), (1200, "1,200 steps")])
def test_one_is_said_in_the_singular(n: int, said: str) -> None:
    assert count_of(n, "step") == said
