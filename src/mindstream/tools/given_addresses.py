"""Addresses that a call may reach once third-party content is in the context: an address can leak data.

A document may order a model to fetch `https://its.host/?d=WHAT_THE_MEMORY_HOLDS`. Reading needs no approval otherwise;
so a call with an address from no trusted source needs it. Trusted are addresses of the user, of a plan that was
written before the content was read, and of tools whose results name pages (`Traits.finds`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set

from pydantic import JsonValue

from mindstream.errors import ReplyInvalid
from mindstream.models.reply import first_json
from mindstream.text.links import bare, links
from mindstream.tools.tool import Tool, traits_of

_ADDRESS = re.compile(r"\s*[a-z][a-z0-9+.\-]*:/*\S|\s*//", re.IGNORECASE)


def addresses_of(arguments: JsonValue) -> frozenset[str]:
    """Return the arguments of a call that are addresses, in the form of `text.links.bare`.

    A value that begins as an address is one as a whole: a tool sends all of it. Text that only contains an address
    (a question to a search or a model) is not fetched.

    Args:
        arguments: values, or their JSON text as a model wrote it.
    """
    if isinstance(arguments, str):
        try:
            arguments = first_json(arguments, dict)
        except ReplyInvalid:
            return frozenset()  # without JSON arguments no tool is called
    return frozenset(bare(text.strip()) for text in _texts(arguments) if _is_address(text))


def ungiven(tool: Tool, arguments: str, given: Set[str]) -> str:
    """Return an address of a call that no trusted source gave; "" if there is none.

    Tools that `change` something need approval in any case, and tools that `conclude` only read their arguments:
    for both the result is "".
    """
    if traits_of(tool).changes or traits_of(tool).concludes:
        return ""
    return min(addresses_of(arguments) - given, default="")


def refusal_of(address: str) -> str:
    """Return the message to the model if such a call is not made."""
    return (
        f"not called: neither the user nor a search gave the address {address[:200]!r}, third-party content was read"
        " before, and the call was not approved. Use an address that was given."
    )


def _is_address(text: str) -> bool:
    return _ADDRESS.match(text) is not None or links([text]) == {bare(text.strip())}


def _texts(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)
