"""Prompts that a person may choose in their program: to remember something, to be told what is remembered."""

from __future__ import annotations

from dataclasses import dataclass

import mcp_types as wire
from mcp.shared.exceptions import MCPError


@dataclass(frozen=True, slots=True)
class MemoryPrompt:
    """A prompt, and its one argument."""

    name: str
    title: str
    description: str
    argument: str
    about: str
    words: str

    def show(self) -> wire.Prompt:
        """Return it as the protocol has it."""
        argument = wire.PromptArgument(name=self.argument, description=self.about, required=True)
        return wire.Prompt(name=self.name, title=self.title, description=self.description, arguments=[argument])


PROMPTS = (
    MemoryPrompt(
        "remember_this",
        "Remember this",
        "Keep something for later talks.",
        "content",
        "What is to be kept.",
        "Retain each fact of the following in its own sentence, in its own language, then say in short what you kept."
        "\n\n{}",
    ),
    MemoryPrompt(
        "what_do_you_know",
        "What do you know of…?",
        "Tell what is remembered of something.",
        "topic",
        "Of what.",
        "Recall what is remembered of the following, and tell it with its days and sources; say so where there is"
        " nothing.\n\n{}",
    ),
)


def list_prompts() -> wire.ListPromptsResult:
    """List the prompts."""
    return wire.ListPromptsResult(prompts=[each.show() for each in PROMPTS])


def fill_prompt(params: wire.GetPromptRequestParams) -> wire.GetPromptResult:
    """Return a prompt's words, with its argument in them.

    Raises:
        MCPError: there is no such prompt, or its argument is missing.
    """
    found = next((each for each in PROMPTS if each.name == params.name), None)
    told = found and (params.arguments or {}).get(found.argument, "").strip()
    if found is None or not told:
        raise MCPError(
            wire.INVALID_PARAMS, f"it wants {found.argument!r}" if found else "there is no prompt of that name"
        )
    content = wire.TextContent(type="text", text=found.words.format(told))
    return wire.GetPromptResult(
        description=found.description, messages=[wire.PromptMessage(role="user", content=content)]
    )
