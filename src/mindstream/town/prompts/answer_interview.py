"""What does a resident answer to somebody who asks from outside?"""

from __future__ import annotations

from typing import ClassVar

from mindstream.models.prompt import Prompt


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
    """The day's plan, whole around the time that is asked about; empty where plans are switched off."""
    named: tuple[str, ...] = ()
    """Whom of those it knows of the question means."""
    near: tuple[str, ...] = ()
    """Who is in sight."""
    places: tuple[str, ...] = ()
    """Houses and shops that it knows."""
    question: str
    lines: tuple[str, ...] = ()
    """What was asked and answered before, `name: words`."""
