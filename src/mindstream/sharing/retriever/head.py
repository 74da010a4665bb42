"""The trained head: one matrix over frozen vectors; nearness is the cosine of what it makes of them.

What all questions of a pool have alike is taken off their vectors first, and of its exemplars' likewise: contextual
embedders put every text near every other, and what is left tells texts apart (on six genres that share their topics
training gains half as much without it).
"""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mindstream.errors import InputError
from mindstream.models.embedders.embedder import unit

Floats = NDArray[np.float32]
LEARNED = 2 / 3
"""How far the trained part counts. Alone it finds a genre as often, and copies from what it finds are worse where the
manner is the same in all of a pool (ROUGE-L .17 instead of .19 on the published pairs)."""
ONE_THREAD = 1 << 18
"""Products of so many multiplications OpenBLAS does not share out."""
STEPS = 127
"""A number of the matrix is kept as one of so many steps on each side of 0."""


@dataclass(frozen=True, slots=True, eq=False)
class Head:
    """What ranks, in training and in recall alike: s = scale · near + bias.

    near = ⅔ cos((x - x̄)W, (m - m̄)W) + ⅓ cos(x - x̄, m - m̄): the part that is never trained keeps what an answer is
    about, where training has learned its manner.

    Attributes:
        matrix: W, width by width; not to be written to.
        means: x̄ and m̄, a row each: of questions, and of what is embedded of exemplars; None: nothing is taken off.
    """

    matrix: Floats
    scale: float = 10.0
    bias: float = -4.0
    means: Floats | None = None

    @classmethod
    def untrained(cls, width: int) -> Head:
        """Return the head that ranks by the plain cosine."""
        return cls(np.eye(width, dtype=np.float32))

    @property
    def width(self) -> int:
        return len(self.matrix)

    def ask(self, questions: Floats) -> Floats:
        """Return unit vectors of questions; their cosine with what `project` gives is the head's nearness."""
        return self._both(questions, 0)

    def project(self, vectors: Floats) -> Floats:
        """Return unit vectors of exemplars; zeros stay zeros."""
        return self._both(vectors, 1)

    def _both(self, vectors: Floats, of: int) -> Floats:
        if self.means is None:
            return unit(multiply(vectors, self.matrix))
        plain = apart(vectors, self.means[of])
        return np.concatenate(
            [LEARNED**0.5 * unit(multiply(plain, self.matrix)), (1 - LEARNED) ** 0.5 * plain], axis=1, dtype=np.float32
        )

    def kept(self) -> Head:
        """Return this head as it is when it was written and read again, so that every process ranks alike."""
        step, steps = self._steps()
        return Head._of(step, steps, self.scale, self.bias, self.means)

    def as_text(self) -> str:
        """Return the matrix as ASCII: what it has changed of the identity in 8 bits a number, zipped."""
        step, steps = self._steps()
        return base64.b64encode(zlib.compress(np.float32(step).tobytes() + steps.tobytes(), 6)).decode()

    def means_as_text(self) -> str:
        """Return the means as ASCII; "" where there are none."""
        return "" if self.means is None else base64.b64encode(np.ascontiguousarray(self.means).tobytes()).decode()

    @classmethod
    def from_text(cls, text: str, width: int, scale: float, bias: float, means: str = "") -> Head:
        """Read what `as_text` and `means_as_text` wrote.

        Raises:
            InputError: it is no head of this width.
        """
        try:
            opener = zlib.decompressobj()
            raw = opener.decompress(base64.b64decode(text, validate=True), 4 + width * width + 1)
            step = float(np.frombuffer(raw[:4], np.float32)[0])
            steps = np.frombuffer(raw[4:], np.int8).reshape(width, width)
            known = np.frombuffer(base64.b64decode(means, validate=True), np.float32).reshape(-1, width)
        except (ValueError, IndexError, zlib.error) as error:
            raise InputError(f"this is no head of {width} by {width} numbers: {error}") from None
        if len(known) not in (0, 2) or not np.isfinite([step, scale, bias, *known.ravel()]).all():
            raise InputError("a head has a number that is not finite, or not two means")
        return cls._of(np.float32(step), steps, scale, bias, known if len(known) else None)

    def _steps(self) -> tuple[np.float32, NDArray[np.int8]]:
        change = self.matrix - np.eye(self.width, dtype=np.float32)
        step = np.float32(max(float(np.abs(change).max(initial=0.0)) / STEPS, 1e-12))
        return step, np.rint(change / step).astype(np.int8)

    @classmethod
    def _of(cls, step: np.float32, steps: NDArray[np.int8], scale: float, bias: float, means: Floats | None) -> Head:
        matrix = np.eye(len(steps), dtype=np.float32) + steps.astype(np.float32) * step
        matrix.flags.writeable = False
        return cls(matrix, scale, bias, means)


def apart(vectors: Floats, mean: Floats) -> Floats:
    """Take a mean off vectors, and scale what is left to length one; zeros stay zeros."""
    return unit(np.where(vectors.any(axis=1, keepdims=True), vectors - mean, vectors))


def multiply(left: Floats, right: Floats) -> Floats:
    """Return the product of two matrices, in portions that OpenBLAS does on one thread.

    Its threads wait for one another in loops: on a busy machine a product takes a hundred times as long, and recall,
    which runs beside training, would wait with them.
    """
    rows = max(1, ONE_THREAD // right.size)
    found = np.empty((len(left), right.shape[1]), np.float32)
    for start in range(0, len(left), rows):
        np.matmul(left[start : start + rows], right, out=found[start : start + rows])
    return found
