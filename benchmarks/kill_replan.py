"""Kill a run whose plan is revised with `kill -9` at every moment, resume it, and count repeated calls and effects.

    python benchmarks/kill_replan.py --json

The moments are: before and after each model reply, before and after each effect of a tool. The run may revise its plan
twice. In one task the second revision yields the answer; in the other one there is never an answer. Expected, compared
with an uninterrupted run: the same answer; at most one more model call; no more revisions; each keyed line once, and of
the others at most the one in flight twice; a bill that lacks at most one call. The model's script depends on the
request only; the model keeps no state.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import tempfile
from collections import Counter
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from killed import FORK, add, lines_of

from mindstream.memory.memory import Memory
from mindstream.models.model import Request
from mindstream.models.rules import FakeModel, Line
from mindstream.planning.executor import Limits, allow
from mindstream.planning.planner import Planner, Strategy
from mindstream.tools.tool import FunctionTool, Traits, tool

TASK, RUN, REPLANS = "Append lines until there are enough.", "killed", 2
PLAN = "#E1 = append_once[line=1]\n#E2 = append[line=2]\n#E3 after #E1 = append_once[line=3]\n"
ENOUGH = 5
"""The line that is the answer: the second one appended."""
WAYS: tuple[Strategy, ...] = ("rewoo", "plan-execute")


@dataclass
class Process:
    """A process that executes the run and dies at one of its moments.

    Attributes:
        ends: whether there is an answer at all.
        dies_at: the number of the moment; 0: it is not killed.
    """

    folder: Path
    how: Strategy
    ends: bool = True
    dies_at: int = 0
    moments: int = 0

    def live(self, what: str) -> None:
        """Pass a moment, or die."""
        add(self.folder / "moments", what)
        self.moments += 1
        if self.moments == self.dies_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def tools(self) -> tuple[FunctionTool, ...]:
        async def append(line: str) -> str:
            """Append a line."""
            return self._append("plain", line, line)

        async def append_once(line: str, key: str = "") -> str:
            """Append a line, once per key."""
            there = any(key == each.partition(" ")[0] for each in lines_of(self.folder / "keyed"))
            return self._append("" if there else "keyed", line, f"{key} {line}")

        return tool(append, Traits(changes=True)), tool(append_once, Traits(changes=True, key="key"))

    def _append(self, file: str, line: str, written: str) -> str:
        self.live("tool")
        if file:
            add(self.folder / file, written)
        self.live("effect")
        return f"line {line}"

    def model(self) -> FakeModel:
        def heard(answer: str, request: Request) -> str:
            label = request.prompt.label()
            add(self.folder / "asked", label)
            self.live(f"{label} asked")
            self.live(f"{label} answered")
            return answer

        def solver(request: Request) -> str:
            shown = request.messages[-1].text
            is_there = self.ends and f"line {ENOUGH}" in shown
            return heard("done" if is_there else "MISSING E1", request)

        def replanner(request: Request) -> str:
            last = max(n for n in range(1, 20) if f"#E{n} " in request.messages[-1].text)
            name = ("append", "append_once")[last % 2]
            return heard(f"#E{last + 1} after #E{last} = {name}[line={last + 1}]", request)

        lines: dict[str, list[Line]] = {
            "make_plan": [lambda request: heard(PLAN, request)] * 9,
            "answer_from_evidence": [solver] * 99,
            "mend_plan": [replanner] * 99,
        }
        return FakeModel(lines)

    async def run(self) -> None:
        async with Memory.open(self.folder, "ada") as stream:
            planner = Planner(
                model=self.model(), tools=self.tools(), how=self.how, approve=allow({"append", "append_once"}),
                replans=REPLANS, limits=Limits(lease_s=0.5), memory=stream,
            )  # fmt: skip
            solution = await planner.solve(TASK, run=RUN)
        found = {"answer": solution.answer, "stopped": solution.stopped, "calls": solution.spent.model_calls,
                 "tool_calls": solution.spent.tool_calls}  # fmt: skip
        (self.folder / "end").write_text(json.dumps(found))

    def start(self) -> None:
        """Run it in a forked process, which need not import anything, until it ends or dies."""
        process = FORK.Process(target=lambda: asyncio.run(self.run()))
        process.start()
        process.join()


@dataclass(frozen=True)
class Outcome:
    """The result of a run, over all its processes."""

    end: dict[str, object]
    asked: Counter[str]
    plain: Counter[str]
    keyed: Counter[str]
    last: str
    """The moment at which it was killed; "" if it was not."""

    @property
    def repeated(self) -> int:
        return sum(self.plain.values()) - len(self.plain)


def run_once(how: Strategy, ends: bool, dies_at: int) -> Outcome:
    """Run the task on a new folder: killed at one moment and resumed, or not killed."""
    with tempfile.TemporaryDirectory() as given:
        folder = Path(given)
        Process(folder, how, ends, dies_at).start()
        last = "" if (folder / "end").exists() else lines_of(folder / "moments")[-1]
        if last:
            Process(folder, how, ends).start()
        return Outcome(
            json.loads((folder / "end").read_text()), Counter(lines_of(folder / "asked")),
            Counter(lines_of(folder / "plain")),
            Counter(line.partition(" ")[2] for line in lines_of(folder / "keyed")), last,
        )  # fmt: skip


def measure(how: Strategy, ends: bool, every: int = 1) -> dict[str, int]:
    """Kill the run at each moment, or at each n-th, and count the runs that meet the expectations."""
    whole = run_once(how, ends, 0)
    found = []
    for n in count(1, every):
        outcome = run_once(how, ends, n)
        if not outcome.last:
            break
        found.append(outcome)
    asked = whole.asked.total()
    return {
        "moments": len(found),
        "same_end": sum({**each.end, **_BILL} == {**whole.end, **_BILL} for each in found),
        "one_call_more_at_most": sum(each.asked.total() <= asked + 1 for each in found),
        "calls_of_models_more": sum(each.asked.total() - asked for each in found),
        "mended_no_oftener": sum(
            each.asked["mend_plan"] <= whole.asked["mend_plan"] + each.last.startswith("mend_plan") for each in found
        ),
        "each_effect_once": sum(
            set(each.keyed.values()) == {1} and each.keyed == whole.keyed and each.plain.keys() == whole.plain.keys()
            and each.repeated <= (each.last == "effect") for each in found
        ),
        "bill_lacks_one_call_at_most": sum(
            each.asked.total() - 1 <= int(str(each.end["calls"])) <= each.asked.total() for each in found
        ),
    }  # fmt: skip


_BILL = {"calls": 0, "tool_calls": 0}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--every", type=int, default=1)
    given = parser.parse_args()
    found = {f"{how}, {'ends' if ends else 'never ends'}": measure(how, ends, given.every)
             for how in WAYS for ends in (True, False)}  # fmt: skip
    print(json.dumps(found, indent=1) if given.json else "\n".join(f"{how}: {row}" for how, row in found.items()))


if __name__ == "__main__":
    main()
