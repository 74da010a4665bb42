"""The entry point of the process: turns every error into one sentence and an exit code.

0: done · 1: done in part, or with findings (see the command's help) · 2: a mistake in the arguments or the environment
· 70: an error in mindstream · 130: stopped by Ctrl-C (129: the terminal was closed, 143: SIGTERM) · 141: the reader of
the output is closed.
"""

from __future__ import annotations

import errno
import io
import logging
import os
import re
import sys
import traceback
from collections.abc import Sequence

import typer

from mindstream.errors import MindstreamError
from mindstream.paths import variable

OFF = ("", "0", "false", "no", "off", "n", "f")
"""Values of MINDSTREAM_DEBUG that do not switch debugging on."""
MISTAKE, OUR_FAULT, STOPPED, NO_READER = 2, 70, 130, 141
QUIET = logging.NullHandler()


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code. Every exception is reported and converted to an exit code."""
    _streams()
    if sys.flags.optimize > 1:  # without docstrings, which describe tools to models
        _say(
            "mindstream cannot run under `python -OO`, which removes docstrings: models read them as descriptions of"
            " tools"
        )
        return MISTAKE
    if os.environ.get("COLUMNS") == "0":  # some environments set this width, at which no text would be shown
        del os.environ["COLUMNS"]
    words = _in_order(sys.argv[1:] if arguments is None else arguments)
    debug = words[:1] == ["--debug"] or variable("MINDSTREAM_DEBUG").casefold() not in OFF
    if not debug:  # errors are in the log of the mind; they must not interrupt a conversation
        logging.getLogger("mindstream").addHandler(QUIET)
    try:
        from mindstream.cli.app import app

        if "_MINDSTREAM_COMPLETE" in os.environ:  # a shell asks for completions (see `mindstream completion`)
            from typer.completion import completion_init  # type: ignore[attr-defined]

            completion_init()
        code = typer.main.get_command(app)(words, prog_name="mindstream", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except BaseException as error:  # noqa: BLE001 (this is the edge)
        cause = _cause(error)
        code = _print_error(cause)
        if debug and code not in (NO_READER, STOPPED):
            traceback.print_exception(cause)
        elif code == OUR_FAULT:
            _say(f"{type(cause).__name__}: {cause}. This is an error in mindstream; the traceback is in {_kept(cause)}")
        return code


def _in_order(words: Sequence[str]) -> list[str]:
    """Move --debug and --settings FILE, which may stand anywhere in a command line, before the command."""
    debug, settings, rest = [], [], []
    coming = iter(words)
    for word in coming:
        if word == "--":
            rest += [word, *coming]
        elif word == "--debug":
            debug.append(word)
        elif word == "--settings":
            file = next(coming, None)
            if file is None:
                return [word]  # the parser reports the missing value
            settings += [word, file]
        elif word.startswith("--settings="):
            settings.append(word)
        else:
            rest.append(word)
    return [*debug, *settings, *rest]


def _cause(error: BaseException) -> BaseException:
    """Return the error inside an exception group of a task group, preferably a MindstreamError or OSError."""
    if isinstance(error, SystemExit) and isinstance(error.__context__, BrokenPipeError):
        return error.__context__  # Typer has replaced this error by SystemExit
    while isinstance(error, BaseExceptionGroup):
        ours = [inner for inner in error.exceptions if isinstance(inner, MindstreamError | OSError)]
        error = (ours or error.exceptions)[0]
    return error


def _print_error(error: BaseException) -> int:
    """Print the message of an error; return the exit code. Print nothing for SystemExit, for a closed output, and for
    an unexpected error (OUR_FAULT)."""
    from asyncio import CancelledError

    from mindstream.cli.shell.output import no_more_output
    from mindstream.foreign_code import describe

    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else 0
    if isinstance(error, KeyboardInterrupt | CancelledError | typer.Abort):
        _say("stopped")
        return STOPPED
    if isinstance(error, BrokenPipeError):
        no_more_output()
        return NO_READER
    if isinstance(error, typer.TyperException):
        context = getattr(error, "ctx", None)
        path = context.command_path if context else "mindstream"
        _say(f"{_sentence(error.format_message())} (see: {path} --help)")
        return MISTAKE
    if isinstance(error, MindstreamError):
        _say(str(error))
        return MISTAKE
    if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and "can't start new thread" in str(error)):
        _say(
            "the system refused more memory or threads; close other programs, or raise the limits of this process"
            " (ulimit -a)"
        )
        return MISTAKE
    if isinstance(error, TimeoutError):
        _say(f"{describe(error)}; --debug shows where")
        return MISTAKE
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
        no_more_output()
        _say(f"the output cannot be written: {error.strerror}")
        return MISTAKE
    if isinstance(error, OSError) and isinstance(error.filename, str | bytes):
        _say(f"{os.fsdecode(error.filename)}: {(error.strerror or str(error)).lower()}")
        return MISTAKE
    return OUR_FAULT


def _sentence(text: str) -> str:
    text = re.sub(r"Input should be a valid (\w+), unable to parse.*", r"a \1 is expected", " ".join(text.split()))
    text = (
        text.replace("a integer", "a whole number")
        .replace("Value error, ", "")
        .replace(": Input ", ": it ")
        .rstrip(".")
    )
    return text[:1].lower() + text[1:]


def _say(text: str) -> None:
    from mindstream.cli.shell.output import complain, no_more_output
    from mindstream.models.providers.address import mask

    try:
        complain(mask(text))
    except OSError:
        no_more_output()


def _kept(error: BaseException) -> str:
    """Write the traceback to a file; return its name, or a phrase that says why there is no file."""
    try:
        from tempfile import NamedTemporaryFile

        with NamedTemporaryFile("w", prefix="mindstream-", suffix=".log", delete=False, encoding="utf-8") as file:
            traceback.print_exception(error, file=file)
            return file.name
    except OSError:
        return "no file, because none can be written; --debug prints it"


def _streams() -> None:
    """Make sure that descriptors 0, 1 and 2 are open and accept any text.

    Otherwise the next file that is opened would get the number of a closed descriptor.
    """
    for descriptor, name in ((0, "stdin"), (1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            mode = os.O_RDONLY if descriptor == 0 else os.O_WRONLY
            opened = os.open(os.devnull, mode)
            if opened != descriptor:
                os.dup2(opened, descriptor)
                os.close(opened)
            setattr(sys, name, os.fdopen(descriptor, "r" if descriptor == 0 else "w", encoding="utf-8", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
