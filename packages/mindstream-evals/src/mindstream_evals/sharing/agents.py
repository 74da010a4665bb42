"""Example agents: nine in three domains are included; user-defined agents have the same format.

An agent is a TOML file: its name and description, the initial exemplars of its pool, later question-answer pairs
that are offered to the pool (the stream), and tests.
The folder also contains a rubric for each domain. The published question sets (folders in DOMAINS) can be read, too.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mindstream.errors import InputError
from mindstream.models.prompt import Prompt, complaints, rule
from mindstream.sharing.grading import Rubric, read_rubric

DOMAINS = {
    "literature": ("Literal_Creation", "LiteralPool", "Literalproblem", ("wuyanlushi", "limerick", "sonnet")),
    "logic": ("Logic_Problem_Solving", "LogicPool", "LogicProblem", ("puzzle", "pun", "riddle")),
    "plans": ("Plan_Generation", "PlanPool", "PlanProblem", ("travel", "study", "fitness")),
}
TESTS = {
    "wuyanlushi": "lvshiTest",
    "limerick": "limerickTest",
    "sonnet": "sonnetTest",
    "puzzle": "puzzleTest",
    "pun": "punsTest",
    "riddle": "riddlesTest",
    "travel": "travelTest",
    "study": "studyTest",
    "fitness": "fitnessTest",
}
ABOUT = {
    "wuyanlushi": "写五言律诗：八句，每句五字。",
    "limerick": "Writes limericks.",
    "sonnet": "Writes sonnets.",
    "puzzle": "Solves lateral puzzles.",
    "pun": "Explains puns.",
    "riddle": "Answers riddles.",
    "travel": "Plans journeys.",
    "study": "Plans how to learn something.",
    "fitness": "Plans training.",
}
POOL_EACH, STREAM_EACH = 20, 40

Pair = dict[str, str]


def is_published(folder: Path) -> bool:
    """Return whether a folder contains the published question sets."""
    return all((folder / where).is_dir() for where, *_ in DOMAINS.values())


def read_published(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the nine published agents as dictionaries of the fields of `Agent`.

    Raises:
        InputError: a file is not as published.
    """
    for domain, (where, pool, problems, genres) in DOMAINS.items():
        seeds = _pairs(folder / where / f"{pool}.jsonl")
        stream = _by_genre(domain, _pairs(folder / where / f"{problems}.jsonl"))
        for at, genre in enumerate(genres):
            yield {
                "name": genre,
                "domain": domain,
                "about": ABOUT[genre],
                "seeds": seeds[POOL_EACH * at : POOL_EACH * (at + 1)],
                "stream": stream[genre],
                "tests": _pairs(folder / where / f"{TESTS[genre]}.jsonl"),
            }


def _by_genre(domain: str, pairs: list[Pair]) -> dict[str, list[Pair]]:
    """Split a domain's problems into genres: blocks of 40, except one limerick that comes first."""
    if domain == "literature":
        return {"limerick": pairs[:1] + pairs[41:80], "wuyanlushi": pairs[1:41], "sonnet": pairs[80:]}
    names = ("riddle", "pun", "puzzle") if domain == "logic" else ("travel", "study", "fitness")
    return {name: pairs[STREAM_EACH * at : STREAM_EACH * (at + 1)] for at, name in enumerate(names)}


def _pairs(path: Path) -> list[Pair]:
    try:
        lines = [json.loads(line)["messages"] for line in path.read_text("utf-8").splitlines() if line.strip()]
        told = [{each["role"]: each["content"] for each in messages} for messages in lines]
        return [{"query": each["user"], "answer": each["assistant"]} for each in told]
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, LookupError, TypeError) as error:
        raise InputError(
            f"{path} does not have the format of the published data (JSON Lines with `messages`): {error}"
        ) from None


SHIPPED = Path(__file__).parent / "shipped"
RUBRIC = ".rubric.toml"
MOST_BYTES = 4_000_000


class Exchange(BaseModel, frozen=True, extra="forbid", str_strip_whitespace=True):
    """A question and its reference answer."""

    query: Annotated[str, Field(min_length=1, max_length=20_000)]
    answer: Annotated[str, Field(max_length=20_000)]


