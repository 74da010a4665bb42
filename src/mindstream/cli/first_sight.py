"""What `make run` shows: a recording of the coach with a language model, and then whoever can answer you here."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import sys

from mindstream.cli.asking import confirm
from mindstream.cli.chat import hold
from mindstream.cli.clean import complain, say
from mindstream.cli.conversation import Wishes
from mindstream.cli.demo import play_out
from mindstream.cli.terminal import forget_typed, silent_keys
from mindstream.service.demos import load_demo
from mindstream.service.found_models import Found, find_models
from mindstream.settings import Settings

MEMORY = """
Without a model nobody here understands you, and the memory works: a file of your own, in {data}.
  {command} memory keep "The spare key hangs behind the door."        keep
  {command} memory search where is the key                            search
  {command} memory correct ID "The spare key hangs in the shed now."  correct
  {command} memory forget ID                                          forget, for good
  {command} memory export                                             take it with you
What follows is a talk by stand-ins. Ctrl-D leaves."""
GO_ON = """
Go on in a terminal: `{command} chat`, or one utterance a line: echo "I sleep badly" | {command} chat
`{command} demo plan`, life, town and pool play the other recordings; `{command} doctor` says what is missing."""


def first_sight(settings: Settings, name: str, speed: float | None) -> int:
    """Play a recording, then talk; without a terminal say how to go on. Return the exit code."""
    watched = sys.stdin.isatty() and sys.stdout.isatty()
    if watched:
        say("Ctrl-C skips the recording.")
    skips = contextlib.suppress(KeyboardInterrupt) if watched else contextlib.nullcontext()
    with skips, silent_keys() if watched else contextlib.nullcontext():
        play_out(load_demo(name), speed)
    if settings.only_stand_ins:
        found = asyncio.run(find_models())
        if not watched:
            _tell(found)
        elif model := _offer(found):
            settings = settings.model_copy(update={"model": model})
        else:
            say(MEMORY.format(data=settings.data, command=_command()))
    if not watched:
        say(GO_ON.format(command=_command()))
        return 0
    return hold(settings, Wishes())


def _offer(found: list[Found]) -> str:
    """Ask whether the best model that is found is to answer; return its name, or ""."""
    ready = [each for each in found if not each.lacks]
    if not ready:
        _tell(found)
        complain("no model is found here: export OPENAI_API_KEY=…, ollama pull qwen3, or mindstream model get")
        return ""
    best, *others = ready
    reads = f"{best.reads} then reads what you say, and asks for money" if best.reads else "what you say stays here"
    silly = "; it is small and silly" if best.silly else ""
    say(f"{best.why}: {best.name} can answer you; {reads}{silly}.")
    _tell(others)
    forget_typed()
    return best.name if confirm(f"talk with {best.name}?") else ""


def _command() -> str:
    """Return how this program is called from here: what `make run` has made is on no path."""
    return "mindstream" if shutil.which("mindstream") else sys.argv[0]


def _tell(found: list[Found]) -> None:
    for each in found:
        first = f"{each.lacks}; then " if each.lacks else ""
        say(f"{each.why}: {first}{_command()} chat --model {each.name}")
