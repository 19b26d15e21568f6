"""Rows, labels and weights that do not fit together are refused before any work."""

from __future__ import annotations

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from dualgap.distributed.collections import blocks, join

X = np.arange(24.0).reshape(12, 2)
Y = np.arange(12) % 2
ARRAY = da.from_array(X, chunks=(4, 2))
UNKNOWN = ARRAY[ARRAY[:, 0] >= 0]
FRAME = dd.from_pandas(pd.DataFrame(X, columns=["a", "b"]), npartitions=3)
SERIES = dd.from_pandas(pd.Series(Y), npartitions=3)


def together(pieces):
    """Rows, labels and weights of all pieces."""
    joined = [join(piece, k) for k, piece in enumerate(dask.compute(pieces)[0])]
    return [np.concatenate(part) for part in zip(*joined, strict=True)]


@pytest.mark.parametrize("y", [Y, Y[:, None], da.from_array(Y, chunks=5), SERIES])
@pytest.mark.parametrize("rows", [ARRAY, ARRAY.rechunk((4, 1))])
def test_labels_of_any_kind_follow_their_rows(rows, y):
    found, labels, weight = together(blocks(rows, y, np.arange(12.0), 2))
    np.testing.assert_array_equal(found, X)
    np.testing.assert_array_equal(labels, Y)
    np.testing.assert_array_equal(weight, np.arange(12))


def test_series_label_the_rows_of_a_dataframe():
    found, labels, weight = together(blocks(FRAME, SERIES.to_frame(), SERIES + 1.0, 2))
    np.testing.assert_array_equal(found, X)
    np.testing.assert_array_equal(labels, Y)
    np.testing.assert_array_equal(weight, Y + 1)


@pytest.mark.parametrize(
    ("rows", "y", "message"),
    [
        (ARRAY[:, 0], Y, r"X has 1 dimension\(s\); reshape it to \(n, d\)"),
        (ARRAY, Y[:11], "y has 11 entries and X has 12 rows"),
        (X, Y[:11], "y has 11 entries and X has 12 rows"),
        (ARRAY, X, "y has 2 dimensions; expected one per row"),
        (UNKNOWN, Y, r"y is in memory .* call X\.compute_chunk_sizes\(\) first"),
        (FRAME, Y, "y is in memory .* give y as a collection"),
        (UNKNOWN, da.from_array(Y, chunks=6), "y has 2 blocks and X has 3"),
        (FRAME, SERIES.repartition(npartitions=2), "y has 2 blocks and X has 3"),
        (ARRAY, None, "y=None: labels are missing"),
        ([], None, "X is an empty list"),
        ([(X,)], None, r"X\[0\] has 1 parts; a piece is \(X, y\)"),
        ([(X, Y)], Y, "leave y and sample_weight out"),
    ],
)
def test_what_does_not_fit_is_refused(rows, y, message):
    with pytest.raises(ValueError, match=message):
        blocks(rows, y, None, 2)


def test_other_kinds_of_labels_are_refused():
    with pytest.raises(TypeError, match="X is a str; give a Dask array"):
        blocks("rows", Y, None, 2)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([(X, Y), (X, Y, Y)], "piece 3: some of its blocks have weights, others none"),
        ([(X, Y), (X[:, :1], Y)], r"piece 3: blocks of \[1, 2\] columns"),
        ([((X, Y, Y, Y),)], "piece 3: a block has 4 parts; a piece is"),
        ([(X.astype(str), Y)], "piece 3: X has dtype <U32; encode its columns"),
        ([(Y, Y)], r"piece 3: X has 1 dimension\(s\); expected \(n, d\)"),
    ],
)
def test_pieces_that_contradict_themselves_are_refused(parts, message):
    with pytest.raises(ValueError, match=message):
        join(parts, 3)
