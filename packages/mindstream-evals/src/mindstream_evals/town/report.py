"""Results of an evaluation: ratings, tests of differences, unsupported claims; and the page for people.

The tests and ratings (Kruskal and Wallis 1952, Dunn 1964 with Holm's correction, TrueSkill) are implemented here
because scipy would add 100 MB for forty lines. The package trueskill had its last release in 2018, and other packages
use other models. For two players without teams TrueSkill needs only the normal distribution.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from statistics import NormalDist, fmean

import numpy as np

from mindstream import chance
from mindstream.html_tables import content_source
from mindstream.significance import holm
from mindstream_evals.town.evaluate import SHUFFLED, Checked, Judged, Pair
from mindstream_evals.town.questions import Facts


@dataclass(frozen=True)
class KruskalWallis:
    """The result of the Kruskal-Wallis test over all groups.

    Attributes:
        h: the statistic, corrected for ties; 0 if all values are equal.
        df: degrees of freedom. p: the p-value. n: number of values.
    """

    h: float
    df: int
    p: float
    n: int


@dataclass(frozen=True)
class Dunn:
    """Dunn's test of two groups; `adjusted`: p after Holm's correction. z > 0: the first group ranks higher."""

    first: str
    second: str
    z: float
    p: float
    adjusted: float


def kruskal_wallis(groups: Mapping[str, Sequence[float]]) -> KruskalWallis | None:
    """Test whether the groups differ; return None with fewer than two non-empty groups."""
    filled = {name: values for name, values in groups.items() if len(values)}
    if len(filled) < 2:
        return None
    ranks, ties = _ranked(filled)
    n = sum(map(len, filled.values()))
    summed = sum(each.sum() ** 2 / len(each) for each in ranks.values())
    ties_correction = 1 - ties / (n**3 - n)
    h = (12 / (n * (n + 1)) * summed - 3 * (n + 1)) / ties_correction if ties_correction > 0 else 0.0
    df = len(filled) - 1
    return KruskalWallis(float(h), df, chi2_above(float(h), df), n)


def dunn(groups: Mapping[str, Sequence[float]]) -> tuple[Dunn, ...]:
    """Compare all pairs of non-empty groups by Dunn's test, corrected by Holm; return () for fewer than two groups."""
    filled = {name: values for name, values in groups.items() if len(values)}
    if len(filled) < 2:
        return ()
    ranks, ties = _ranked(filled)
    n = sum(map(len, filled.values()))
    spread = n * (n + 1) / 12 - ties / (12 * (n - 1))
    found = []
    for first, second in itertools.combinations(filled, 2):
        error = math.sqrt(spread * (1 / len(ranks[first]) + 1 / len(ranks[second]))) if spread > 0 else math.inf
        z = float(ranks[first].mean() - ranks[second].mean()) / error
        found.append((first, second, z, 2 * NormalDist().cdf(-abs(z))))
    adjusted = holm([p for *_, p in found])
    return tuple(Dunn(*each, q) for each, q in zip(found, adjusted, strict=True))


