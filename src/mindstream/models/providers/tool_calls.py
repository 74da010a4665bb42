"""Tool calls put together from the deltas of a stream, in the orders and repetitions in which endpoints send them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from mindstream.chance import token
from mindstream.models.fitting import match_name
from mindstream.models.model import Call

EMPTY = frozenset(("", "{}", "null", '""'))
"""Arguments that stand for none until the real ones come."""


@dataclass
class _Begun:
    """A call that is not whole yet."""

    index: Any
    id: str
    name: str = ""
    pieces: list[str] = field(default_factory=list)

    @property
    def arguments(self) -> str:
        """The arguments; those of the last piece where it repeats them all, and each once where each came twice."""
        pieces = self.pieces
        while len(pieces) > 1 and pieces[0].strip() in EMPTY:
            pieces = pieces[1:]
        whole = "".join(pieces)
        once = "".join(piece for piece, _ in groupby(pieces))
        for text in (whole, *reversed(pieces), once):
            if (found := _object(text)) is not None:
                return found
        return whole

    @property
    def is_whole(self) -> bool:
        ends = self.pieces[-1].rstrip().endswith("}") if self.pieces else False
        return ends and _object(self.arguments) is not None


class ToolCalls:
    """The calls of one reply.

    `index` says which call a delta continues, but servers leave it out, repeat it for each call, or begin at 1; `id`
    comes in the first delta or in each, anew or not at all. So a delta continues the call that it shares an id with,
    else the one with its index unless it begins another, else the last one.

    Args:
        names: the tools that were offered.
        most: after so many calls, `full`.
    """

    def __init__(self, names: Sequence[str], most: int) -> None:
        self._names, self._most = names, most
        self._calls: list[_Begun] = []

    @property
    def began(self) -> bool:
        return bool(self._calls)

    @property
    def full(self) -> bool:
        return len(self._calls) > self._most

    def take(self, delta: Any, place: int | None) -> str:
        """Take some more of a call; return the text that it adds.

        Args:
            place: its place among several calls of one delta, for servers without an index.
        """
        function = delta.get("function") or delta.get("custom") or {}
        if not isinstance(function, dict):
            function = {"name": function}
        given = function.get("arguments", delta.get("arguments", function.get("parameters", function.get("input"))))
        name = function.get("name") or delta.get("name") or ""
        name = match_name(name, self._names) or name
        id_, index = str(delta.get("id") or ""), delta.get("index")
        piece = given if isinstance(given, str) else "" if given is None else json.dumps(given, ensure_ascii=False)
        call = self._continued(index if index is not None else place, id_, name, piece)
        if call is None:
            self._calls.append(call := _Begun(index if index is not None else place, id_))
        call.id = call.id or id_
        if name and name != call.name and not (call.name and call.name in self._names and name in self._names):
            call.name = name if name.startswith(call.name) else call.name + name
        if piece:
            call.pieces.append(piece)
        return piece or name

    def whole(self) -> Iterator[Call]:
        """Give the calls, and forget them."""
        calls, self._calls = self._calls, []
        ids: set[str] = set()
        for call in calls:
            arguments = call.arguments
            if call.name or arguments.strip():
                id_ = call.id if call.id and call.id not in ids else f"call_{token()}"
                ids.add(id_)
                yield Call(call.name, arguments, id_)

    def _continued(self, index: Any, id_: str, name: str, piece: str) -> _Begun | None:
        """Return the call that a delta continues; None where it begins one."""
        if id_ and (same := [call for call in self._calls if call.id == id_]):
            return self._with_id(same, index, name, piece)
        at = [call for call in self._calls if call.index == index] if index is not None else self._calls
        call = at[-1] if at else None
        if call is None:
            orphan = not name and not id_ and self._calls  # arguments under another index than their call's
            return self._calls[-1] if orphan else None
        if not name or not call.name or (self._is_part(call, name) and not call.pieces):
            return call
        if id_ and call.id:  # a new id with a name: another call, unless each delta has a new one
            return None if call.is_whole or not call.pieces or name != call.name else call
        return call if name == call.name and (not call.is_whole or _object(piece) == call.arguments) else None

    def _with_id(self, same: list[_Begun], index: Any, name: str, piece: str) -> _Begun | None:
        """Return the one of these calls, all of one id, that a delta continues; some servers give all calls one id."""
        call = next((each for each in reversed(same) if each.index == index), same[-1])
        if not name or not call.name or self._is_part(call, name):
            return call
        if name != call.name and call.name in self._names and name in self._names:
            return None
        is_other = index is not None and call.index is not None and index != call.index
        if is_other and call.pieces and call.pieces[-1].rstrip().endswith("}"):
            return None
        is_whole = call.is_whole and call.arguments.strip() not in EMPTY
        if is_whole and (found := _object(piece)) is not None and not _is_same(found, call.arguments):
            return None
        return call

    def _is_part(self, call: _Begun, name: str) -> bool:
        """Tell whether a name goes on with a call's."""
        if call.name in self._names:
            return False
        return any(offered.startswith(call.name + name) for offered in self._names) or name.startswith(call.name)


def _is_same(one: str, other: str) -> bool:
    return json.loads(one) == json.loads(other)  # type: ignore[no-any-return]


def _object(text: str) -> str | None:
    """Return arguments that are one whole JSON object, taken out of the text that some servers put it into."""
    try:
        value = json.loads(text)
        if isinstance(value, str):
            text, value = value, json.loads(value)
    except (ValueError, RecursionError):
        return None
    return text if isinstance(value, dict) else None
