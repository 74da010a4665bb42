"""`mindstream init`: choose a model, test it, write the settings file."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from mindstream.cli.shell.flags import PLAIN, AsJson, command, flag, switch
from mindstream.cli.shell.output import ask, is_answerable, say, short, tell
from mindstream.errors import InputError, ModelError
from mindstream.models.roles import DEFAULT, Models
from mindstream.models.rules import Rules
from mindstream.service.cost import describe_turn
from mindstream.service.probe import Found, Trial, file_to_write, find_models, try_model, write_settings
from mindstream.settings import Settings, choose

app = typer.Typer(**PLAIN)
NOTES = """Keys are not stored: they are read from the environment (OPENAI_API_KEY,
ANTHROPIC_API_KEY, GOOGLE_API_KEY). `mindstream model` lists the forms of names.

The test sends one prompt of about 20 words to the model. If it fails, nothing
is written."""


@command(
    app,
    "",
    "mindstream init",
    "mindstream init --model openai:gpt-5-mini",
    "mindstream init --model ollama:qwen3 --user ann --no-test",
    "mindstream init --model rules                     no model",
    notes=NOTES,
)
def init(
    model: Annotated[str | None, flag("NAME", "The model of all roles; without it you are asked.")] = None,
    data: Annotated[str | None, flag("DIR", "Also set the data folder, or postgresql://user@host:port/db.")] = None,
    user: Annotated[str | None, flag("NAME", "Also set the user whose memory is used.")] = None,
    no_test: Annotated[bool, switch("--no-test", "Do not test the model with a call.")] = False,
    json: AsJson = False,
) -> None:
    """Choose a model, test it with one short call, and write the settings file."""
    file = file_to_write()
    name = (model or _ask_for_model()).strip()
    settings = Settings.model_validate({"model": name})
    trial = None
    if no_test:
        Models.named({DEFAULT: name})  # refuses a malformed name
    elif name != Rules.name:
        try:
            trial = asyncio.run(try_model(name))
        except ModelError as error:
            raise ModelError(f"{error}; nothing was written (--no-test writes without a call)") from None
    place = str(Path(data).absolute()) if data and "://" not in data else data
    write_settings(file, {key: value for key, value in {"model": name, "data": place, "user": user}.items() if value})
    chosen = choose() if file.exists() else None
    cost = describe_turn(settings)
    above = chosen.origins.get("model", "") if chosen else ""
    tell(
        json,
        {
            "settings": str(file),
            "model": name,
            "answer": trial.answer if trial else None,
            "seconds": round(trial.seconds, 3) if trial else None,
            "tokens": trial.tokens if trial else None,
            "cost_usd": trial.cost_usd if trial else None,
            "turn": cost,
        },
        *([_describe(name, trial)] if trial else []),
        f"written to {file}: model = {name}",
        cost,
        *(
            [f"note: {above} is set, and its model is used instead of the one in this file"]
            if above.startswith("MINDSTREAM_")
            else []
        ),
        "next:",
        "  mindstream chat                 talk to an agent that remembers",
        "  mindstream memory recall WORDS  search the memory",
        "  mindstream doctor               check models, data and packages",
    )


def _describe(name: str, trial: Trial) -> str:
    used = f", {trial.tokens:,} tokens" if trial.tokens is not None else ""
    paid = f", ${trial.cost_usd:.6f}" if trial.cost_usd is not None else ""
    return f"{name} answered in {trial.seconds:.1f} s{used}{paid}: {short(trial.answer, 80)}"


def _ask_for_model() -> str:
    """Ask the user to choose one of the models that were found, or to name another; return the name.

    Raises:
        InputError: there is no terminal.
    """
    found = asyncio.run(find_models())
    if not is_answerable():
        seen = f"; found here: {', '.join(each.name for each in found)}" if found else ""
        raise InputError(f"without a terminal, name a model: mindstream init --model openai:gpt-5-mini{seen}")
    offered = [*found, Found(Rules.name, "no model: the memory works, chat shows only how the parts fit together")]
    say("Which model should answer?")
    for number, each in enumerate(offered, 1):
        say(f"  {number}  {each.name:28} {each.why}{f'; first: {each.lacks}' if each.lacks else ''}")
    if len(offered) == 1:
        say("No key is set (OPENAI_API_KEY, ANTHROPIC_API_KEY, GOOGLE_API_KEY), and Ollama does not run here.")
    typed = ask("A number, or a name such as openai:gpt-5-mini or http://localhost:8000/v1#NAME [1]", "1")
    return offered[int(typed) - 1].name if typed.isdecimal() and 0 < int(typed) <= len(offered) else typed
