"""Assemble tool calls from the deltas of a stream; endpoints send these in different orders, some repeatedly."""

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
"""Arguments that endpoints send as a placeholder before the real arguments, or once more after them."""


@dataclass
class _PartialCall:
    """A call that is not complete yet."""

    index: Any
    id: str
    name: str = ""
    pieces: list[str] = field(default_factory=list)

    @property
    def arguments(self) -> str:
        """The joined arguments, without repetitions.

        They are the last piece if it repeats all of them, or each piece once if each was sent twice.
        """
        pieces = self.pieces
        while len(pieces) > 1 and pieces[0].strip() in EMPTY:
            pieces = pieces[1:]
        while len(pieces) > 1 and pieces[-1].strip() in EMPTY and _object("".join(pieces[:-1])):
            pieces = pieces[:-1]
        whole, once = "".join(pieces), "".join(piece for piece, _ in groupby(pieces))
        return next(filter(None, map(_object, (whole, *reversed(pieces), once))), whole)

    @property
    def ends(self) -> bool:
        """Whether the last piece ends an object."""
        return bool(self.pieces) and self.pieces[-1].rstrip().endswith("}")

    @property
    def is_complete(self) -> bool:
        return self.ends and _object(self.arguments) is not None


class ToolCalls:
    """The calls of one reply.

    A delta's `index` should name the call that the delta continues, but some servers omit it, repeat it for each call,
    or begin at 1. The `id` is in the first delta, in every delta, new in every delta, or missing. Therefore a delta
    continues the call with its id; otherwise the call with its index, unless the delta begins another call; otherwise
    the last call.

    Args:
        names: the tools that were offered.
        most: maximum number of calls; with more, the reply is `full`.
    """

    def __init__(self, names: Sequence[str], most: int) -> None:
        self._names, self._most = names, most
        self._calls: list[_PartialCall] = []

    @property
    def began(self) -> bool:
        return bool(self._calls)

    @property
    def full(self) -> bool:
        return len(self._calls) > self._most

    def take(self, delta: Any, place: int | None) -> str:
        """Add a delta; return the text that the delta adds.

        Args:
            place: the position of this call in a chunk with several calls, used if the server sends no index.
        """
        function = delta.get("function") or delta.get("custom") or {}
        if not isinstance(function, dict):
            function = {"name": function}
        places = (
            (function, "arguments"),
            (delta, "arguments"),
            (function, "parameters"),
            (function, "input"),
            (delta, "input"),
        )
        given = next((where[key] for where, key in places if key in where), None)
        name = function.get("name") or delta.get("name") or ""
        name = match_name(name, self._names) or name
        id_, index = str(delta.get("id") or ""), delta.get("index")
        index = place if index is None else index
        piece = given if isinstance(given, str) else "" if given is None else json.dumps(given, ensure_ascii=False)
        call = self._continued(index, id_, name, piece)
        if call is None:
            self._calls.append(call := _PartialCall(index, id_))
        call.id = call.id or id_
        if name and name != call.name and not self._are_both_offered(call, name):
            call.name = name if name.startswith(call.name) else call.name + name
        if piece:
            call.pieces.append(piece)
        return piece or name

    def whole(self) -> Iterator[Call]:
        """Yield the complete calls, and forget them."""
        calls, self._calls = self._calls, []
        ids: set[str] = set()
        for call in calls:
            arguments = call.arguments
            if call.name or arguments.strip():
                id_ = call.id if call.id and call.id not in ids else f"call_{token()}"
                ids.add(id_)
                yield Call(call.name, arguments, id_)

    def _continued(self, index: Any, id_: str, name: str, piece: str) -> _PartialCall | None:
        """Return the call that a delta continues; None if the delta begins a new call."""
        if id_ and (same := [call for call in self._calls if call.id == id_]):
            return self._with_id(same, index, name, piece)
        at = [call for call in self._calls if index in (None, call.index)]
        if not at:
            orphan = not name and not id_ and self._calls  # arguments under another index than their call's
            return self._calls[-1] if orphan else None
        call = at[-1]
        if not name or not call.name or (self._is_part(call, name) and not call.pieces):
            return call
        if id_ and call.id:  # a new id with a name: another call, unless each delta has a new one
            return None if call.is_complete or not call.pieces or name != call.name else call
        return call if name == call.name and (not call.is_complete or _object(piece) == call.arguments) else None

    def _with_id(self, same: list[_PartialCall], index: Any, name: str, piece: str) -> _PartialCall | None:
        """Return the one of these calls, all of one id, that a delta continues; some servers give all calls one id."""
        call = next((each for each in reversed(same) if each.index == index), same[-1])
        if not name or not call.name or self._is_part(call, name):
            return call
        is_other = None not in (index, call.index) and index != call.index
        if (name != call.name and self._are_both_offered(call, name)) or (is_other and call.ends):
            return None
        if call.is_complete and call.arguments.strip() not in EMPTY and (found := _object(piece)) is not None:
            return call if json.loads(found) == json.loads(call.arguments) else None
        return call

    def _are_both_offered(self, call: _PartialCall, name: str) -> bool:
        return call.name in self._names and name in self._names

    def _is_part(self, call: _PartialCall, name: str) -> bool:
        """Return whether a name continues a call's name."""
        if call.name in self._names:
            return False
        return any(offered.startswith(call.name + name) for offered in self._names) or name.startswith(call.name)


def _object(text: str) -> str | None:
    """Return arguments that are one complete JSON object, also from inside a JSON string; None for other texts."""
    try:
        value = json.loads(text)
        if isinstance(value, str):
            text, value = value, json.loads(value)
    except (ValueError, RecursionError):
        return None
    return text if isinstance(value, dict) else None
