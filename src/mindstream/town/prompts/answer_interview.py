"""What does a resident answer to somebody who asks from outside?"""

from __future__ import annotations

from typing import ClassVar, Literal

from mindstream.models.prompt import Prompt, rule

MOST_QUOTED, LONGEST = 3, 160
NOBODY = "(No model answers."
"""How a stand-in's answer begins; what it said so before is no memory of the resident's."""


class AnswerInterview(Prompt[str]):
    """What does somebody answer in an interview?"""

    role: ClassVar[str] = "talker"

    who: str
    identity: str
    when: str
    doing: str
    place: str = ""
    """Where it is."""
    home: str = ""
    memories: tuple[str, ...] = ()
    day: tuple[str, ...] = ()
    """The day's plan, whole around now; empty where plans are switched off."""
    begun: int = 0
    """So many of its lines have begun; it is not told."""
    asleep: bool = False
    near: tuple[str, ...] = ()
    """Who is in sight."""
    places: tuple[str, ...] = ()
    """Houses and shops that it knows."""
    question: str
    most: Literal["four", "six"] = "four"
    """So many sentences at most."""
    lines: tuple[str, ...] = ()
    """What was asked and answered before, `name: words`."""


@rule(AnswerInterview)
def quote(ask: AnswerInterview) -> str:
    """Stand in: quote what comes to mind first, each with its day, and say that nobody answers."""
    own = [each for each in ask.memories if NOBODY not in each][:MOST_QUOTED]
    quoted = "; ".join(f"“{each[:LONGEST]}{'…' * (len(each) > LONGEST)}”" for each in own)
    return f"{NOBODY} {ask.who} remembers: {quoted or 'nothing of it'})"
