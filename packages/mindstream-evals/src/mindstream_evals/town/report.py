"""Results of an evaluation: ratings, tests of differences, unsupported claims; and the page for people."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from statistics import fmean

from mindstream_evals.town.evaluate import Checked, Judged
from mindstream_evals.town.pairs import SHUFFLED, Pair
from mindstream_evals.town.questions import Facts
from mindstream_evals.town.ranks import Dunn, Game, KruskalWallis, Rating, dunn, kruskal_wallis, rate


@dataclass(frozen=True)
class Standing:
    """The result of a condition.

    Attributes:
        won, drawn, lost: numbers of comparisons; rating: None if no comparison was judged.
        claims: number of claims in its answers; None if claims were not checked. unsupported: claims without a fact.
    """

    condition: str
    won: int = 0
    drawn: int = 0
    lost: int = 0
    rating: Rating | None = None
    claims: int | None = None
    unsupported: int = 0


@dataclass(frozen=True)
class Findings:
    """The results.

    Attributes:
        standings: results by condition, the most believable first.
        items: number of judged items (questions to residents).
        agreed: share of pairs with the same verdict in both orders; None if no model judged.
        first: share of the verdicts other than draws that the answer shown first won; None without such verdicts.
    """

    standings: tuple[Standing, ...]
    kruskal: KruskalWallis | None
    dunn: tuple[Dunn, ...]
    items: int
    agreed: float | None
    first: float | None

    @property
    def control_lost(self) -> bool | None:
        """Whether the answers of other residents ranked last, as they must; None if that control was not run."""
        rated = [each.condition for each in self.standings if each.rating]
        return rated[-1] == SHUFFLED if SHUFFLED in rated else None


def report(conditions: Sequence[str], judged: Sequence[Judged], checked: Sequence[Checked], seed: int) -> Findings:
    """Combine verdicts and claim checks.

    The tests compare, per condition, one value for each item: the share of comparisons that the condition won (a draw
    counts half). If all pairs of an item are judged, the shares rank the conditions like a person who orders answers.
    """
    games = [Game(each.pair.first.condition, each.pair.second.condition, each.won) for each in judged]
    ratings = rate(games, seed) if games else {}
    shares = _shares(judged)
    groups = {name: list(shares[name].values()) for name in conditions if name in shares}
    standings = [_standing(name, games, checked, ratings.get(name)) for name in conditions]
    standings.sort(key=lambda each: -each.rating.mu if each.rating else 0.0)
    items = {each.pair.item.key for each in judged}
    return Findings(tuple(standings), kruskal_wallis(groups), dunn(groups), len(items), _agreed(judged), _first(judged))


def _shares(judged: Sequence[Judged]) -> dict[str, dict[tuple[str, str], float]]:
    """Return the share of won comparisons by condition and item."""
    points: defaultdict[str, defaultdict[tuple[str, str], list[float]]] = defaultdict(lambda: defaultdict(list))
    for each in judged:
        points[each.pair.first.condition][each.pair.item.key].append(each.won)
        points[each.pair.second.condition][each.pair.item.key].append(1 - each.won)
    return {name: {key: fmean(won) for key, won in items.items()} for name, items in points.items()}


def _standing(name: str, games: Sequence[Game], checked: Sequence[Checked], rating: Rating | None) -> Standing:
    points = [game.won if game.first == name else 1 - game.won for game in games if name in (game.first, game.second)]
    facts = [fact for each in checked if each.answer.condition == name for _, fact in each.claims]
    claims = len(facts) if checked else None
    return Standing(
        name, points.count(1), points.count(0.5), points.count(0), rating, claims, sum(fact == 0 for fact in facts)
    )


def _agreed(judged: Sequence[Judged]) -> float | None:
    both = [each.verdicts for each in judged if each.verdicts]
    return fmean(float(one == two) for one, two in both) if both else None


def _first(judged: Sequence[Judged]) -> float | None:
    """Return how often the answer shown first won; 0.5 means that the order does not matter."""
    shown = [worth for each in judged if each.verdicts for worth in (each.verdicts[0], 1 - each.verdicts[1])]
    clear = [worth for worth in shown if worth != 0.5]
    return fmean(clear) if clear else None


FOLDER = Path(__file__).parent


def build_page(town: str, pairs: Iterable[tuple[Pair, Facts]]) -> str:
    """Return the HTML page for judging pairs; it names no condition, and escapes the answers."""
    shown = [
        {
            "id": pair.id,
            "resident": pair.item.resident,
            "question": pair.item.question.id,
            "text": pair.item.question.text,
            "when": facts.when,
            "facts": facts.lines,
            "answers": [pair.first.text, pair.second.text],
        }
        for pair, facts in pairs
    ]
    said = json.dumps({"town": town, "pairs": shown}, ensure_ascii=False).encode("utf-8", "replace").decode()
    style, script = _read("pairs.css"), f'"use strict";\n(() => {{\n{_read("pairs.js")}\n}})();\n'
    parts = {
        "title": escape(town),
        "style": style,
        "script": script,
        "style_source": _source(style),
        "script_source": _source(script),
        "pairs": said.replace("<", "\\u003c"),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda gap: parts[gap[1]], _read("pairs.html"))


def _source(text: str) -> str:
    """Return the Content-Security-Policy source of a script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _read(name: str) -> str:
    return (FOLDER / name).read_text("utf-8")
