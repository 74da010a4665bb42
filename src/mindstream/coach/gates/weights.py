"""The file in which a learned gate keeps what it learned: numbers, checked whenever they are read.

A file of weights may come from elsewhere (`mindstream mind import`), and a weight that is no number would make
every decision nonsense. So nothing is taken from it but arrays of the right size and kind, whose
values an honest gate could have come to.
"""

from __future__ import annotations

import contextlib
import io
import os
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mindstream import chance
from mindstream.errors import InputError

LARGEST = 8 << 20
"""In bytes, packed or unpacked: some ten times what the weights take."""
FAR = 1e3
"""No weight comes near it: a row's numbers are about 0 to 1 in size."""
ROUNDING = 1e-3
Numbers: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class GateWeights:
    """What a gate has learned; `upto`: the row of the log up to which it has read."""

    outcomes: int
    upto: int
    means: dict[str, Numbers]
    covariances: dict[str, Numbers]


class OtherVersion(InputError):  # noqa: N818 (it says what is so)
    """The weights mean something else than this gate's: they are learned anew."""


def pack_weights(weights: GateWeights, version: int, names: tuple[str, ...]) -> bytes:
    """Return weights as the bytes of a file; covariances to seven digits."""
    file = io.BytesIO()
    kept: dict[str, Any] = dict(weights.means)
    kept |= {f"{name}_covariance": rows.astype(np.float32) for name, rows in weights.covariances.items()}
    np.savez(file, version=version, names=np.array(names), outcomes=weights.outcomes, upto=weights.upto, **kept)
    return file.getvalue()


def unpack_weights(content: bytes, version: int, names: tuple[str, ...], spreads: dict[str, Numbers]) -> GateWeights:
    """Read weights from the bytes of a file.

    Args:
        spreads: by model, how far each weight was from its prior before any outcome (standard deviation); an outcome
            only narrows it.

    Raises:
        OtherVersion: they are of another version, or about other features.
        InputError: they are no weights.
    """
    arrays = _arrays(content)
    if _whole(arrays, "version") != version or arrays.get("names", np.array(())).tolist() != list(names):
        raise OtherVersion("these weights are of another version of mindstream")
    means, covariances = {}, {}
    for name, spread in spreads.items():
        means[name] = _numbers(arrays, name, spread.shape)
        covariances[name] = _numbers(arrays, f"{name}_covariance", spread.shape * 2)
        _check_likely(name, means[name], covariances[name], spread)
    return GateWeights(_whole(arrays, "outcomes"), _whole(arrays, "upto"), means, covariances)


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, whole or not at all.

    Raises:
        OSError: it cannot be written.
    """
    new = path.with_name(f".{path.name}.{chance.token()}.tmp")
    try:
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
        new.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            new.unlink()
        raise


def read_bounded(path: Path) -> bytes:
    """Return a file's bytes, one more than LARGEST at most.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        return file.read(LARGEST + 1)


def _arrays(content: bytes) -> dict[str, NDArray[Any]]:
    if len(content) > LARGEST:
        raise InputError(f"weights take no more than {LARGEST >> 20} MB")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as members:
            if sum(member.file_size for member in members.infolist()) > LARGEST:
                raise InputError(f"weights take no more than {LARGEST >> 20} MB, unpacked too")
        with np.load(io.BytesIO(content), allow_pickle=False) as kept:
            return {name: kept[name] for name in kept}
    except (ValueError, OSError, EOFError, KeyError, MemoryError, NotImplementedError, RuntimeError) as error:
        raise InputError(f"not the weights of a gate ({error})") from None
    except (zipfile.BadZipFile, zlib.error, SyntaxError) as error:
        raise InputError(f"not the weights of a gate ({error})") from None


def _whole(arrays: dict[str, NDArray[Any]], name: str) -> int:
    found = arrays.get(name)
    if found is None or found.shape != () or found.dtype.kind not in "iu" or not 0 <= int(found) < 1 << 62:
        raise InputError(f"not the weights of a gate ({name}: a whole number is wanted)")
    return int(found)


def _numbers(arrays: dict[str, NDArray[Any]], name: str, shape: tuple[int, ...]) -> Numbers:
    found = arrays.get(name)
    if found is None or found.shape != shape or found.dtype.kind != "f":
        raise InputError(f"not the weights of a gate ({name}: numbers of the shape {shape} are wanted)")
    numbers = found.astype(np.float64)
    if not np.isfinite(numbers).all():
        raise InputError(f"not the weights of a gate ({name}: not all are finite)")
    return numbers


def _check_likely(name: str, mean: Numbers, covariance: Numbers, spread: Numbers) -> None:
    """Raise InputError where no outcomes could have led there from the prior."""
    doubt = np.diag(covariance)
    symmetric = bool(np.allclose(covariance, covariance.T, atol=ROUNDING))
    if np.abs(mean).max() > FAR or not symmetric or (doubt < -ROUNDING).any() or (doubt > spread**2 + ROUNDING).any():
        raise InputError(f"not the weights of a gate ({name}: no outcomes lead to such numbers)")
    try:
        np.linalg.cholesky(covariance + ROUNDING * np.eye(len(mean)))
    except np.linalg.LinAlgError:
        raise InputError(f"not the weights of a gate ({name}: no outcomes lead to such a covariance)") from None
