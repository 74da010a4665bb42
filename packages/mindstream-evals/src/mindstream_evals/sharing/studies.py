"""Define the answers that each study compares, and the means of their scores (Gao 2024, 4.2 to 4.4).

`token_match` resembles BERTScore: it matches tokens greedily, but by the token vectors of the default embedder, which
do not depend on context. If a model is named, BERTScore itself (Zhang 2020) is computed, too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from mindstream import chance, evaluation_cache
from mindstream.errors import InputError, SettingsError
from mindstream.models.embedders.embedder import table, token_ids, unit
from mindstream.private_files import make_private_folder, write_private
from mindstream.sharing.events import Form
from mindstream_evals.sharing.agents import Agent, Cast

LONGEST = 4_000
"""Maximum characters of an answer that are scored."""
Pairs = Sequence[tuple[str, str]]
"""Pairs of an answer and its reference answer."""


def score_answers(pairs: Pairs, bert_model: str = "") -> list[dict[str, float]]:
    """Score answers; each score is an F value from 0 to 1 (BERTScore's may be negative).

    Words are split as in Unicode (UAX 29); each Chinese character is a word.

    Raises:
        SettingsError: a package is not installed, or the model cannot be loaded.
    """
    short = [(one[:LONGEST], other[:LONGEST]) for one, other in pairs]
    rouge = _rouge()
    found = [{**rouge(said, wanted), "token_match": token_match(said, wanted)} for said, wanted in short]
    if bert_model:
        for each, score in zip(found, _bert_scores(short, bert_model), strict=True):
            each["bert_score"] = score
    return found


def token_match(said: str, wanted: str) -> float:
    """Return how well the tokens of two texts match, as an F1 score.

    Precision is the mean similarity (by embeddings) of each token of `said` to the most similar token of `wanted`.
    Recall is the same with the texts exchanged. The score is 0 if a text is empty, or if precision or recall is not
    positive.
    """
    one, other = token_ids(said), token_ids(wanted)
    if not one or not other:
        return 0.0
    near = unit(table()[one].copy()) @ unit(table()[other].copy()).T
    precision, recall = float(np.mean(near.max(axis=1))), float(np.mean(near.max(axis=0)))
    return 2 * precision * recall / (precision + recall) if min(precision, recall) > 0 else 0.0


def _rouge() -> Callable[[str, str], Mapping[str, float]]:
    try:
        from rouge_score_rs import rouge_scorer, tokenizers
    except ImportError:
        raise SettingsError(
            "ROUGE needs a package that is not installed: pip install 'mindstream[experiment]'"
        ) from None
    scorer: Any = rouge_scorer.RougeScorer(  # type: ignore[no-untyped-call]
        ["rouge2", "rougeL"], tokenizer=tokenizers.UnicodeTokenizer()
    )

    def score(said: str, wanted: str) -> Mapping[str, float]:
        found = scorer.score(wanted, said)
        return {"rouge_2": found["rouge2"].fmeasure, "rouge_l": found["rougeL"].fmeasure}

    return score


def _bert_scores(pairs: Pairs, model: str) -> list[float]:
    try:
        import bert_score
        from transformers import AutoConfig
    except ImportError:
        raise SettingsError(
            "BERTScore needs packages that are not installed: pip install 'mindstream[bertscore]'"
        ) from None
    try:
        known = model in bert_score.utils.model2layers
        layers = None if known else AutoConfig.from_pretrained(model).num_hidden_layers
        scorer: Any = bert_score.BERTScorer(model_type=model, num_layers=layers)
        # BERTScore fails on blank texts
        spoken = [at for at, pair in enumerate(pairs) if all(text.strip() for text in pair)]
        if not spoken:
            return [0.0] * len(pairs)
        _, _, found = scorer.score([pairs[at][0] for at in spoken], [pairs[at][1] for at in spoken])
    except (OSError, ValueError) as error:
        raise SettingsError(f"BERTScore cannot be loaded from {model!r}: {error}") from None
    scores = dict(zip(spoken, map(float, found), strict=True))
    return [scores.get(at, 0.0) for at in range(len(pairs))]


STAGES = 5
HEADER = "experiment"
"""Key of the first row of the file, which stores the settings that its answers depend on."""
PoolKind = Literal["none", "domain", "single"]
Control = Literal["", "random", "shuffled"]


@dataclass(frozen=True)
class Cell:
    """A test question, answered by one agent under one condition.

    Attributes:
        pool: the pool to recall from: the pool of the agent's domain, the pool of all agents, or none (zero-shot).
        form: the embedded form of the exemplars.
        stage: how many fifths of the stream of exchanges were offered to the pool before the test, 1 to 5; 0: the test
            has no exemplars.
        control: "random": exemplars drawn at random; "shuffled": exemplars with answers of other questions; "": neither
            of the two.
    """

    agent: str
    test: int
    shots: int
    pool: PoolKind = "domain"
    form: Form = "composed"
    stage: int = STAGES
    control: Control = ""

    @property
    def key(self) -> str:
        """The key of the cell in the file of answers."""
        return "/".join(map(str, astuple(self)))


def zero_shot(agent: str, test: int) -> Cell:
    """Return the cell for a test that an agent answers without exemplars.

    Pool, form and stage have no effect without exemplars, so they are the same in all these cells.
    """
    return Cell(agent, test, 0, "none", "bare", 0)


@dataclass(frozen=True)
class CellAnswer:
    """An agent's answer to a test query.

    Attributes:
        model: the model that answered.
        shown: the writers of the exemplars in the prompt, the nearest first. In a study over a stream of pairs: the ids
            of the exemplars.
    """

    text: str
    model: str
    shown: tuple[str, ...] = ()


class Ledger:
    """Answers by cell. If a file is given, each answer is appended to the file at once, as a line of JSON.

    Args:
        header: settings that the answers depend on; a file with other settings is refused.
        part: name of this process if another process writes `file`. This process then writes a separate file, which the
            other process merges later. "": this process writes `file`.

    Raises:
        InputError: the file cannot be used, or belongs to another experiment.
    """

    def __init__(self, file: Path | None, header: Mapping[str, Any], part: str = "") -> None:
        self._kept = evaluation_cache.EvaluationCache(file, part=part)
        header, there = json.loads(json.dumps(header)), self._kept.find(HEADER)
        if there is None and self._kept.rows:
            raise InputError(f"{file} is not a file of answers of an experiment; name another one with --out")
        if there is None:
            self._kept.keep(HEADER, dict(header))
        elif there != header:
            raise InputError(f"{file}: {_difference(there, header)}; name another file with --out")
        self.answers = dict[str, CellAnswer]()
        self._read()

    def keep(self, key: str, answer: CellAnswer) -> None:
        """Store the answer for a cell (a combination of conditions), or an agent's answer to a streamed question."""
        self.answers[key] = answer
        self._kept.keep(key, asdict(answer))

    def take_in(self) -> None:
        """Merge the files that workers wrote, after the workers have ended."""
        self._kept.merge_parts()
        self._read()

    def _read(self) -> None:
        for key, row in self._kept.rows.items():
            if key != HEADER:
                self.answers[key] = CellAnswer(row["text"], row["model"], tuple(row["shown"]))


def _difference(there: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    name = next((name for name in wanted if there.get(name) != wanted[name]), "")
    return f"its setting `{name}` is {there.get(name)!r}, but this experiment has {wanted.get(name)!r}"


Study = Literal["shots", "pools", "growth", "controls"]
STUDIES: tuple[Study, ...] = get_args(Study)
MOST_SHOTS = 10
ALL = "all"


@dataclass(frozen=True)
class Design:
    """The comparisons of an experiment.

    Attributes:
        shots: the numbers of exemplars per prompt that the study `shots` compares; the other studies use the largest.
        tests: maximum tests per agent; 0: all.
        own_answers: agents answer streamed questions themselves, as in the paper; else the stream's answers are used.
    """

    studies: tuple[Study, ...] = STUDIES
    shots: tuple[int, ...] = (0, 1, 2, 3)
    forms: tuple[Form, ...] = ("composed", "bare")
    tests: int = 0
    seed: int = 0
    own_answers: bool = False

    def __post_init__(self) -> None:
        if not self.shots or not all(0 <= k <= MOST_SHOTS for k in self.shots):
            raise InputError(f"--shots: expected numbers from 0 to {MOST_SHOTS}, such as 0,1,2,3")
        if self.most == 0 and set(self.studies) - {"shots"}:
            raise InputError(
                "--shots 0 is possible only with --studies shots: the other studies need 1 or more exemplars"
            )

    @property
    def most(self) -> int:
        """The number of exemplars in a prompt, for each study except `shots`, which compares several numbers."""
        return max(self.shots)

    def tests_of(self, agent: Agent) -> int:
        """Return the number of an agent's tests in this experiment."""
        return min(self.tests or len(agent.tests), len(agent.tests))


@dataclass(frozen=True)
class Arm:
    """One condition of a study, under which the tests of all agents are answered."""

    study: Study
    shots: int
    pool: PoolKind
    form: Form
    stage: int
    control: Control = ""

    def cell(self, agent: str, test: int) -> Cell:
        """Return the cell (a test question answered under one condition) of a test in this arm. Arms of several studies
        may share a cell; all arms without exemplars do."""
        if not self.shots:
            return zero_shot(agent, test)
        return Cell(agent, test, self.shots, self.pool, self.form, self.stage, self.control)


def named_studies(names: Sequence[str]) -> tuple[Study, ...]:
    """Return the studies of these names.

    Raises:
        InputError: a name is unknown, or no name is given.
    """
    known = {str(study): study for study in STUDIES}
    if not names or (set(names) - set(known)):
        raise InputError(f"--studies: expected one or more of {', '.join(STUDIES)}, found {','.join(names)!r}")
    return tuple(known[name] for name in names)


def arms(design: Design) -> Iterator[Arm]:
    """Yield the conditions of the selected studies."""
    for study in (each for each in STUDIES if each in design.studies):
        for form in design.forms[:1] if study == "controls" else design.forms:
            whole = Arm(study, design.most, "domain", form, STAGES)
            if study == "shots":
                yield from (replace(whole, shots=k) for k in design.shots)
            elif study == "pools":
                yield from (whole, replace(whole, pool="single"))
            elif study == "growth":
                yield from (replace(whole, stage=stage) for stage in range(1, STAGES + 1))
            else:
                yield from (whole, replace(whole, control="random"), replace(whole, control="shuffled"))


def cells(design: Design, agents: Sequence[Agent]) -> list[Cell]:
    """Return the cells of all arms of a design, each once. A cell is a test question, an agent and a condition."""
    wanted = (
        arm.cell(agent.name, at) for arm in arms(design) for agent in agents for at in range(design.tests_of(agent))
    )
    return list(dict.fromkeys(wanted))


def rows(
    design: Design, agents: Sequence[Agent], scored: Mapping[Cell, Mapping[str, float]]
) -> Iterator[dict[str, Any]]:
    """Yield a row per condition and agent, and a row per condition with the mean over all agents."""
    for arm in arms(design):
        head: dict[str, Any] = {
            "study": arm.study,
            "form": arm.form,
            "pool": arm.pool,
            "stage": arm.stage,
            "shots": arm.shots,
        }
        head |= {"control": arm.control or "none"} if arm.study == "controls" else {}
        found = list[dict[str, float]]()
        for agent in agents:
            asked = [scored[arm.cell(agent.name, at)] for at in range(design.tests_of(agent))]
            if asked:
                found.append(_means(asked))
                yield {**head, "agent": agent.name, "tests": len(asked), **found[-1]}
        if found:
            yield {**head, "agent": ALL, "tests": sum(map(design.tests_of, agents)), **_means(found)}


def _means(found: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: round(sum(each[name] for each in found) / len(found), 4) for name in found[0]}


PAIRS, KEY = "pairs.jsonl", "key.json"


def write_blind(folder: Path, cast: Cast, design: Design, answers: Mapping[str, CellAnswer]) -> int:
    """Write pairs of answers for a blind comparison, and the key; return the number of pairs.

    Raises:
        InputError: answers with or without exemplars are missing.
    """
    rows, key = list[dict[str, str]](), dict[str, str]()
    tests = [(agent, at) for agent in cast.agents for at in range(design.tests_of(agent))]
    for agent, at in chance.sample(tests, len(tests), design.seed, "blind"):
        with_them = Cell(agent.name, at, design.most, form=design.forms[0])
        found = [answers.get(each.key) for each in (with_them, zero_shot(agent.name, at))]
        if None in found:
            raise InputError("--blind needs answers with and without exemplars: add --studies shots --shots 0,3")
        first = chance.fraction(design.seed, "blind", with_them.key) < 0.5
        texts = [each.text for each in found if each]
        number = str(len(rows) + 1)
        rows.append({"n": number, "question": agent.tests[at].query, "a": texts[not first], "b": texts[first]})
        key[number] = "a" if first else "b"
    make_private_folder(folder)
    for name in (PAIRS, KEY):  # remove files of an earlier call
        (folder / name).unlink(missing_ok=True)
    write_private(folder / PAIRS, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode())
    write_private(folder / KEY, json.dumps({"with exemplars": key}, indent=1).encode())
    return len(rows)
