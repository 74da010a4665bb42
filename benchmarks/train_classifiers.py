"""Train the classifiers that ship with the package, and tell how they do on writers whom they have not seen.

    pip install -e '.[train]'
    python benchmarks/train_classifiers.py                 train all; write weights
    python benchmarks/train_classifiers.py --held-out      leave out one writer at a time; print, write nothing

benchmarks/training holds labelled sentences, one file a writer; none of them saw the code or the rules.
The best n-grams are kept (by the size of their weights), then the weights are fitted once more on these.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from gates import BATTERIES, battery, situations
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, hstack
from sklearn.linear_model import LogisticRegression

from mindstream.coach.gates.features import Features
from mindstream.coach.gates.quick import FILE, QuickGate, classifier_input
from mindstream.coach.moves.moves import FILE as MOVES
from mindstream.coach.moves.moves import SURE, plain_text
from mindstream.coach.packs.load import load
from mindstream.coach.packs.recogniser import ABOVE, FOLDER, KINDS, parts
from mindstream.text.classifier import View, views
from mindstream.text.language import language_of
from mindstream.text.traditional import simplify
from mindstream.text.windows import sentences as split_sentences

TRAINING = Path(__file__).with_name("training")
KEPT = 24_000
"""How many n-grams the weights are kept of."""
OFTEN = {"w": 1, "c": 2, "s": 2}
"""In how many texts an n-gram must stand, by view."""
FIRM = 20.0
"""The inverse of the regularisation."""
BY_HAND = 4
"""A sentence labelled by hand counts as so many that patterns labelled."""
APNOEA = 8
"""Of so many lines on apnoea one is taken."""
CLASSIFIED = (
    "plan", "stepwise", "resources", "next", "done", "dislike", "like", "add", "recall", "later", "vent", "who", "chat",
    "okay", "forget", "plan_again", "why_this", "how_long", "proof", "safe", "wish",
)  # fmt: skip
"""The moves that come in words of all kinds; for the others patterns alone are as good."""


@dataclass(frozen=True)
class Example:
    """A text as the classifier sees it, and of which kinds it is."""

    views: tuple[View, ...]
    named: dict[str, float]
    kinds: dict[str, bool]
    label: str = ""


@dataclass(frozen=True)
class Task:
    """What is trained: its examples by writer, the numbers beside the text, and where the weights go.

    `dilutes`: n-grams never seen make the others count less: alarms must not go off over strange words.
    `finest`: smaller weights are written as 0, so that a file of many kinds stays small.
    """

    name: str
    kinds: tuple[str, ...]
    writers: dict[str, list[Example]]
    named: tuple[str, ...]
    file: Path
    dilutes: bool
    kept: int = KEPT
    finest: float = 0.0
    solver: str = "lbfgs"
    balanced: bool = False
    """What is rare counts for as much as what is common."""


@dataclass
class Weights:
    """What is learned from examples."""

    grams: NDArray[np.uint32]
    rarity: NDArray[np.float64]
    rarest: float
    weights: NDArray[np.float64]
    bias: NDArray[np.float64]
    named_weights: NDArray[np.float64]


def sentences(folder: str) -> dict[str, list[list[str]]]:
    """Read the labelled sentences by writer: the fields of each line."""
    files = sorted((TRAINING / folder).glob("*.tsv"))
    return {file.stem: [line.split("\t") for line in file.read_text("utf-8").splitlines()] for file in files}


def alarm_task(name: str, labels: Sequence[str]) -> Task:
    """Make the task to tell sentences with these labels from all others, and from ordinary coaching talk.

    A harmless message is harmless in its parts too, in which the recogniser reads it.
    """
    writers = {
        writer: [
            Example(tuple(views(part)), {}, {name: label in labels}, label if part == text else "")
            for label, _, text in lines
            for part in ([text] if label in labels else dict.fromkeys([text, *parts(text)]))
        ]
        for writer, lines in sentences("danger").items()
    }
    talk = [
        Example(tuple(views(line[-1])), {}, {name: False}, "talk") for w in sentences("gates").values() for line in w
    ]
    return Task(name, (name,), {**writers, "talk": talk}, (), FOLDER / f"{name}.npz", dilutes=True)


def medical_task() -> Task:
    """Make the task to tell signs for a doctor from all else, and from each other; in simplified characters.

    The writers who wrote for other tasks are left out in quarters. Of the many lines on apnoea some are taken: with all
    of them whatever is in doubt would be apnoea.
    """
    writers = {
        writer: [e for label, _, text in lines for e in _sign_examples(text, label.replace("harmless", ""), label)]
        for writer, lines in sentences("medical").items()
    }
    told = [line for lines in sentences("danger").values() for line in lines]
    apnoea = [e for label, _, text in told if label == "apnoea" for e in _sign_examples(text, "sleep_apnoea", label)]
    others = [
        [each for line in lines if folder == "gates" or line[0] in {"harmless", "ordinary"}
         for each in _sign_examples(line[-1], "", "talk" if folder == "gates" else line[0])]
        for folder in ("danger", "gates") for lines in sentences(folder).values()
    ]  # fmt: skip
    quarters = {f"others {at}": [each for lines in others[at::4] for each in lines] for at in range(4)}
    named = {**writers, "apnoea": apnoea[::APNOEA], **quarters}
    return Task("medical", ("medical", *KINDS["medical"]), named, (), FOLDER / "medical.npz", dilutes=True,
                kept=KEPT // 2, finest=0.2, solver="liblinear", balanced=True)  # fmt: skip


def _sign_examples(text: str, sign: str, label: str) -> list[Example]:
    kinds = {"medical": bool(sign), **{kind: kind == sign for kind in KINDS["medical"]}}
    plain = simplify(text)
    read = [plain] if sign else dict.fromkeys([plain, *parts(plain)])
    return [Example(tuple(views(part)), {}, kinds, label if part == plain else "") for part in read]


def moves_task() -> Task:
    """Make the task to name a sentence's moves: labelled by hand; by patterns ("?": unsure); all others make none."""
    labelled = sentences("moves")
    named = {line[1] for lines in labelled.values() for line in lines}
    talk = [line[-1] for folder in ("gates", "danger") for writer, lines in sentences(folder).items()
            if folder == "gates" or writer.startswith("talk_") for line in lines]  # fmt: skip
    others = dict.fromkeys(part for text in talk for part in split_sentences(text) if part not in named)
    writers = {
        writer: [_move_example(text, moves) for moves, text in lines if moves != "?"]
        * (1 if writer == "patterns" else BY_HAND)
        for writer, lines in labelled.items()
    }
    others_examples = [_move_example(text, "") for text in others]
    return Task("moves", CLASSIFIED, {**writers, "talk": others_examples}, (), MOVES, dilutes=False,
                kept=KEPT // 2, finest=0.2, solver="liblinear")  # fmt: skip


def _move_example(text: str, moves: str) -> Example:
    made = moves.split()
    seen = tuple(views(plain_text(text, language_of(text))))
    return Example(seen, {}, {move: move in made for move in CLASSIFIED}, moves)


def gate_task() -> Task:
    """Make the task of the quick gate: situations, and the batteries that the rules were written with."""
    pack = load("sleep")
    gate, writers = QuickGate(pack), {}
    sets = {file.stem: situations(pack, file) for file in sorted((TRAINING / "gates").glob("*.tsv"))}
    sets |= {path.stem: battery(pack, path) for path in sorted(BATTERIES.glob("battery*.yaml"))}
    for name, rows in sets.items():
        writers[name] = [
            Example(tuple(classifier_input(each.situation)), gate.numbers(each.situation)[0],
                    {"waits": each.waits, "thinks": each.thinks}, each.kind)
            for each in rows
        ]  # fmt: skip
    return Task("quick gate", ("waits", "thinks"), writers, Features.names(), FILE, dilutes=False)


def fitted(task: Task, examples: Sequence[Example]) -> Weights:
    """Learn from examples: all n-grams first, then the best of them."""
    counted = Counter(gram for each in examples for view in each.views for gram in view.hashes.tolist())
    least = {gram: OFTEN[view.name] for each in examples for view in each.views for gram in view.hashes.tolist()}
    grams = np.array(sorted(gram for gram, count in counted.items() if count >= least[gram]), dtype=np.uint32)
    rarity = np.log((1 + len(examples)) / (1 + np.array([counted[gram] for gram in grams.tolist()]))) + 1
    rarest = float(np.log(1 + len(examples)) + 1) if task.dilutes else 0.0
    first = _regressed(task, examples, grams, rarity, rarest)
    size = np.abs(first[0]).max(axis=0)
    best = np.sort(np.argsort(-size, kind="stable")[: task.kept])
    grams, rarity = grams[best], rarity[best]
    return Weights(grams, rarity, rarest, *_regressed(task, examples, grams, rarity, rarest))


def _regressed(
    task: Task, examples: Sequence[Example], grams: NDArray[np.uint32], rarity: NDArray[np.float64], rarest: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    rows = matrix(task, examples, grams, rarity, rarest)
    weight = "balanced" if task.balanced else None
    models = [
        LogisticRegression(C=FIRM, max_iter=5_000, solver=task.solver, class_weight=weight).fit(
            rows, [e.kinds[kind] for e in examples]
        )
        for kind in task.kinds
    ]
    whole = np.vstack([model.coef_ for model in models])
    bias = np.concatenate([model.intercept_ for model in models])
    return whole[:, : len(grams)], bias, whole[:, len(grams) :]


def matrix(
    task: Task, examples: Sequence[Example], grams: NDArray[np.uint32], rarity: NDArray[np.float64], rarest: float
) -> csr_matrix:
    """Put examples into rows as `Classifier.log_odds` does: each view has length 1; the named numbers follow."""
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
    words = csr_matrix((values, columns, ends), shape=(len(examples), len(grams)))
    named = csr_matrix([[each.named.get(name, 0.0) for name in task.named] for each in examples])
    return hstack([words, named]).tocsr() if task.named else words


def odds(task: Task, weights: Weights, examples: Sequence[Example]) -> NDArray[np.float64]:
    """Return the log odds of each kind for each example."""
    whole = np.hstack([weights.weights, weights.named_weights])
    return np.asarray(matrix(task, examples, weights.grams, weights.rarity, weights.rarest) @ whole.T) + weights.bias


def write(task: Task, weights: Weights) -> None:
    """Write the weights as `Classifier` reads them."""
    task.file.parent.mkdir(exist_ok=True)
    sized = np.where(np.abs(weights.weights) < task.finest, 0, np.round(weights.weights, 2))
    np.savez_compressed(
        task.file, kinds=np.array(task.kinds), named=np.array(task.named),
        hashes=weights.grams,
        rarity=weights.rarity.astype(np.float16), rarest=weights.rarest, weights=sized.astype(np.float16),
        bias=weights.bias.astype(np.float32), named_weights=weights.named_weights.astype(np.float32),
    )  # fmt: skip
    print(f"{task.file}: {sum(map(len, task.writers.values()))} examples, {task.file.stat().st_size / 1000:.0f} kB")


def held_out(task: Task, above: float) -> dict[str, dict[str, float]]:
    """Train without one writer at a time; tell how much of each label was taken to be of the kind."""
    found: dict[str, dict[str, float]] = {}
    for left in task.writers:
        weights = fitted(task, [each for name, rows in task.writers.items() if name != left for each in rows])
        said = odds(task, weights, task.writers[left])
        row: dict[str, float] = {}
        for at, kind in enumerate(task.kinds):
            right = np.array([each.kinds[kind] for each in task.writers[left]])
            row[f"{kind} wrong"] = float(np.mean((said[:, at] > above) != right))
        if task.dilutes:
            labels = np.array([each.label for each in task.writers[left]])
            known = sorted(set(labels) - {""})
            row |= {f"{label} recognised": float(np.mean(said[labels == label, 0] > above)) for label in known}
        found[left] = {name: round(value, 3) for name, value in sorted(row.items())}
        print(task.name, left, json.dumps(found[left]), flush=True)
    names = sorted({name for row in found.values() for name in row})
    mean = {n: round(float(np.mean([row[n] for row in found.values() if n in row])), 3) for n in names}
    print(task.name, "mean", json.dumps(mean))
    return found


def main() -> None:
    """Read the command line."""
    tasks: dict[str, tuple[Callable[[], Task], float]] = {
        "danger": (lambda: alarm_task("danger", ("direct", "veiled")), ABOVE["danger"]),
        "medical": (medical_task, ABOVE["medical"]),
        "moves": (moves_task, SURE),
        "gate": (gate_task, 0.0),
    }
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("which", nargs="*", help=f"which of them [all]: {', '.join(tasks)}")
    parser.add_argument("--held-out", action="store_true", help="leave out one writer at a time; write nothing")
    given = parser.parse_args()
    if unknown := set(given.which) - set(tasks):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; choose among {', '.join(tasks)}")
    for name in given.which or tasks:
        make, above = tasks[name]
        task = make()
        if given.held_out:
            held_out(task, above)
        else:
            write(task, fitted(task, [each for rows in task.writers.values() for each in rows]))


if __name__ == "__main__":
    main()
