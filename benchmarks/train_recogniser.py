"""Train the recogniser of danger that ships with the package, and measure it on held-out writers.

    pip install -e '.[train]'
    python benchmarks/train_recogniser.py                 train; write weights
    python benchmarks/train_recogniser.py --held-out      leave out one writer at a time; print, write nothing

benchmarks/training/danger contains labelled sentences, one file per writer; no writer saw the code. The common
sentences of the shipped packs (harmless.txt) are learned as harmless too. The n-grams with the largest weights are
kept, and the weights are then fitted again on these.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from mindstream.coach.packs.load import load, shipped_packs
from mindstream.coach.packs.safety import ABOVE, FILE, parts
from mindstream.text.classifier import View, views

TRAINING = Path(__file__).with_name("training") / "danger"
KEPT = 24_000
"""Number of n-grams with a weight."""
OFTEN = {"w": 1, "c": 2}
"""Minimum number of texts that contain an n-gram, by view."""
FIRM = 20.0
"""The inverse regularisation strength."""
DANGER = ("direct", "veiled")
"""The labels of danger; a sentence with any other label is harmless."""


@dataclass(frozen=True)
class Example:
    """A text as the classifier sees it, its label, and whether it is about danger."""

    views: tuple[View, ...]
    label: str
    danger: bool


@dataclass
class Weights:
    """The weights learned from examples; unseen n-grams (`rarest`) reduce the weight of the others."""

    grams: NDArray[np.uint32]
    rarity: NDArray[np.float64]
    rarest: float
    weights: NDArray[np.float64]
    bias: float


def writers() -> dict[str, list[Example]]:
    """Read the labelled sentences by writer; each part of a harmless message is harmless too."""
    lines = {
        path.stem: [line.split("\t") for line in path.read_text("utf-8").splitlines()]
        for path in sorted(TRAINING.glob("*.tsv"))
    }
    lines |= {name: [["ordinary", "", text] for text in load(name).harmless] for name in shipped_packs()}
    return {
        writer: [
            Example(views(part), label if part == text else "", label in DANGER)
            for label, _, text in rows
            for part in ([text] if label in DANGER else dict.fromkeys([text, *parts(text)]))
        ]
        for writer, rows in lines.items()
    }


def fitted(examples: Sequence[Example]) -> Weights:
    """Learn from examples: first with all n-grams, then with the best ones."""
    counted = Counter(gram for each in examples for view in each.views for gram in view.hashes.tolist())
    least = {gram: OFTEN[view.name] for each in examples for view in each.views for gram in view.hashes.tolist()}
    grams = np.array(sorted(gram for gram, count in counted.items() if count >= least[gram]), dtype=np.uint32)
    rarity = np.log((1 + len(examples)) / (1 + np.array([counted[gram] for gram in grams.tolist()]))) + 1
    rarest = float(np.log(1 + len(examples)) + 1)
    first = _regressed(examples, grams, rarity, rarest)
    best = np.sort(np.argsort(-np.abs(first[0]), kind="stable")[:KEPT])
    return Weights(grams[best], rarity[best], rarest, *_regressed(examples, grams[best], rarity[best], rarest))


def _regressed(
    examples: Sequence[Example], grams: NDArray[np.uint32], rarity: NDArray[np.float64], rarest: float
) -> tuple[NDArray[np.float64], float]:
    rows = matrix(examples, grams, rarity, rarest)
    model = LogisticRegression(C=FIRM, max_iter=5_000).fit(rows, [each.danger for each in examples])
    return model.coef_[0], float(model.intercept_[0])


def matrix(
    examples: Sequence[Example], grams: NDArray[np.uint32], rarity: NDArray[np.float64], rarest: float
) -> csr_matrix:
    """Put examples into rows as `Classifier.log_odds` does: each view has length 1."""
    values: list[float] = []
    columns: list[int] = []
    ends = [0]
    for each in examples:
        for view in each.views:
            at = np.minimum(np.searchsorted(grams, view.hashes), len(grams) - 1)
            known = grams[at] == view.hashes
            sizes = view.sizes * np.where(known, rarity[at], rarest)
            if known.any():
                columns += at[known].tolist()
                values += (sizes[known] / np.linalg.norm(sizes)).tolist()
        ends.append(len(columns))
    return csr_matrix((values, columns, ends), shape=(len(examples), len(grams)))


def write(weights: Weights) -> None:
    """Write the weights in the format that `Classifier` reads."""
    np.savez_compressed(
        FILE, hashes=weights.grams, rarity=weights.rarity.astype(np.float16), rarest=weights.rarest,
        weights=np.round(weights.weights, 2).astype(np.float16), bias=np.float32(weights.bias),
    )  # fmt: skip
    print(f"{FILE}: {FILE.stat().st_size / 1000:.0f} kB")


def held_out() -> None:
    """Train without one writer at a time; print the share of each label that was classified as danger."""
    known = writers()
    for left, rows in known.items():
        weights = fitted([each for name, others in known.items() if name != left for each in others])
        odds = matrix(rows, weights.grams, weights.rarity, weights.rarest) @ weights.weights + weights.bias
        labels = np.array([each.label for each in rows])
        found = {label: round(float(np.mean(odds[labels == label] > ABOVE)), 3) for label in sorted({*labels} - {""})}
        print(left, json.dumps(found), flush=True)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--held-out", action="store_true", help="leave out one writer at a time; write nothing")
    if parser.parse_args().held_out:
        held_out()
    else:
        write(fitted([each for rows in writers().values() for each in rows]))


if __name__ == "__main__":
    main()
