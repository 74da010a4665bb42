"""What a chat page sends of a talk beside the new words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo

from mindstream.models.model import FREELY, Sampling
from mindstream.reasoners.conversation import Line


@dataclass(frozen=True, slots=True)
class Page:
    """A talk as its page shows it.

    Attributes:
        instructions: what the page asks of whoever answers, in this talk; never remembered.
        beside: what the page found for these words (documents, search); strangers may have written it; never
            remembered.
        lines: what stands before the new words, oldest first.
        zone: where the user lives; None: the page does not say.
        longest_reply: the tokens that an answer may have; 0: the page does not say.
        sampling: how the words of an answer are to be chosen.
    """

    instructions: str = ""
    beside: str = ""
    lines: Sequence[Line] = ()
    zone: tzinfo | None = None
    longest_reply: int = 0
    sampling: Sampling = FREELY


class TalkZone(tzinfo):
    """The time zone of a talk: it can be told another with each utterance.

    Attributes:
        place: where the user lives, as was said last.
    """

    def __init__(self, place: tzinfo) -> None:
        self.place = self._usual = place

    def move(self, place: tzinfo | None) -> None:
        """Take another zone; None: the usual one."""
        self.place = place or self._usual

    def utcoffset(self, at: datetime | None) -> timedelta | None:
        return self.place.utcoffset(at and at.replace(tzinfo=self.place))

    def dst(self, at: datetime | None) -> timedelta | None:
        return self.place.dst(at and at.replace(tzinfo=self.place))

    def tzname(self, at: datetime | None) -> str | None:
        return self.place.tzname(at and at.replace(tzinfo=self.place))

    def fromutc(self, at: datetime) -> datetime:
        return self.place.fromutc(at.replace(tzinfo=self.place)).replace(tzinfo=self)