def chi2_above(x: float, df: int) -> float:
    """Return P(X > x) of the chi-squared distribution with an integer number of degrees of freedom, by a finite sum."""
    if x <= 0:
        return 1.0
    half = x / 2
    odd = df % 2
    total = math.erfc(math.sqrt(half)) if odd else 0.0
    term = math.sqrt(half / math.pi) * 2 if odd else 1.0
    for k in range(df // 2):
        total += math.exp(-half) * term
        term *= half / (k + (1.5 if odd else 1))
    return min(1.0, total)


def _ranked(groups: Mapping[str, Sequence[float]]) -> tuple[dict[str, np.ndarray], float]:
    """Return each group's ranks among all values, and the sum of t³-t over all ties.

    Equal values (a tie) get their mean rank; t is the number of values in a tie.
    """
    values = np.concatenate([np.asarray(each, float) for each in groups.values()])
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks = (ends - (counts - 1) / 2)[places]
    cuts = np.cumsum([len(each) for each in groups.values()])[:-1]
    return dict(zip(groups, np.split(ranks, cuts), strict=True)), float((counts.astype(float) ** 3 - counts).sum())


MU, SIGMA = 25.0, 25.0 / 3
BETA = SIGMA / 2
DRAW = 0.1
SHUFFLES = 50
"""Number of random orders of the games; ratings are averaged over them, because they depend on the order."""
WITHIN = 1.96
"""Half the width of a 95 % interval, in standard deviations."""
NORMAL = NormalDist()


@dataclass(frozen=True)
class Rating:
    """A TrueSkill rating: mean and standard deviation of a skill."""

    mu: float = MU
    sigma: float = SIGMA

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the rating."""
        return self.mu - WITHIN * self.sigma, self.mu + WITHIN * self.sigma


@dataclass(frozen=True)
class Game:
    """One game between two players; `won`: 1 if the first won, 0 if the second, 0.5 for a draw."""

    first: str
    second: str
    won: float


def rate_game(
    winner: Rating, loser: Rating, drawn: bool = False, draw: float = DRAW, tau: float = 0.0
) -> tuple[Rating, Rating]:
    """Return the new ratings of the winner and the loser after a game. After a draw (`drawn`), return the ratings of
    both players in the order of the arguments.

    Args:
        draw: probability of a draw between equal players.
        tau: growth of the deviation between games (drift of a skill); 0: none.
    """
    first, second = (math.hypot(each.sigma, tau) for each in (winner, loser))
    c = math.sqrt(2 * BETA**2 + first**2 + second**2)
    margin = NORMAL.inv_cdf((draw + 1) / 2) * math.sqrt(2) * BETA
    v, w = (_at_draw if drawn else _at_win)((winner.mu - loser.mu) / c, margin / c)
    return (
        Rating(winner.mu + first**2 / c * v, first * math.sqrt(max(1 - first**2 / c**2 * w, 1e-9))),
        Rating(loser.mu - second**2 / c * v, second * math.sqrt(max(1 - second**2 / c**2 * w, 1e-9))),
    )


def rate(games: Sequence[Game], seed: int = 0) -> dict[str, Rating]:
    """Return the ratings after all games, averaged over many random orders."""
    names = sorted({name for game in games for name in (game.first, game.second)})
    draws = sum(game.won == 0.5 for game in games) / max(1, len(games))
    draw = min(max(draws, 0.01), 0.8)
    found = [_rate_in_order(chance.sample(games, len(games), seed, "order", n), draw) for n in range(SHUFFLES)]
    return {
        name: Rating(fmean(each[name].mu for each in found), fmean(each[name].sigma for each in found))
        for name in names
    }


def _rate_in_order(games: Sequence[Game], draw: float) -> dict[str, Rating]:
    ratings = {name: Rating() for game in games for name in (game.first, game.second)}
    for game in games:
        winner, loser = (game.first, game.second) if game.won >= 0.5 else (game.second, game.first)
        ratings[winner], ratings[loser] = rate_game(ratings[winner], ratings[loser], game.won == 0.5, draw)
    return ratings


def _at_win(t: float, margin: float) -> tuple[float, float]:
    """Return the factors that update the means and deviations of two ratings after a win (`rate_game`)."""
    x = t - margin
    below = NORMAL.cdf(x)
    v = NORMAL.pdf(x) / below if below > 1e-12 else -x
    return v, v * (v + x)


def _at_draw(t: float, margin: float) -> tuple[float, float]:
    size = abs(t)
    upper, lower = margin - size, -margin - size
    between = NORMAL.cdf(upper) - NORMAL.cdf(lower)
    if between < 1e-12:
        return math.copysign(upper, -t), 1.0
    v = (NORMAL.pdf(lower) - NORMAL.pdf(upper)) / between
    w = v**2 + (upper * NORMAL.pdf(upper) - lower * NORMAL.pdf(lower)) / between
    return (-v if t < 0 else v), w


@dataclass(frozen=True)
class Standing:
    """The result of a condition.

    Attributes:
        won, drawn, lost: numbers of comparisons.
        rating: the rating by the comparisons; None if no comparison was judged.
        claims: number of claims in the answers of the condition; None if claims were not checked.
        unsupported: number of these claims that no fact supports.
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
        first: share of the verdicts, except draws, in which the answer shown first won; None: no such verdict.
    """

    standings: tuple[Standing, ...]
    kruskal: KruskalWallis | None
    dunn: tuple[Dunn, ...]
    items: int
    agreed: float | None
    first: float | None

    @property
    def control_lost(self) -> bool | None:
        """Whether the control condition (answers of other residents) ranked last, as it must; None: it is not rated."""
        rated = [each.condition for each in self.standings if each.rating]
        return rated[-1] == SHUFFLED if SHUFFLED in rated else None


def report(conditions: Sequence[str], judged: Sequence[Judged], checked: Sequence[Checked], seed: int) -> Findings:
    """Combine verdicts and claim checks.

    The statistical tests compare the conditions. For each item, a condition has one value: the share of its comparisons
    that it won (a draw counts half). If all pairs of an item are judged, the shares rank the conditions in the same way
    as a person who puts the answers to the item in order.
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
    """Return the share of verdicts with a winner in which the answer shown first won. 0.5: the order does not matter;
    None: there is no such verdict."""
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
        "style_source": content_source(style),
        "script_source": content_source(script),
        "pairs": said.replace("<", "\\u003c"),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda gap: parts[gap[1]], _read("pairs.html"))


@cache
def _read(name: str) -> str:
    return (FOLDER / name).read_text("utf-8")
