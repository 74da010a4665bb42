"""A task as one HTML file: the ways in which it was solved side by side, step by step, and what each took."""

from __future__ import annotations

from collections.abc import Sequence

from mindstream.errors import InputError
from mindstream.studio.saved_studio import Data, Reading, Saved


async def save_plan(reading: Reading, run: str, *, with_calls: bool = False) -> Saved:
    """Return a run, with all others of its task, as they go into a file; the newest in each way are shown first.

    Args:
        run: which one, by its name.
        with_calls: with the calls of models, word by word where that is kept.

    Raises:
        InputError: there is no such run.
    """
    runs = (await reading.ask("plans.list"))["runs"]
    found = next((each for each in runs if each["run"] == run), None)
    if found is None:
        raise InputError(f"no run is called {run!r} here: `mindstream solve --list` lists them")
    same = [each for each in runs if each is found or (each["task"] and each["task"] == found["task"])]
    answers: Data = {reading.path("plans"): {"runs": same}}
    calls: list[Data] = []
    for each in same:
        rows = await reading.ask("plans.rows", run=each["run"])
        answers[reading.path(f"plans/{each['run']}/rows")] = rows
        calls += rows["calls"]
    saved = Saved(
        page="plan",
        title="A task, and how it was solved",
        answers=answers,
        link={"runs": ",".join(_ways(same, found))},
        models=[call["model"] for call in calls],
    )
    if with_calls:
        await reading.add_calls(saved, [call["seq"] for call in calls])
    return saved


def _ways(runs: Sequence[Data], first: Data) -> list[str]:
    """Name a run, and the newest in each other way."""
    newest = {each["how"]: each["run"] for each in runs} | {first["how"]: first["run"]}
    return list(newest.values())
