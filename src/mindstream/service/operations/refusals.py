"""What doors refuse, beside the errors of the house."""

from __future__ import annotations

from mindstream.errors import InputError, UserError


class NotFound(InputError):  # noqa: N818 (what doors call it)
    """There is nothing of that name or id for whoever asks."""


class Forbidden(UserError):  # noqa: N818
    """Whoever asks may not do that."""


class NotOffered(UserError):  # noqa: N818
    """The operator of this server has not set up what is asked for."""
