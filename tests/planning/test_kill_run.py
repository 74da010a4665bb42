"""`kill -9` in the middle of a run: finished steps are not repeated, and the answer is the same."""

from __future__ import annotations

import sys

import pytest
from kill_run import measure

from mindstream.planning.planner import Strategy


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked")
@pytest.mark.parametrize("how", ["rewoo", "react", "plan-execute"])
def test_a_killed_run_repeats_no_call_with_an_idempotency_key(how: Strategy) -> None:
    found = measure(how, points=3, seed=7)
    assert found["same_answer"] == found["keyed_once_each"] == found["plain_all_there"] == 3
    assert found["repeats_beyond_in_flight"] == 0
