"""One utterance that a page sends, read from its messages: what is new, what stands before, what the page asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from mindstream import intake
from mindstream.errors import InputError
from mindstream.models.model import FREELY, Sampling
from mindstream.reasoners.conversation import Line
from mindstream.server.chat.listing import LIFE, TASK, is_unkept, talk_of, whose, zone_of
from mindstream.service.chat.companion import Page, is_page_task, split_context
from mindstream.service.operations.principal import NotFound, Principal
from mindstream.service.operations.runtime import Runtime

NAMED = "mind"
"""Signs what others than the user said."""


class ContentPart(BaseModel):
    """A part of a message; only texts are read."""

    model_config = ConfigDict(extra="ignore")

    type: str = Field(max_length=50)
    text: str | None = None


class ChatMessage(BaseModel):
    """A message of a talk. Of calls of tools nothing is read."""

    model_config = ConfigDict(extra="ignore")

    role: Literal["system", "developer", "user", "assistant", "tool", "function"] = "tool"
    content: str | list[ContentPart] | None = None

    @property
    def text(self) -> str:
        """What it says; of a picture, that there is one."""
        if not isinstance(self.content, list):
            return intake.clean(self.content or "").text
        said = "\n".join(part.text for part in self.content if part.text)
        unseen = sum(part.type in ("image_url", "input_image", "input_audio", "file") for part in self.content)
        said = intake.clean(said).text
        return f"{said}\n({unseen} attached, which cannot be read here)".strip() if unseen else said


@dataclass(frozen=True, slots=True)
class Turn:
    """What somebody says to a model.

    Attributes:
        is_task: the page asks for itself.
        is_kept: it is remembered; else answered as if there were no memory.
        goes_on: the talk goes on where it ended; the page shows nothing of it.
        is_named: the page says which talk it is; else it is known by its beginning.
    """

    principal: Principal
    model: str
    session: str
    text: str
    page: Page
    is_task: bool = False
    is_kept: bool = True
    goes_on: bool = False
    is_named: bool = True


def read_turn(
    runtime: Runtime,
    principal: Principal,
    request: Request,
    *,
    model: str,
    messages: Sequence[ChatMessage],
    named: str | Mapping[str, JsonValue] | None = None,
    metadata: Mapping[str, JsonValue] | None = None,
    longest_reply: int = 0,
    sampling: Sampling = FREELY,
    goes_on: str = "",
) -> Turn:
    """Read what a page sends.

    Args:
        goes_on: the talk that the new words belong to, where the page says so; it sends nothing else of it.

    Raises:
        NotFound: there is no such model.
        InputError: nothing new is said in it, or nobody can be called so.
        Forbidden: the token is for another user.
    """
    if model != LIFE and model not in runtime.responder_names():
        raise NotFound(f"nobody is called {model!r} here; there are {', '.join(runtime.responder_names())}")
    said = [each for each in messages if each.role in ("user", "assistant") and each.text.strip()]
    if not said or said[-1].role != "user":
        raise InputError("the last message must be the user's, with words in it")
    instructions = "\n\n".join(each.text for each in messages if each.role in ("system", "developer") and each.text)
    lines = [Line(by_user=each.role == "user", text=each.text, by=NAMED) for each in said[:-1]]
    text, beside = split_context(said[-1].text)
    is_task = bool(request.headers.get(TASK) or (metadata or {}).get("task"))
    is_task = is_task or is_page_task(instructions, lines, text if not beside else "")
    page = Page(instructions, beside, lines, zone_of(request), longest_reply, sampling)
    begins = next((line.text for line in lines if line.by_user), text)
    talk, is_named = talk_of(request, metadata, begins)
    return Turn(
        whose(runtime, principal, request, named),
        model,
        goes_on or f"{model[:30]}:{talk}",
        said[-1].text if is_task else text,
        page,
        is_task,
        not is_unkept(request),
        bool(goes_on),
        is_named,
    )
