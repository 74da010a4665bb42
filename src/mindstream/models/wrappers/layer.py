"""`Layered`, the base of the wrappers around models, and the one loop that reads a reply through all of them.

A wrapper adds a `Layer` to each reply. The layers of nested wrappers share one loop (`_read`), so that a part of a
reply passes one generator, however many wrappers there are.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from mindstream.models.model import Model, Part, Request


class Layer:
    """One concern of a reply, such as a limit, a measurement or a filter. Each method does nothing unless overridden.

    Attributes:
        inner, request: the model that is asked next, and the request that it gets.
        begun: whether a part has reached this layer.
        ended: whether the reply ends here; the parts that follow are not read.
    """

    ended = False

    def __init__(self, inner: Model, request: Request) -> None:
        self.inner, self.request, self.begun = inner, request, False

    async def begin(self) -> None:
        """Wait until the request may be sent; set `request` or `inner` if another request or model is needed."""

    async def start(self) -> None:
        """Prepare for the first part, which has arrived."""

    def take(self, part: Part) -> Sequence[Part]:
        """Return the parts to pass on in place of this one."""
        return (part,)

    async def again(self, failure: Exception | None) -> bool:  # noqa: ARG002
        """Return whether to ask `inner` again, after a complete reply (`failure` is None) or a failure."""
        return False

    def end(self) -> Sequence[Part]:
        """Return the parts that follow the last one, when the reply is complete."""
        return ()

    def close(self, failure: BaseException | None) -> None:
        """Release what `begin` reserved; called once, unless `begin` failed.

        Args:
            failure: the reason why the reply is not complete; GeneratorExit: the reader stopped, or an outer layer
                ended the reply or failed. None: the reply is complete.
        """


class Layered:
    """A model around another one (`inner`), whose replies pass through a layer."""

    def __init__(self, inner: Model) -> None:
        self.inner = inner

    @property
    def name(self) -> str:
        return self.inner.name

    def layer(self, request: Request) -> Layer | None:
        """Return the layer for the reply to a request; None: the reply is read by this model's own `reply`."""
        return Layer(self.inner, request)

    def reply(self, request: Request) -> AsyncGenerator[Part]:
        return _read(self, request)


async def _read(model: Model, request: Request) -> AsyncGenerator[Part]:
    """Read a reply through its layers; a layer may have the model within it asked again."""
    asked: tuple[Model, Request] | None = (model, request)
    stack, failure = _Stack(), None
    try:
        while asked is not None:
            try:
                async with aclosing(await stack.begin(*asked)) as parts:
                    async for part in parts:
                        for each in await stack.take((part,)):
                            yield each
                        if stack.is_ended:
                            break
                failure = None
            except Exception as error:  # noqa: BLE001 (each layer decides which failures it handles)
                failure = error
            asked, failure = None, stack.break_off(failure)
            while stack.layers and asked is None:
                try:
                    asked, rest = await stack.end(failure)
                    for each in await stack.take(rest):
                        yield each
                    if stack.is_ended:
                        failure = stack.break_off(failure)
                except Exception as error:  # noqa: BLE001 (see above)
                    failure = stack.break_off(error)
        if failure is not None:
            raise failure
    except BaseException as error:
        if (other := stack.close(error)) is not error:
            raise other from None
        raise
    finally:
        del failure  # its traceback refers to this frame: without `del`, only the garbage collector would free both


class _Stack:
    """The layers of a reply that have begun, the outermost first.

    Attributes:
        left: number of layers that still take part; `break_off` closes the others.
        raised: index of the layer that raised the failure; -1: no layer did, so it comes from the innermost model.
        is_ended: whether a layer has ended the reply.
    """

    def __init__(self) -> None:
        self.layers: list[Layer] = []
        self.left, self.raised, self.is_ended = 0, -1, False

    async def begin(self, model: Model, request: Request) -> AsyncGenerator[Part]:
        """Begin the layers of a model; return the reply of the model within them."""
        while isinstance(model, Layered) and (layer := model.layer(request)) is not None:
            await layer.begin()
            self.layers.append(layer)
            self.left += 1
            model, request = layer.inner, layer.request
        return model.reply(request)

    async def take(self, parts: Sequence[Part]) -> Sequence[Part]:
        """Pass parts from the innermost layer outwards; return those that the reader gets."""
        for at in range(self.left - 1, -1, -1):
            if not parts:
                break
            layer = self.layers[at]
            if layer.begun and type(layer).take is Layer.take and not layer.ended:
                continue  # it passes every part on
            try:
                if not layer.begun:
                    layer.begun = True
                    await layer.start()
                parts = [each for part in parts for each in layer.take(part)]
            except Exception:
                self.left = self.raised = at
                raise
            if layer.ended:
                self.left, self.is_ended = at + 1, True
        return parts

    async def end(self, failure: Exception | None) -> tuple[tuple[Model, Request] | None, Sequence[Part]]:
        """End the innermost layer; return the model and the request to ask again, if any, and the last parts."""
        layer = self.layers[-1]
        try:
            if await layer.again(failure):
                return (layer.inner, layer.request), ()
            rest = layer.end() if failure is None else ()
        except Exception:
            self.left = self.raised = len(self.layers) - 1
            raise
        self.layers.pop()
        self.left -= 1
        layer.close(failure)
        return None, rest

    def break_off(self, failure: Exception | None) -> Exception | None:
        """Close the layers within the one that ended the reply, or a layer that failed and those within it; return the
        failure to handle next."""
        while len(self.layers) > self.left:
            layer = self.layers.pop()
            try:
                layer.close(failure if len(self.layers) == self.raised else GeneratorExit())
            except Exception as error:  # noqa: BLE001 (it replaces the failure, as in a `finally` block)
                failure = error
        self.raised, self.is_ended = -1, False
        return failure

    def close(self, failure: BaseException) -> BaseException:
        """Close all layers; return the failure to raise."""
        while self.layers:
            try:
                self.layers.pop().close(failure)
            except Exception as error:  # noqa: BLE001 (see `break_off`)
                failure = error
        return failure
