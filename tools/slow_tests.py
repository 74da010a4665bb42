"""Write tests/slow.txt: the tests that `make test` leaves out, because they took long in a whole run.

Run `pytest -m "not soak" --durations=0 -vv > log`, then `python tools/slow_tests.py log`. The quickest tests are kept
as long as they take at most SECONDS together; a parametrised test counts as one.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path

SECONDS = 400.0
"""Maximum sum of the durations of all quick tests, in seconds of one worker."""
LINE = re.compile(r"^(\d+\.\d+)s (?:setup|call|teardown) +([^\[\s]+::[^\[\s]+)", re.MULTILINE)


def slow_tests(log: str) -> list[str]:
    """Return the ids of the slow tests in the durations that pytest printed."""
    taken = defaultdict[str, float](float)
    for seconds, name in LINE.findall(log):
        taken[name] += float(seconds)
    left, slow = SECONDS, []
    for name, seconds in sorted(taken.items(), key=lambda each: each[1]):
        left -= seconds
        if left < 0:
            slow.append(name)
    return sorted(slow)


if __name__ == "__main__":
    found = slow_tests(Path(sys.argv[1]).read_text("utf-8", "replace"))
    (Path(__file__).parents[1] / "tests/slow.txt").write_text("\n".join(found) + "\n", "utf-8")
    print(f"{len(found)} tests are slow")
