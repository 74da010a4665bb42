"""The prompt that makes a dream of archived records (the M0, M1, M2 system), and its rule-based default."""

from __future__ import annotations

import re
from typing import ClassVar

from mindstream.models.prompt import Prompt, rule

LONGEST = 120
MOST = 7


class Dream(Prompt[str]):
    """Make a dream of what was forgotten."""

    role: ClassVar[str] = "reasoner"

    fragments: tuple[str, ...]


@rule(Dream)
def join_fragments(ask: Dream) -> str:
    """Join the fragments in order."""
    pieces = [_piece(text) for text in ask.fragments[:MOST]]
    if sum(bool(re.search(r"[\u3040-\u30ff\u3400-\u9fff]", piece)) for piece in pieces) * 2 > len(pieces):
        return "我梦见：" + "；然后，".join(pieces) + ("……" if len(ask.fragments) > MOST else "。")
    dream = "I dreamt: " + "; and then: ".join(pieces)
    return dream + (" … and more that I cannot hold." if len(ask.fragments) > MOST else ".")


def _piece(text: str) -> str:
    piece = " ".join(text.split()).strip(" .。!！“”\"'")
    return piece if len(piece) <= LONGEST else piece[:LONGEST].rsplit(" ", 1)[0] + " …"
