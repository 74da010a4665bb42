"""The tools of the roles themselves: what each takes, checked, and what it does (the M0, M1, M2 system)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mindstream.errors import ReplyInvalid, ToolError
from mindstream.life.steps import Done
from mindstream.models.model import Call, ToolSpec
from mindstream.models.prompt import complaints
from mindstream.models.reply import first_json
from mindstream.tracing import fail, genai, span, tell

LONGEST = 20_000
"""How long a task, a question or a context may be, in characters."""
LONGEST_MEMORY = 4_000
LONGEST_WAIT_S = 7 * 86_400


class Arguments(BaseModel):
    """What a call of one of these tools says."""

    model_config = ConfigDict(extra="ignore")

    query: str = Field("", max_length=LONGEST)
    memory: str = Field("", max_length=LONGEST_MEMORY)
    replaces: str = Field("", max_length=LONGEST_MEMORY)
    question: str = Field("", max_length=LONGEST)
    context: str = Field("", max_length=LONGEST)
    task: int | str = ""
    tip: str = Field("", max_length=2_000)
    timeout: int = Field(0, ge=0, le=LONGEST_WAIT_S)
    text: str = Field("", max_length=LONGEST)
    when: str = Field("", max_length=200)
    until: str = Field("", max_length=200)
    result: str = Field("", max_length=LONGEST)
    done: bool = True
    need: str = Field("", max_length=2_000)


@dataclass(frozen=True, slots=True)
class Where:
    """Where a call stands.

    Attributes:
        id: of the call.
        role: who makes it: M2, M1 or M0.
        tainted: words of strangers stand in what its maker has read.
        row: the row of the log where the call stands: what was begun before stands after it.
        given: addresses that may be fetched though its maker is tainted (tools/given_addresses).
    """

    id: str
    role: str
    tainted: bool = False
    row: int = 0
    given: frozenset[str] = frozenset()


class LifeTool(Protocol):
    """Something that a role may call."""

    @property
    def spec(self) -> ToolSpec: ...

    async def __call__(self, call: Call, where: Where) -> Done:
        """Do it.

        Raises:
            ToolError: the arguments do not fit, or it failed; the message is for the model.
        """


@dataclass(frozen=True, slots=True)
class OwnTool:
    """A tool of the roles: its description, and what it does with arguments that fit.

    Attributes:
        after: what a call does to the run itself, when it has given something; done again where that is read from the
            log.
    """

    spec: ToolSpec
    _does: Callable[[Arguments, Where], Awaitable[Done]]
    after: Callable[[Arguments], Awaitable[None]] | None = None

    async def __call__(self, call: Call, where: Where) -> Done:
        named = {genai.TOOL: call.tool, genai.CALL_ID: call.id, genai.ARGUMENTS: call.arguments}
        with span(genai.EXECUTE_TOOL, call.tool, named) as traced:
            done = await self._does(self.checked(call), where)
            tell(traced, {genai.RESULT: done.found.text})
            if done.found.failed:
                fail(traced, ToolError.__name__)
            return done

    def checked(self, call: Call) -> Arguments:
        """Return a call's arguments; raises ToolError where they do not fit."""
        try:
            given = first_json(call.arguments, dict) if call.arguments.strip() else {}
            arguments = Arguments.model_validate({k: v for k, v in given.items() if v is not None})
        except ValidationError as error:
            raise ToolError(f"{self.spec.name}: the arguments do not fit: {complaints(error)}") from None
        except ReplyInvalid as error:
            raise ToolError(f"{self.spec.name}: {error}") from None
        said = {name for name, value in given.items() if value is not None and str(value).strip()}
        said |= {"memory"} if "replaces" in said else set()  # what is only taken back needs no new one
        missing = [name for name in self.spec.parameters["required"] if name not in said]
        if missing:
            raise ToolError(f"{self.spec.name} needs {', '.join(missing)}")
        return arguments
