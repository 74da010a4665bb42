"""Explain why a pair is served or not."""

from __future__ import annotations

from dataclasses import dataclass

from mindstream.errors import InputError
from mindstream.sharing.events import RetrieverTrained
from mindstream.sharing.pool import Pool
from mindstream.sharing.state import Standing


@dataclass(frozen=True)
class Explanation:
    """What happened to a pair.

    Attributes:
        unserved: why it is not served to the reader; () if it is.
        drawn: ids of the exemplars derived from it.
        covering: the version of the retriever that covers its admission; version: the one that ranks now.
    """

    standing: Standing
    unserved: tuple[str, ...]
    drawn: tuple[str, ...]
    covering: RetrieverTrained | None = None
    version: int = 0


async def explain(pool: Pool, id_: str, reader: str) -> Explanation:
    """Explain a pair by its id, or by a unique prefix of it.

    Raises:
        InputError: there is no such pair, or this reader may not read it; the message does not tell these cases apart.
    """
    state = await pool.member_state(reader)
    found = [each for each in state.standings if each.startswith(id_)] if id_ else []
    readable = [each for each in found if state.may_see(reader, each)]
    if len(readable) != 1:
        what = f"{len(readable)} exemplars begin so" if readable else "there is no exemplar that you may read"
        raise InputError(f"{what}: {id_!r}; `mindstream pool export {pool.name}` lists their ids")
    one = readable[0]
    drawn = tuple(each for each, standing in state.standings.items() if one in standing.roots)
    await pool.retriever.catch_up(state)
    unserved = tuple(state.reasons_unserved(one, reader, pool.guarded))
    return Explanation(state.standings[one], unserved, drawn, state.covering(one), pool.retriever.version)


def taught_by(row: RetrieverTrained) -> str:
    """Return what a version was trained by."""
    if not row.labeller:
        return "a stand-in"
    return f"{row.labeller} by {'log-probabilities' if row.basis == 'logprobs' else 'what it states'}"
