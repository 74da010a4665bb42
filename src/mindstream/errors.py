"""What can go wrong, and who must act.

MindstreamError
├── UserError                 the caller can mend it: the message says what was wanted, what came, what to do
│   ├── SettingsError         a flag, an environment variable or the settings file
│   ├── PackError             a pack's file, with file and line
│   └── InputError            a text, a name or a number that was handed in
├── StorageError              the data folder: locked, corrupt, full, not writable
│   ├── ErasedMeanwhile       words that were read before they were erased are not written back
│   └── Conflict              somebody else wrote first; read again and retry
│       ├── LeaseLost         this process no longer holds the work that it wants to finish
│       ├── HeldElsewhere     another process, which lives, is at this work: a run, a life, a town
│       └── HeardAlready      it was said before under the same key, and is heard once
├── ModelError                whoever answers did not
│   ├── ModelRefused          asking again will not help: a bad request, a refusal to answer
│   │   ├── ModelDenied       … whatever is asked: wrong key, no such model, no credit left
│   │   ├── PromptTooLong     … unless with less: it does not fit the model's window
│   │   └── PromptBlocked     … unless without a certain message: a content filter refuses it
│   ├── ModelUnavailable      it may help later: down, cut off
│   │   ├── RateLimited       … after `retry_after_s`
│   │   ├── ModelSilent       it said nothing for too long, or took too long over all
│   │   └── ModelResting      it was not asked: it failed lately, and is left alone for `rest_s`
│   ├── ReplyInvalid          it answered, but not with what was asked for
│   └── BudgetSpent           the tokens, money or calls that were allowed are used up
├── WorkerLost                the processes died that did a task elsewhere; what they had kept is kept
└── ToolError                 a tool could not do what it was called for; its caller is told
"""

from __future__ import annotations


class MindstreamError(Exception):
    """Base of all errors that mindstream raises on purpose."""


class UserError(MindstreamError):
    """The caller can mend it."""


class SettingsError(UserError):
    """A flag, an environment variable or the settings file is wrong."""


class PackError(UserError):
    """A pack cannot be used; the message names file and line."""


class InputError(UserError):
    """A text, a name or a number that was handed in cannot be used."""


class StorageError(MindstreamError):
    """The data folder cannot be read or written."""


class Conflict(StorageError):  # noqa: N818 (the field's word)
    """Somebody else wrote first: read again and retry."""


class LeaseLost(Conflict):
    """The work was taken over by another process after its lease ran out."""


class ErasedMeanwhile(StorageError):  # noqa: N818
    """Words of a stream were erased after they were read here: they are not written back.

    Attributes:
        whole: all of the stream was erased; else a part of it was forgotten.
    """

    def __init__(self, message: str, *, whole: bool = True) -> None:
        super().__init__(message)
        self.whole = whole


class HeldElsewhere(Conflict):
    """Another process is at this work now."""


class HeardAlready(Conflict):
    """It was heard already.

    Attributes:
        seq: the row of the log.
    """

    def __init__(self, seq: int) -> None:
        super().__init__(f"that was heard already, at {seq}")
        self.seq = seq


class ModelError(MindstreamError):
    """A model did not answer as asked."""


class ModelRefused(ModelError):  # noqa: N818
    """The endpoint refuses, as a bad request. Asking again will not help."""


class ModelDenied(ModelRefused):
    """The endpoint refuses whatever is asked, until a person mends it: wrong key, no such model, no credit left."""


class PromptTooLong(ModelRefused):
    """What was asked does not fit, together with its answer, into the model's window. Less of it may.

    Attributes:
        window: the tokens that fit, question and answer together, or None where the endpoint does not say.
        counted: the tokens that the endpoint counted in the question, or None.
        longest_reply: the tokens that the model writes at most, or None.
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
    """A content filter of the provider refuses the prompt, mostly because of one message in it."""


class ModelUnavailable(ModelError):  # noqa: N818
    """The endpoint is down, silent or broke off. Asking again may help."""


class RateLimited(ModelUnavailable):
    """The endpoint asks to wait.

    Attributes:
        retry_after_s: seconds that the endpoint asked for, or None.
    """

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ModelSilent(ModelUnavailable):
    """The endpoint said nothing, or did not end, for as long as it may; to ask again at once would double the wait."""


class ModelResting(ModelUnavailable):
    """The model was not asked: it failed a short while ago.

    Attributes:
        rest_s: seconds until it will be asked again.
    """

    def __init__(self, message: str, rest_s: float = 0.0) -> None:
        super().__init__(message)
        self.rest_s = rest_s


class ReplyInvalid(ModelError):  # noqa: N818
    """The reply is not what was asked for, even after the model saw what was wrong with it.

    Attributes:
        reply: what was written last, where that is one text.
    """

    def __init__(self, message: str, reply: str = "") -> None:
        super().__init__(message)
        self.reply = reply


class BudgetSpent(ModelError):  # noqa: N818
    """The calls, tokens or money that were allowed are used up."""


OUTAGES = (ModelUnavailable, ModelDenied, BudgetSpent)
"""What says of a model that it cannot be had now, and nothing of what it was asked."""


class WorkerLost(MindstreamError):  # noqa: N818
    """The workers of an engine died at a task, one after the other."""


class ToolError(MindstreamError):
    """A tool failed; the message is shown to whoever called it."""
