"""Shared parts of pool tests: a pool of short questions and answers, and its grader."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

from mindstream.models.prompt import ask
from mindstream.models.rules import Rules
from mindstream.sharing.admission import Pair, lay_in
from mindstream.sharing.grading import DraftRubric, Rubric
from mindstream.sharing.pool import Pool

CITIES = (
    "Paris France Seine", "Rome Italy Tiber", "Vienna Austria Danube", "London England Thames", "Lisbon Portugal Tagus",
    "Prague Bohemia Vltava", "Cairo Egypt Nile", "Warsaw Poland Vistula", "Cologne Germany Rhine",
    "Budapest Hungary Danube", "Seville Spain Guadalquivir", "Florence Tuscany Arno", "Basel Switzerland Rhine",
    "Bordeaux Aquitaine Garonne", "Seoul Korea Han", "Kyoto Japan Kamo",
)  # fmt: skip


def city_pair(line: str, model: str = "") -> Pair:
    """Return the pair about a city's river."""
    city, _, river = line.split()
    return Pair(f"Which river flows through {city}?", f"The {river} flows through {city}.", model=model)


def grades(rubric: Rubric, share: float) -> str:
    """Return a scorer's reply that gives this share of each criterion's points."""
    given = [{"criterion": c.name, "points": share * c.points, "reason": "so"} for c in rubric.criteria]
    return json.dumps({"grades": given})


@contextlib.asynccontextmanager
async def city_pool(folder: Path, seeds: int = 0, **others: object) -> AsyncIterator[Pool]:
    """Open a pool owned by olga, with a frozen rubric and a number of seeds."""
    async with Pool.open(folder, "cities") as pool:
        others.setdefault("members", ["*"])
        await pool.create("geography", "olga", **others)  # type: ignore[arg-type]
        await pool.freeze_rubric(await ask(Rules(), DraftRubric(domain="geography")), "olga")
        if seeds:
            await lay_in(pool, [city_pair(line) for line in CITIES[:seeds]], "olga")
        yield pool
