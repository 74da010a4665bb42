"""Shorten requests to the model's context window, whether it is configured or learnt from the endpoint's errors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from mindstream.errors import PromptTooLong
from mindstream.models.model import Cut, Model, Request, estimate_tokens
from mindstream.models.providers.limits import all_tokens
from mindstream.models.wrappers.layer import Layer, Layered

MAX_ATTEMPTS = 4
USABLE_SHARE = 0.95
"""Share of the window that is used, since token counts are estimates."""
MAX_OLD_RESULT = 500
"""Maximum length of an older tool result that is shortened, in characters."""
MAX_TEXTS = (4_000, 2_000, 1_000, 500)
"""Successive limits for the length of texts in characters; the beginning and the end of a text stay."""


def room(request: Request, window: int) -> tuple[int, int]:
    """Divide a context window: return the tokens for the request, and for the reply with its thoughts."""
    reply = min(all_tokens(request), window // 3)
    return int(window * USABLE_SHARE) - reply, reply


class Fit(Layered):
    """Shortens requests that do not fit the model's context window.

    A request is shortened before it is sent if `window` (in tokens) is known; otherwise after the endpoint refused it,
    and sent again. The window's size and the token count that the endpoint reports are stored for later requests.
    """

    def __init__(self, inner: Model, window: int | None = None) -> None:
        super().__init__(inner)
        self._window, self._longest_reply, self._counts = window, 0, 1.0

    def layer(self, request: Request) -> Layer:
        return _Fitted(self, request)

    def learn(self, asked: Request, error: PromptTooLong) -> int | None:
        """Store the limits that the endpoint reports. If it reports no new one, return the number of tokens to which
        the request must be shortened, otherwise None."""
        if error.longest_reply:
            self._longest_reply = error.longest_reply
            return None
        if error.counted:
            self._counts = max(self._counts, min(10.0, error.counted / asked.tokens))
        if error.window and error.window != self._window:
            self._window = error.window
            return None
        return asked.tokens * 2 // 3

    def fitted(self, request: Request, aim: int | None = None) -> Request:
        """Return the request, shortened to the known window and to at most `aim` tokens, as far as these are given."""
        if self._longest_reply and not request.longest_reply:
            request = request.but(longest_reply=self._longest_reply)
        if self._window:
            known, reply = room(request, self._window)
            request = request.but(longest_reply=reply)
            aim = min(aim or known, int(known / self._counts))
        return request if aim is None else shorten(request, aim)


class _Fitted(Layer):
    def __init__(self, fit: Fit, request: Request) -> None:
        super().__init__(fit.inner, fit.fitted(request))
        self._fit, self._whole, self._attempts = fit, request, 1

    async def again(self, failure: Exception | None) -> bool:
        if not isinstance(failure, PromptTooLong):
            return False
        aim = self._fit.learn(self.request, failure)
        if aim is not None:  # the reply that was requested may be too long, too: request a shorter one
            self._whole = self._whole.but(longest_reply=all_tokens(self.request) // 2)
        shorter = self._fit.fitted(self._whole, aim)
        if self.begun or self._attempts == MAX_ATTEMPTS or shorter == self.request:
            return False
        self.request, self._attempts = shorter, self._attempts + 1
        return True


def shorten(request: Request, room: int) -> Request:
    """Return a request of at most `room` tokens if possible: the same, or one whose `cut` lists the removed parts.

    Items of the prompt's lists are removed first, in the order of `Prompt.trim_order`; then tool results are shortened,
    the oldest first; then the middle of long texts is removed, even of the newest utterance. Static text stays.
    """
    if request.tokens <= room:
        return request
    request = _without_items(request, room)
    for step in (_cut_results, _cut_texts):
        for shorter in step(request):
            if request.tokens <= room:
                return request
            request = shorter
    return request


def _without_items(request: Request, room: int) -> Request:
    """Remove items from the prompt's lists, field by field, until the request fits."""
    for name, keep in request.prompt.trim_order:
        items, over, gone = getattr(request.prompt, name, ()), request.tokens - room, 0
        for item in items if keep == "last" else reversed(items):
            if over <= 0:
                break
            over -= estimate_tokens(str(item))
            gone += 1
        if gone:
            kept = items[gone:] if keep == "last" else items[: len(items) - gone]
            request = _changed(request, {name: kept}, Cut(name, items=gone))
    return request


def _cut_results(request: Request) -> Iterator[Request]:
    """Shorten the results of tools, the oldest first."""
    turns = list(request.turns)
    for place, turn in enumerate(turns):
        if turn.role == "tool" and len(turn.text) > 2 * MAX_OLD_RESULT:
            turns[place] = replace(turn, text=_without_middle(turn.text, MAX_OLD_RESULT))
            cut = Cut("turns", characters=len(turn.text) - len(turns[place].text))
            request = request.but(turns=tuple(turns), cut=(*request.cut, cut))
            yield request


def _cut_texts(request: Request) -> Iterator[Request]:
    """Remove the middle of long texts; yield a shorter request for each limit in MAX_TEXTS."""
    for longest in MAX_TEXTS:
        changes, cuts = dict[str, Any](), list[Cut]()
        for name in type(request.prompt).model_fields:
            before = getattr(request.prompt, name)
            after = _without_middle(before, longest)
            if after != before:
                changes[name] = after
                cuts.append(Cut(name, characters=len(str(before)) - len(str(after))))
        if changes:
            request = _changed(request, changes, *cuts)
            yield request


def _without_middle(value: Any, longest: int) -> Any:
    """Return a text, or a tuple of texts, of limited length, without the middle; any other value as it is."""
    if isinstance(value, tuple) and all(isinstance(item, str) for item in value):
        return tuple(_without_middle(item, longest) for item in value)
    half = longest // 2
    return f"{value[:half]} … {value[-half:]}" if isinstance(value, str) and len(value) > longest else value


def _changed(request: Request, fields: dict[str, Any], *cuts: Cut) -> Request:
    return request.but(prompt=request.prompt.model_copy(update=fields), cut=(*request.cut, *cuts))
