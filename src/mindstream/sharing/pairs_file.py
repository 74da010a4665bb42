"""Read and write pairs as JSON lines, in the chat format for fine-tuning."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from mindstream.errors import InputError
from mindstream.sharing.admission import Pair
from mindstream.sharing.pool import Pool

MAX_LINES = 100_000


async def export_lines(pool: Pool, reader: str) -> list[str]:
    """Return the exemplars that a reader may be served, one per line, with their writers."""
    state = await pool.member_state(reader)
    served = pool.served(state, reader)
    return [_line(pool, id_, state.standings[id_].exemplar.query) for id_ in state.standings if id_ in served]


def _line(pool: Pool, id_: str, query: str) -> str:
    standing = pool.known(id_)
    exemplar = standing.exemplar
    messages = [{"role": "user", "content": query}, {"role": "assistant", "content": exemplar.answer}]
    rest = {
        "id": id_,
        "writer": exemplar.writer,
        "model": exemplar.model,
        "score": standing.verdict.score if standing.verdict else 0.0,
    }
    return json.dumps({"messages": messages, **rest}, ensure_ascii=False)


def read_pairs(lines: Iterable[bytes | str], source: str) -> Iterator[Pair]:
    """Read pairs from lines; the writer that a line names is ignored.

    Raises:
        InputError: a line is not a pair, or there are more than MAX_LINES; the message names the line.
    """
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        if number > MAX_LINES:
            raise InputError(f"{source} has over {MAX_LINES:,} lines")
        try:
            given = json.loads(line)
            said = {message["role"]: message["content"] for message in given["messages"]}
            query, answer, model = said["user"], said["assistant"], given.get("model", "")
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            query = answer = model = None
        if not (isinstance(query, str) and isinstance(answer, str) and isinstance(model, str)):
            wanted = '{"messages": [{"role": "user", "content": …}, {"role": "assistant", "content": …}]}'
            raise InputError(f"{source}:{number}: expected a pair: {wanted}")
        yield Pair(query, answer, model=model)
