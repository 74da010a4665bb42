"""Which answers each study compares, and the means of their scores (Gao 2024, 4.2 to 4.4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from mindstream.errors import InputError
from mindstream.sharing.events import Form
from mindstream.sharing.experiment.agents import Agent
from mindstream.sharing.experiment.cells import STAGES, Cell, Control, PoolKind, zero_shot

Study = Literal["shots", "pools", "growth", "controls"]
STUDIES: tuple[Study, ...] = get_args(Study)
MOST_SHOTS = 10
ALL = "all"


@dataclass(frozen=True)
class Design:
    """What is compared.

    Attributes:
        shots: how many exemplars; all studies but the first take the most of these.
        tests: how many tests an agent is asked at most; 0: all.
        own_answers: agents answer what streams in themselves, as in the paper; else it has answers.
    """

    studies: tuple[Study, ...] = STUDIES
    shots: tuple[int, ...] = (0, 1, 2, 3)
    forms: tuple[Form, ...] = ("composed", "bare")
    tests: int = 0
    seed: int = 0
    own_answers: bool = False

    def __post_init__(self) -> None:
        if not self.shots or not all(0 <= k <= MOST_SHOTS for k in self.shots):
            raise InputError(f"shots go from 0 to {MOST_SHOTS}, as 0,1,2,3")
        if self.most == 0 and set(self.studies) - {"shots"}:
            raise InputError("zero-shot is compared by the study `shots` alone: the others need --shots of 1 or more")

    @property
    def most(self) -> int:
        """How many exemplars all studies but the first take."""
        return max(self.shots)

    def tests_of(self, agent: Agent) -> int:
        """Return how many tests an agent is asked."""
        return min(self.tests or len(agent.tests), len(agent.tests))


@dataclass(frozen=True)
class Arm:
    """One arm of a study: all agents' tests under one condition."""

    study: Study
    shots: int
    pool: PoolKind
    form: Form
    stage: int
    control: Control = ""

    def cell(self, agent: str, test: int) -> Cell:
        """Return the cell of a test; arms of several studies share it."""
        if not self.shots:
            return zero_shot(agent, test)
        return Cell(agent, test, self.shots, self.pool, self.form, self.stage, self.control)


def named_studies(names: Sequence[str]) -> tuple[Study, ...]:
    """Return the studies of these names.

    Raises:
        InputError: there is none of a name, or none is named.
    """
    known = {str(study): study for study in STUDIES}
    if not names or (set(names) - set(known)):
        raise InputError(f"the studies are {', '.join(STUDIES)}, and not {','.join(names)!r}")
    return tuple(known[name] for name in names)


def arms(design: Design) -> Iterator[Arm]:
    """Yield the arms of all studies that are wanted."""
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
    """Return the cells of all arms, each once."""
    wanted = (
        arm.cell(agent.name, at) for arm in arms(design) for agent in agents for at in range(design.tests_of(agent))
    )
    return list(dict.fromkeys(wanted))


def rows(
    design: Design, agents: Sequence[Agent], scored: Mapping[Cell, Mapping[str, float]]
) -> Iterator[dict[str, Any]]:
    """Yield a row for each arm and agent, and one for all: the mean of the agents' means."""
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
