"""A question in words with a typed answer, and models by name: the public `ask`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar, TypeVar, overload

from mindstream.models import prompt as typed
from mindstream.models.prompt import Prompt
from mindstream.models.roles import AnyModels, Models, open_models

R = TypeVar("R")


@overload
async def ask(model: AnyModels, prompt: Prompt[R], role: str = "") -> R: ...
@overload
async def ask(model: AnyModels, prompt: str, role: str = "", *, output: type[R]) -> R: ...
@overload
async def ask(model: AnyModels, prompt: str, role: str = "") -> str: ...
async def ask(model: AnyModels, prompt: Prompt[Any] | str, role: str = "", *, output: Any = str) -> Any:
    """Return a model's typed answer.

        mood = await ask("openai:gpt-5-mini", "In which mood is 'What a day!'?", output=Mood)

    Args:
        model: a model, the name of a model, or a table of models or names by role. A model that is given by name is
            opened for this question only; `Models.named` keeps models open.
        prompt: a typed prompt, or a question in words.
        output: the type of the answer to a question in words: a Pydantic model, or any type that Pydantic knows.

    Raises:
        ModelError: the model gave no answer, or an answer of the wrong type (the wrapper `Repair` lets the model
            correct it).
        SettingsError: there is no model of that name, or none for the role.
    """
    if isinstance(prompt, str):
        prompt = question_for(output)(question=prompt)
    if not isinstance(model, str | Mapping | Models):
        return await typed.ask(model, prompt, role)
    async with open_models(model) as models:
        return await typed.ask(models.of(role or prompt.role), prompt, role)


@cache
def question_for(output: Any) -> type[Prompt[Any]]:
    """Return the prompt class for a question in words whose answer has the type `output`."""

    class InWords(Prompt[output]):
        """Answer a question in words."""

        role: ClassVar[str] = "worker"

        question: str

        @classmethod
        def words(cls) -> str:
            form = "" if output is str else " Reply with JSON of this schema and nothing else: {{ schema }}"
            return f'# system\nAnswer the question.{form}\n\n# user\n{{{{ question | data("question") }}}}'

    return InWords
