from __future__ import annotations

import io
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mindstream.coach.gates.gate import Situation
from mindstream.coach.gates.learned import NAMES, LearnedGate, read_weights, without_log
from mindstream.coach.gates.weights import LARGEST, OtherVersion
from mindstream.coach.packs.load import load
from mindstream.errors import InputError

SLEEP = load("sleep")
SITUATION = Situation("Make me a plan.", SLEEP.phases[0], {}, False, "", 0)


@pytest.fixture(scope="module")
def taught() -> LearnedGate:
    gate = LearnedGate(SLEEP)
    for n in range(30):
        gate.learn(Situation(f"Plan number {n}, please.", SLEEP.phases[0], {}, False, "", 0), n % 2 == 0, True)
    return gate


def changed(content: bytes, **arrays: Any) -> bytes:
    """Return a gate's file with other arrays in it; None takes one out."""
    file = io.BytesIO()
    with np.load(io.BytesIO(content)) as kept:
        whole = {**kept, **arrays}
    np.savez(file, **{name: array for name, array in whole.items() if array is not None})
    return file.getvalue()


def test_weights_come_back_as_they_were_and_private(taught: LearnedGate, tmp_path: Path) -> None:
    kept = read_weights(taught.state())
    assert kept.outcomes == 30 and np.array_equal(kept.means["needed"], taught.needed.mean)
    assert np.allclose(kept.covariances["changed"], taught.changed.covariance, atol=1e-6)
    (tmp_path / "gate-sleep.npz").write_bytes(taught.state())
    again = LearnedGate(SLEEP, folder=tmp_path)
    assert again.outcomes == 30 and again.decide(SITUATION).waits == taught.decide(SITUATION).waits
    before = os.umask(0)
    try:
        again._save()
    finally:
        os.umask(before)
    assert [path.name for path in tmp_path.iterdir()] == ["gate-sleep.npz"]
    assert (tmp_path / "gate-sleep.npz").stat().st_mode & 0o777 == 0o600
    assert read_weights(without_log(changed(taught.state(), upto=77))).upto == 0


WIDTH = len(NAMES) + 256


@pytest.mark.parametrize(
    "arrays",
    [
        {"needed": np.zeros(3)},
        {"needed": None},
        {"needed": np.full(WIDTH, np.nan)},
        {"needed": np.full(WIDTH, 1e9)},
        {"needed": np.array(["x"] * WIDTH)},
        {"needed": np.zeros(WIDTH, np.complex128)},
        {"needed": np.array([{"a": 1}], dtype=object)},
        {"changed_covariance": np.zeros((WIDTH, 3))},
        {"changed_covariance": np.full((WIDTH, WIDTH), np.inf)},
        {"changed_covariance": np.eye(WIDTH) * 1e6},
        {"changed_covariance": -np.eye(WIDTH)},
        {"changed_covariance": np.triu(np.ones((WIDTH, WIDTH)))},
        {"changed_covariance": np.fliplr(np.eye(WIDTH))},
        {"outcomes": -1},
        {"outcomes": 0.5},
        {"outcomes": np.arange(3)},
        {"upto": np.array("x")},
        {"version": None},
    ],
)
def test_what_no_outcomes_lead_to_are_no_weights(arrays: dict[str, Any], taught: LearnedGate, tmp_path: Path) -> None:
    content = changed(taught.state(), **arrays)
    with pytest.raises(InputError, match="not the weights"):
        read_weights(content)
    (tmp_path / "gate-sleep.npz").write_bytes(content)
    assert LearnedGate(SLEEP, folder=tmp_path).outcomes == 0  # it begins anew


def bomb(name: str = "version.npy") -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as members, members.open(name, "w") as out:
        for _ in range(20):
            out.write(bytes(10**6))
    return file.getvalue()


@pytest.mark.parametrize(
    "content",
    [b"", b"nothing", bytes(LARGEST + 1), pickle.dumps({"a": 1}), bomb(), bomb("../../etc/version.npy"), b"PK\x03\x04"],
    ids=["empty", "words", "large", "pickle", "bomb", "path", "cut off"],
)
def test_what_is_no_file_of_weights_is_refused(content: bytes) -> None:
    with pytest.raises(InputError):
        read_weights(content)


def test_weights_of_another_version_are_named_so(taught: LearnedGate) -> None:
    for arrays in ({"version": 1}, {"names": np.array(["a", "b"])}):
        with pytest.raises(OtherVersion):
            read_weights(changed(taught.state(), **arrays))
