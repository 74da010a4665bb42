"""Find who knows a fact by what their memories mean: a model reads them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from mindstream.frozen import Frozen
from mindstream.memory.store.record import Record
from mindstream.models.ask import ask
from mindstream.models.model import Model
from mindstream.models.prompt import Prompt, rule
from mindstream_town.inspect.history import History
from mindstream_town.metrics.measures import Diffusion, Knower, is_first

MAX_MEMORIES, MAX_CHARACTERS = 120, 300
"""Maximum memories in one prompt, and characters of each."""


class Stated(Frozen):
    """The memories that state a fact."""

    numbers: list[int] = Field(default_factory=list, max_length=MAX_MEMORIES)


class StatesFact(Prompt[Stated]):
    """Which of these memories state this fact?"""

    who: str
    fact: str
    memories: tuple[str, ...]


@rule(StatesFact)
def state_nothing(ask: StatesFact) -> Stated:  # noqa: ARG001
    """Rule: without a model, facts are traced by evidence (`trace_fact`)."""
    return Stated()


async def trace_meaning(history: History, fact: str, model: Model) -> Diffusion:
    """Return who knows a fact by the meaning of a memory, and since when.

    A resident's memories, except observations and plans, are read from the oldest to the newest, until one of them
    states the fact.

    Raises:
        ModelError: the model gave no usable answer.
    """
    knowers, records = list[Knower](), set[tuple[str, str]]()
    for name in history.names:
        told = [each for each in history.records[name] if each.kind != "observation" and "plan" not in each.keywords]
        told.sort(key=lambda each: (each.created, each.id))
        for batch in (told[at : at + MAX_MEMORIES] for at in range(0, len(told), MAX_MEMORIES)):
            lines = tuple(f"{each.by}: {each.text}"[:MAX_CHARACTERS] for each in batch)
            stated = await ask(model, StatesFact(who=name, fact=fact, memories=lines))
            found = [batch[number - 1] for number in sorted(stated.numbers) if 0 < number <= len(batch)]
            records |= {(name, each.id) for each in found}
            if found:
                knowers.append(_knower(history, name, found[0]))
                break
    ordered = tuple(sorted(knowers, key=lambda each: (each.step, each.name)))
    return Diffusion(fact, len(history.names), ordered, frozenset(records))


def _knower(history: History, name: str, record: Record) -> Knower:
    """Return a resident as a knower, with its earliest memory that states the fact and the speaker who passed it on."""
    step, of_self = history.step_of(record.created), history.by_id[name]
    sources = [record, *(of_self[each] for each in record.evidence if each in of_self)]
    by = next((each.by for each in sources if each.kind == "chat" and each.by != name), "")
    how: Literal["beginning", "told", "learned"] = "beginning" if is_first(record) else "told" if by else "learned"
    chain = (by, name) if by else (name,)
    return Knower(name, step, history.clock(step), how, by, record.id, record.text, chain)
