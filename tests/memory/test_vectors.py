import numpy as np
from numpy.typing import NDArray

from mindstream.memory.store.vectors import EXACT_UP_TO, Vectors

WIDTH = 64


def units(count: int) -> NDArray[np.float32]:
    rows = np.random.default_rng(0).standard_normal((count, WIDTH)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def test_nearest_vectors_are_found_without_scoring_all() -> None:
    rows, vectors = units(3 * EXACT_UP_TO), Vectors(WIDTH)
    for row in rows:
        vectors.append(row.astype(np.float16))
    everything = np.ones(len(rows), bool)
    found, nearer = vectors.near(rows[1234], everything, lambda: np.array([5]))
    assert found[nearer.argmax()] == 1234
    assert 5 in found
    assert len(found) < EXACT_UP_TO


def test_only_selected_rows_are_returned() -> None:
    rows, vectors = units(3 * EXACT_UP_TO), Vectors(WIDTH)
    for row in rows:
        vectors.append(row.astype(np.float16))
    among = np.arange(len(rows)) % 2 == 0
    found, _ = vectors.near(rows[1235], among, lambda: np.array([7, 8]))
    assert among[found].all()
    assert 8 in found


def test_the_mean_vector_does_not_depend_on_earlier_queries() -> None:
    rows, lived, begun = units(300), Vectors(WIDTH), Vectors(WIDTH)
    everything, nobody = [np.ones(count, bool) for count in range(len(rows) + 1)], np.empty(0, np.int64)
    for count, row in enumerate(rows, 1):
        lived.append(row.astype(np.float16))
        if count % 7 == 0:
            lived.near(rows[0], everything[count], lambda: nobody)
    for row in rows:
        begun.append(row.astype(np.float16))
    found = [each.near(rows[0], everything[-1], lambda: nobody)[1] for each in (lived, begun)]
    assert np.array_equal(found[0], found[1])
