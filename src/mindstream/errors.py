"""The error tree, by who must act: the user, the operator of the data, or the provider of a model.

MindstreamError
├── UserError                 the caller can fix it: the message says: expected, found, what to do
│   ├── SettingsError         a flag, an environment variable or the settings file
│   ├── PackError             a pack's file, with file and line
│   └── InputError            an invalid text, name or number
├── StorageError              the data (a folder or a database): locked, corrupt, full, not writable
│   ├── ReadOnlyData          the data can be read, but not changed
│   ├── ErasedMeanwhile       words that were read before they were erased are not written back
│   └── Conflict              the state has changed, mostly by another writer; read it again and retry
│       ├── LeaseLost         this process no longer holds the work that it wants to finish
│       ├── HeldElsewhere     another, live process holds this work (a run, a life, a town) or data folder
│       └── HeardAlready      a message with the same key was written before, and is written once
├── ModelError                the model did not answer as asked
│   ├── ModelRefused          retrying will not help: a bad request, a refusal to answer
│   │   ├── ModelDenied       … for any request: wrong key, no such model, no credit left
│   │   ├── PromptTooLong     … unless the prompt is shortened: it exceeds the model's window
│   │   └── PromptBlocked     … unless a certain message is removed: a content filter refuses it
│   ├── ModelUnavailable      retrying later may help: down, disconnected
│   │   ├── RateLimited       … after `retry_after_s`
│   │   ├── ModelSilent       it sent nothing for too long, or took too long in total
│   │   └── ModelResting      it was not called: it failed recently, and is not called for `rest_s`
│   ├── ReplyInvalid          it answered, but not in the required form
│   └── BudgetSpent           the allowed tokens, money or calls are used up
├── WorkerLost                the processes that did a task have died; stored results are kept
└── ToolError                 a tool failed; its caller gets the message
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class MindstreamError(Exception):
    """Base of all errors that mindstream raises on purpose."""


class UserError(MindstreamError):
    """An error that the caller can fix; the message says what was expected, what was found, and what to do."""


class SettingsError(UserError):
    """A flag, an environment variable or the settings file is wrong.

    Or something that they ask for is missing, such as a package or a model."""


class PackError(UserError):
    """A pack cannot be used. If one of its files is at fault, the message names the file, and the line if known."""


class InputError(UserError):
    """An argument (a text, a name or a number) is invalid."""


@contextmanager
def prefixed(where: object) -> Iterator[None]:
    """Put the place of the mistake, such as a file, before the message of an InputError."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{where} {error}") from None


def clipped(text: str, most: int) -> str:
    """Return a text for a message; one of more than `most` characters is cut, with an ellipsis at its end."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


class StorageError(MindstreamError):
    """The data (a folder or a database) cannot be read or written."""


class ReadOnlyData(StorageError):  # noqa: N818
    """The data folder can be read, but not written."""


class Conflict(StorageError):  # noqa: N818 (the field's word)
    """The current state does not allow what was requested.

    Mostly because another writer was first: read the state again and retry.
    """


class LeaseLost(Conflict):
    """This process no longer holds the work.

    Another process has ended the work, or has taken it over after the lease expired.
    """


class ErasedMeanwhile(StorageError):  # noqa: N818
    """Words of a stream were erased after this process read them, so data derived from them is not written.

    Attributes:
        whole: whether the whole stream was erased; False: only some of its records were.
    """

    def __init__(self, message: str, *, whole: bool = True) -> None:
        super().__init__(message)
        self.whole = whole


class HeldElsewhere(Conflict):
    """Another living process holds this work (a run, a life or a town), or serves this data folder."""


class HeardAlready(Conflict):
    """A message with the same key was written before; it is not written twice.

    Attributes:
        seq: the row of the log with the message.
    """

    def __init__(self, seq: int) -> None:
        super().__init__(f"the message was written already, as row {seq}")
        self.seq = seq


class ModelError(MindstreamError):
    """A model did not answer as asked."""


class ModelRefused(ModelError):  # noqa: N818
    """The endpoint refuses the request. Retrying will not help."""


class ModelDenied(ModelRefused):
    """The endpoint refuses every request until a person fixes the cause: wrong key, no such model, no credit left."""


class PromptTooLong(ModelRefused):
    """The prompt and its answer do not fit into the model's window. A shorter prompt may fit.

    Attributes:
        window: the size of the window in tokens, prompt and answer together; None if the endpoint does not say.
        counted: the number of tokens that the endpoint counted in the prompt, or None.
        longest_reply: the maximum number of tokens of a reply, or None.
    """

    def __init__(
        self,
        message: str,
        window: int | None = None,
        counted: int | None = None,
        longest_reply: int | None = None,
    ) -> None:
        super().__init__(message)
        self.window, self.counted, self.longest_reply = window, counted, longest_reply


class PromptBlocked(ModelRefused):
    """A content filter of the provider refuses the prompt, usually because of one message in it."""


class ModelUnavailable(ModelError):  # noqa: N818
    """The endpoint is down, silent or disconnected. Retrying may help."""


class RateLimited(ModelUnavailable):
    """The endpoint asks the caller to wait.

    Attributes:
        retry_after_s: the requested wait in seconds, or None.
    """

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ModelSilent(ModelUnavailable):
    """The endpoint exceeded a timeout; retrying at once would double the wait."""


class ModelResting(ModelUnavailable):
    """The model was not called, because it failed recently.

    Attributes:
        rest_s: seconds until it will be called again.
    """

    def __init__(self, message: str, rest_s: float = 0.0) -> None:
        super().__init__(message)
        self.rest_s = rest_s


class ReplyInvalid(ModelError):  # noqa: N818
    """The reply is not in the required form.

    The wrapper `Repair` first tells the model what is wrong; its caller gets this error if the next replies are wrong
    too.

    Attributes:
        reply: the last reply, if it was a single text.
    """

    def __init__(self, message: str, reply: str = "") -> None:
        super().__init__(message)
        self.reply = reply


class BudgetSpent(ModelError):  # noqa: N818
    """The allowed calls, tokens or money are used up."""


OUTAGES = (ModelUnavailable, ModelDenied, BudgetSpent)
"""Errors that mean that a model is unavailable now, independently of the request."""


class WorkerLost(MindstreamError):  # noqa: N818
    """The worker processes that tried to do a task all died."""


class ToolError(MindstreamError):
    """A tool failed; its caller gets the message."""
