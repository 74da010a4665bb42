"""Who speaks for a mind. The ground knows no domain: a speaker is handed to a mind, or nobody is."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from mindstream.errors import InputError
from mindstream.log.events import Logged
from mindstream.memory.store.store import Entry
from mindstream.reasoners.reasoner import Reasoner, RunContext, RunResult

if TYPE_CHECKING:
    from mindstream.minds.mind import Mind


class Responder(Protocol):
    """Hears what is said to a mind, answers, and may add to what its reasoners conclude.

    Attributes:
        name: what it is called in the log; a coach is called like its pack.
        title: what it is called before people.
        reasoners: those that it brings along.
        belief, plan: what it believes of the user now, and what it plans with them.
    """

    name: str
    title: str
    reasoners: Sequence[Reasoner]

    @property
    def belief(self) -> Any: ...

    @property
    def plan(self) -> Any: ...

    async def begin(self) -> None:
        """Read what is believed and planned, before anything is heard."""

    def hear(self, text: str, *, one_answer: bool = False) -> AsyncGenerator[Logged]:
        """Take in an utterance (see Mind.take_in) and answer it, event by event; `one_answer`: nothing can follow."""

    async def speak_up(self, context: RunContext, result: RunResult, written: Sequence[Entry]) -> Sequence[Entry]:
        """Return what is to be committed with a conclusion besides what it writes itself."""

    async def close(self) -> None:
        """Break off what is being said; what was shown of it is kept."""


ResponderFactory: TypeAlias = "Callable[[Mind], Responder]"


class NullResponder:
    """A mind that answers nobody: what is said to it is remembered and thought about."""

    name = title = ""
    reasoners: Sequence[Reasoner] = ()

    def __init__(self, mind: Mind) -> None:
        self._mind = mind

    @property
    def belief(self) -> Any:
        raise InputError("this mind has no speaker that believes something of its user: see `Stream.belief`")

    @property
    def plan(self) -> Any:
        raise InputError("this mind has no speaker that plans something with its user")

    async def begin(self) -> None:
        pass

    async def hear(self, text: str, *, one_answer: bool = False) -> AsyncGenerator[Logged]:  # noqa: ARG002
        yield await self._mind.take_in(text)
        self._mind.reasoners.wake()

    async def speak_up(self, *_: object) -> Sequence[Entry]:
        return ()

    async def close(self) -> None:
        pass
