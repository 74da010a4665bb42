"""Example agents: nine in three domains come with the package, in `sharing/agents/`; one's own have the same form.

An agent is a TOML file: who it is, what its pool begins with, what streams in, and what it is asked. Beside them lies
a rubric for each domain. The published folders are read, too.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mindstream.errors import InputError
from mindstream.models.prompt import complaints
from mindstream.sharing.experiment.published import is_published, read_published
from mindstream.sharing.grading.rubric import Rubric, read_rubric

SHIPPED = Path(__file__).parents[1] / "agents"
RUBRIC = ".rubric.toml"
MOST_BYTES = 4_000_000


class Exchange(BaseModel):
    """A question and the answer that somebody wrote to it."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)

    query: Annotated[str, Field(min_length=1, max_length=20_000)]
    answer: Annotated[str, Field(max_length=20_000)]


class Agent(BaseModel):
    """An agent and its exchanges.

    Attributes:
        about: what it does, in a paragraph: the model that answers for it is told this.
        seeds: what its pool begins with; stream: what comes later; tests: what it is asked.
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
    """Who takes part: agents whose tests are clean, and the rubrics of their domains.

    Attributes:
        left_out: so many tests were no tests: their question or answer stands in a pool or stream, or twice.
    """

    agents: tuple[Agent, ...]
    rubrics: dict[str, Rubric]
    left_out: int

    @property
    def domains(self) -> dict[str, list[Agent]]:
        """Return the agents by domain."""
        return {name: [each for each in self.agents if each.domain == name] for name in _domains(self.agents)}


def load_cast(names: Sequence[str] = (), folder: Path | None = None) -> Cast:
    """Read agents, all of a folder or those that are named.

    Args:
        folder: one's own agents, or the published pairs; None: the nine that come with the package.

    Raises:
        InputError: there is none of that name, or a file cannot be read; naming it.
    """
    found = _read_folder(folder or SHIPPED)
    known = {each.name: each for each in found}
    if unknown := [name for name in names if name not in known]:
        raise InputError(f"there is no agent {unknown[0]!r}; there are {', '.join(known)}")
    chosen = [known[name] for name in dict.fromkeys(names)] if names else found
    rubrics = _read_rubrics(folder if folder and not is_published(folder) else SHIPPED, chosen)
    agents = clean_tests(chosen)
    left_out = sum(len(each.tests) for each in chosen) - sum(len(each.tests) for each in agents)
    return Cast(agents, rubrics, left_out)


def clean_tests(agents: Sequence[Agent]) -> tuple[Agent, ...]:
    """Leave out each test whose question or answer stands in any pool or stream, and those that stand there twice."""
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
    files = sorted(path for path in folder.glob("*.toml") if not path.name.endswith(RUBRIC))
    if not files:
        raise InputError(f"{folder} has no agents: neither NAME.toml files nor the published folders are there")
    found = [_read_agent(path) for path in files]
    return [each for domain in _domains(found) for each in found if each.domain == domain]


def _read_agent(path: Path) -> Agent:
    try:
        return Agent.model_validate(tomllib.loads(_read(path)))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path} is no TOML: {error}") from None
    except ValidationError as error:
        raise InputError(f"{path}: {complaints(error)}") from None


def _read_rubrics(folder: Path, agents: Iterable[Agent]) -> dict[str, Rubric]:
    paths = {domain: folder / f"{domain}{RUBRIC}" for domain in _domains(agents)}
    return {domain: read_rubric(_read(path), str(path)) for domain, path in paths.items() if path.is_file()}


def _read(path: Path) -> str:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise InputError(f"{path} is over {MOST_BYTES:,} bytes long")
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from None


def _domains(agents: Iterable[Agent]) -> list[str]:
    return list(dict.fromkeys(each.domain for each in agents))
