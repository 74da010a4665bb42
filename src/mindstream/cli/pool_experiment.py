"""`mindstream pool experiment`: what it prints."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from mindstream.cli.clean import complain, say
from mindstream.cli.json_lines import print_json
from mindstream.cli.progress import progress
from mindstream.cli.tables import print_table
from mindstream.service.pool_experiment import MEANING, RULES, Report, Wish, run_experiment
from mindstream.settings import Settings
from mindstream.sharing.experiment.cells import STAGES
from mindstream.sharing.experiment.studies import ALL

SCORES = ("rouge_2", "rouge_l", "token_match", "bert_score", "own_exemplars")
TITLES = {
    "shots": "How many exemplars (domain pools, the whole stream)",
    "pools": "A pool for each domain, or one of the same size for all",
    "growth": "While the stream comes in",
    "controls": "Controls: they must do worse than what is recalled",
}


def experiment(settings: Settings, wish: Wish, json: bool) -> int:
    """Run it, and print what came of it."""

    async def run() -> Report:
        with progress("answering") as told:
            return await run_experiment(settings, wish, told)

    try:
        found = asyncio.run(run())
    except KeyboardInterrupt:
        if wish.out:
            complain(f"what was answered is kept in {wish.out}; the same command goes on")
        raise
    if json:
        print_json({"experiment": found.how})
        for row in found.rows:
            print_json(row)
        return 0
    _print(found)
    return 0


def _print(found: Report) -> None:
    scores = [name for name in SCORES if any(name in row for row in found.rows)]
    for study, title in TITLES.items():
        some = [row for row in found.rows if row["study"] == study]
        if some:
            say(f"{title}\n")
            columns = ("agent", "form", _condition(some)[0], "tests", *scores)
            print_table(columns, [_cells(row, some, scores) for row in sorted(some, key=_order)], words=3)
            say("")
    models = ", ".join(dict.fromkeys(found.how["agents"].values()))
    offered = found.how["offered"]
    say(f"answers by {models}; recall by {found.how['embedder']}; {found.how['tests left out']} tests left out (leaks)")
    if any(offered.values()):
        say(f"of what streamed in {offered['admitted']} were admitted, {offered['rejected']} rejected")
    if RULES in found.how:
        say(MEANING)


def _condition(rows: Sequence[dict[str, Any]]) -> tuple[str, str]:
    """Return the name of what a study changes, and its field."""
    study = rows[0]["study"]
    return {"shots": ("shots", "shots"), "pools": ("pool", "pool"), "growth": ("stream", "stage")}.get(
        study, ("exemplars", "control")
    )


def _cells(row: dict[str, Any], rows: Sequence[dict[str, Any]], scores: Sequence[str]) -> list[str]:
    value = row[_condition(rows)[1]]
    shown = {"growth": f"{value * 100 // STAGES} %"} if row["study"] == "growth" else {}
    condition = shown.get(row["study"], "recalled" if value == "none" else str(value))
    return [row["agent"], row["form"], condition, str(row["tests"]), *(f"{row[name]:.3f}" for name in scores)]


def _order(row: dict[str, Any]) -> bool:
    return bool(row["agent"] != ALL)