class Agent(BaseModel):
    """An agent and its exchanges.

    Attributes:
        about: description in one paragraph, for the agent's prompt.
        seeds: initial exemplars of the agent's pool.
        stream: pairs offered to the pool later.
        tests: test questions.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)

    name: Annotated[str, Field(pattern="^[a-z0-9_-]{1,40}$")]
    domain: Annotated[str, Field(pattern="^[a-z0-9_-]{1,40}$")]
    about: Annotated[str, Field(min_length=1, max_length=2_000)]
    seeds: tuple[Exchange, ...]
    stream: tuple[Exchange, ...]
    tests: tuple[Exchange, ...]


@dataclass(frozen=True)
class Cast:
    """The agents of an experiment, from which leaked tests were removed, and the rubrics of their domains.

    Attributes:
        left_out: number of removed tests. A test is removed if its question or answer is in a pool or stream, or if it
            repeats another test of its agent.
    """

    agents: tuple[Agent, ...]
    rubrics: dict[str, Rubric]
    left_out: int

    @property
    def domains(self) -> dict[str, list[Agent]]:
        """Return the agents by domain."""
        return {name: [each for each in self.agents if each.domain == name] for name in _domains(self.agents)}


def load_cast(names: Sequence[str] = (), folder: Path | None = None) -> Cast:
    """Read agents: all of a folder, or the named ones.

    Args:
        folder: a folder of user-defined agents, or of the published question sets (`is_published`); None: the nine
            included agents.

    Raises:
        InputError: a name is unknown, the folder has no agents, or a file cannot be read. The message names what is
            wrong.
    """
    found = _read_folder(folder or SHIPPED)
    known = {each.name: each for each in found}
    if unknown := [name for name in names if name not in known]:
        raise InputError(f"unknown agent {unknown[0]!r}; use one of: {', '.join(known)}")
    chosen = [known[name] for name in dict.fromkeys(names)] if names else found
    rubrics = _read_rubrics(folder if folder and not is_published(folder) else SHIPPED, chosen)
    agents = clean_tests(chosen)
    left_out = sum(len(each.tests) for each in chosen) - sum(len(each.tests) for each in agents)
    return Cast(agents, rubrics, left_out)


def clean_tests(agents: Sequence[Agent]) -> tuple[Agent, ...]:
    """Remove tests whose question or answer occurs in any pool or stream, and repeated tests."""
    told = list(chain(*((*each.seeds, *each.stream) for each in agents)))
    asked, answered = {each.query for each in told}, {each.answer for each in told}
    return tuple(
        agent.model_copy(
            update={
                "tests": tuple(
                    dict.fromkeys(
                        each for each in agent.tests if each.query not in asked and each.answer not in answered
                    )
                )
            }
        )
        for agent in agents
    )


def _read_folder(folder: Path) -> list[Agent]:
    if is_published(folder):
        return [Agent.model_validate(each) for each in read_published(folder)]
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}")
    files = sorted(path for path in folder.glob("*.toml") if not path.name.endswith(RUBRIC))
    if not files:
        folders = ", ".join(where for where, *_ in DOMAINS.values())
        raise InputError(
            f"{folder} has no agents: expected NAME.toml files, or the folders of the published data: {folders}"
        )
    found = [_read_agent(path) for path in files]
    return [each for domain in _domains(found) for each in found if each.domain == domain]


def _read_agent(path: Path) -> Agent:
    try:
        return Agent.model_validate(tomllib.loads(_read(path)))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path} is not valid TOML: {error}") from None
    except ValidationError as error:
        raise InputError(f"{path}: {complaints(error)}") from None


def _read_rubrics(folder: Path, agents: Iterable[Agent]) -> dict[str, Rubric]:
    paths = {domain: folder / f"{domain}{RUBRIC}" for domain in _domains(agents)}
    return {domain: read_rubric(_read(path), str(path)) for domain, path in paths.items() if path.is_file()}


def _read(path: Path) -> str:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise InputError(f"{path} is too large: the limit is {MOST_BYTES:,} bytes")
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from None


def _domains(agents: Iterable[Agent]) -> list[str]:
    return list(dict.fromkeys(each.domain for each in agents))


class AnswerByExample(Prompt[str]):
    """Answer a question as an agent of a domain, after examples, the nearest last."""

    role = "answerer"
    reply_tokens = 500
    trim_order = (("examples", "last"),)

    about: str
    query: str
    examples: tuple[Exchange, ...] = ()


@rule(AnswerByExample)
def copy_nearest(ask: AnswerByExample) -> str:
    """Copy the answer of the nearest exemplar, to measure the effect of the retriever alone."""
    return ask.examples[-1].answer if ask.examples else "…"
