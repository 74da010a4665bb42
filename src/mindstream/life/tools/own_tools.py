"""The roles' own tools: their arguments, checked, and their effect (the M0, M1, M2 system)."""

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
"""Maximum length of a task, a question or a context, in characters."""
LONGEST_MEMORY = 4_000
LONGEST_WAIT_S = 7 * 86_400


class Arguments(BaseModel):
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
    """The origin of a call.

    Attributes:
        id: of the call.
        role: the caller: M2, M1 or M0.
        tainted: whether the caller has read third-party content.
        row: the call's log row: an earlier attempt's effects are after it.
        given: addresses that may be fetched even if the caller is tainted (tools/given_addresses).
    """

    id: str
    role: str
    tainted: bool = False
    row: int = 0
    given: frozenset[str] = frozenset()


class LifeTool(Protocol):
    """A tool that a role may call."""

    @property
    def spec(self) -> ToolSpec: ...

    async def __call__(self, call: Call, where: Where) -> Done:
        """Make the call.

        Raises:
            ToolError: the arguments do not fit, or it failed; the message is for the model.
        """


@dataclass(frozen=True, slots=True)
class OwnTool:
    """One of the roles' own tools: its description, and its effect with valid arguments.

    Attributes:
        after: a successful call's effect on the run itself; repeated when the result is read from the log.
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
        """Return a call's arguments; raises ToolError if they do not fit."""
        try:
            given = first_json(call.arguments, dict) if call.arguments.strip() else {}
            arguments = Arguments.model_validate({k: v for k, v in given.items() if v is not None})
        except ValidationError as error:
            raise ToolError(f"{self.spec.name}: the arguments do not fit: {complaints(error)}") from None
        except ReplyInvalid as error:
            raise ToolError(f"{self.spec.name}: {error}") from None
        said = {name for name, value in given.items() if value is not None and str(value).strip()}
        said |= {"memory"} if "replaces" in said else set()  # a withdrawal needs no new memory
        missing = [name for name in self.spec.parameters["required"] if name not in said]
        if missing:
            raise ToolError(f"{self.spec.name} needs {', '.join(missing)}")
        return arguments
