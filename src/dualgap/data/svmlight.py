"""Reader of svmlight / LIBSVM text files."""

from __future__ import annotations

import codecs
import mmap
import os
import re
import stat
from numbers import Integral
from typing import Any, BinaryIO, Literal, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import csr_matrix

from ..checks import check_count, check_option
from ..core import ParsedSvmlight, parse_svmlight
from ..memory import memory_error
from .opening import DECOMPRESSORS, open_data

Source = str | os.PathLike[str] | BinaryIO
Labels = NDArray[np.generic]
QueryIds = NDArray[np.int64]


@overload
def load_svmlight(
    path: Source,
    *,
    n_features: int | None = ...,
    dtype: DTypeLike = ...,
    zero_based: bool | Literal["auto"] = ...,
    n_jobs: int | None = ...,
    query_id: Literal[False] = ...,
    multilabel: bool = ...,
) -> tuple[csr_matrix, Labels]: ...


@overload
def load_svmlight(
    path: Source,
    *,
    n_features: int | None = ...,
    dtype: DTypeLike = ...,
    zero_based: bool | Literal["auto"] = ...,
    n_jobs: int | None = ...,
    query_id: Literal[True],
    multilabel: bool = ...,
) -> tuple[csr_matrix, Labels, QueryIds]: ...


def load_svmlight(
    path: Source,
    *,
    n_features: int | None = None,
    dtype: DTypeLike = np.float64,
    zero_based: bool | Literal["auto"] = "auto",
    n_jobs: int | None = None,
    query_id: bool = False,
    multilabel: bool = False,
) -> tuple[csr_matrix, Labels] | tuple[csr_matrix, Labels, QueryIds]:
    r"""Read a svmlight / LIBSVM file into a sparse matrix and labels.

    Each line is an example: ``label [qid:<integer>] <index>:<value> ... [# comment]``,
    with increasing indices. The result is the same as from
    :func:`sklearn.datasets.load_svmlight_file`; reading is much faster, and errors
    name the place in the file.

    Parameters
    ----------
    path : str, path-like or binary file-like object
        The file. Files named ``.gz``, ``.bz2``, ``.xz`` or ``.zst`` are decompressed
        (``.zst`` needs the package ``zstandard`` before Python 3.14). Their whole text
        is held in memory during parsing, as it is for objects with a ``read`` method.
        Other files are memory-mapped and must not be truncated meanwhile.
    n_features : int, default=None
        Number of columns of ``X``. None uses the largest index in the file, plus 1 if
        indices start at 0. Give it if several files must agree.
    dtype : {numpy.float64, numpy.float32}, default=numpy.float64
        Data type of the values of ``X``.
    zero_based : bool or "auto", default="auto"
        Whether indices in the file start at 0 (True) or at 1 (False). ``"auto"`` means
        0 if the file has an index 0, else 1.
    n_jobs : int, default=None
        Number of threads. None uses all CPUs that this process may use; negative
        numbers count back from all CPUs (-1), as in joblib.
    query_id : bool, default=False
        Whether to return the ``qid`` of every example; all examples must then have one.
    multilabel : bool, default=False
        Whether a line has any number of labels, with commas between them, as in
        ``3,7 1:0.5``.

    Returns
    -------
    X : scipy.sparse.csr_matrix of shape (n_samples, n_features)
        The values, including zeros written in the file. Indices are sorted and unique;
        they are int32 if they and the number of values fit, else int64.
    y : ndarray of shape (n_samples,), float64 or str
        The labels. They are words if the first one is a word. With `multilabel` an
        array of tuples of str, for scikit-learn's ``MultiLabelBinarizer``.
    qid : ndarray of shape (n_samples,), int64
        The query of each example. Only with ``query_id=True``.

    Raises
    ------
    ValueError
        If a line is malformed (the message names file, line and column, and what was
        expected and found; columns count bytes from 1), the file has more than
        ``n_features`` features, compressed data are damaged, or an argument is out of
        range.
    ImportError
        If a ``.zst`` file needs the package ``zstandard`` and it is missing.

    Notes
    -----
    Labels and values equal ``float`` of their text, bit for bit. The reader is stricter
    than scikit-learn's where it would have to guess. Numbers must be finite plain
    decimals (no ``nan``, ``inf`` or ``1_000``) and, with ``dtype=numpy.float32``,
    within its range. Indices are plain digits. A ``qid`` must be an integer even if it
    is not returned, and ``query_id=True`` requires one for every example. Indices may
    exceed 32 bits.

    For a memory-mapped file, memory beyond the returned arrays is negligible. No array
    gets its size from an index in the file.

    Examples
    --------
    >>> import io
    >>> from dualgap.data import load_svmlight
    >>> X, y = load_svmlight(io.BytesIO(b"+1 1:0.5 3:2\n-1 2:1.5  # second\n"))
    >>> X.toarray()
    array([[0.5, 0. , 2. ],
           [0. , 1.5, 0. ]])
    >>> y
    array([ 1., -1.])
    """
    if n_features is not None:
        check_count("n_features", n_features)
    value_type = checked_dtype(dtype)
    check_option("zero_based", zero_based, (True, False, "auto"))
    check_option("query_id", query_id, (True, False))
    check_option("multilabel", multilabel, (True, False))
    thread_count(n_jobs, 0)
    text, name = _read_text(path)
    n_threads = thread_count(n_jobs, len(text))
    if text[:3] == codecs.BOM_UTF8:
        text = memoryview(text)[3:]
    try:
        parsed, y = parse(
            text,
            has_words(text),
            multilabel,
            n_threads=n_threads,
            zero_based=None if zero_based == "auto" else zero_based,
            query_id=query_id,
            single_precision=value_type == np.float32,
            # SciPy wants indices that could hold the number of columns
            wide_index=n_features is not None and n_features > np.iinfo(np.int32).max,
        )
    except ValueError as error:
        raise ValueError(f"{name}, {error}") from None
    del text

    qid, found = parsed.qid, parsed.n_features
    if n_features is None:
        n_features = found
    elif n_features < found:
        raise ValueError(
            f"n_features was set to {n_features}, but {name} contains {found} "
            f"features: use n_features={found} or more, or None to take what the file "
            "has."
        )
    arrays = parsed.values, parsed.indices, parsed.indptr
    X = csr_matrix(arrays, shape=(len(y), n_features))
    # The parser accepts only increasing indices, so SciPy need not check them.
    X.has_sorted_indices = True
    X.has_canonical_format = True
    return (X, y, qid) if query_id else (X, y)


# ---------------------------------------------------------------- labels and queries

Text = bytes | bytearray | memoryview | mmap.mmap
_FIRST = re.compile(rb"(?:\xef\xbb\xbf)?(?:\s|#[^\n]*\n)*([^\s#]*)[^\S\n]*(qid:)?")
_LETTER = re.compile(rb"[^:,;|]*[A-Za-z_\x80-\xff][^:,;|]*")
_LABEL = re.compile(rb"^([^\S\n]*)([^\s#:,;|]+)(?=[\s#]|\Z)", re.MULTILINE)
#: Labels of a line with commas between them, perhaps none.
_LABELS = re.compile(
    rb"^(?=[^\S\n]*[^\s#])([^\S\n]*)([^\s#:;|]*)(?=[\s#]|\Z)", re.MULTILINE
)


def has_words(text: Text) -> bool:
    """Whether the first label is a word."""
    found = _FIRST.match(text)
    label = found[1] if found else b""
    if not _LETTER.fullmatch(label):
        return False
    try:
        float(label)
    except ValueError:
        return True
    return False


def has_queries(text: Text) -> bool:
    """Whether the first example has a qid."""
    found = _FIRST.match(text)
    return found is not None and found[2] is not None


def parse(
    text: Text, words: bool, several: bool = False, **options: Any
) -> tuple[ParsedSvmlight, Labels]:
    """Parse svmlight text, whose labels may be words; return what it holds, and labels.

    With `several` each line has a tuple of labels. Raises ValueError with line and
    column.
    """
    pattern = _LABELS if several else _LABEL
    if not (words or several):
        parsed = parse_svmlight(np.frombuffer(text, np.uint8), **options)
        return parsed, parsed.labels
    place: dict[bytes, int] = {}
    codes: list[int] = []

    def zero(found: re.Match[bytes]) -> bytes:
        blanks, label = found.groups()
        codes.append(place.setdefault(label, len(place)))
        return blanks + b"0".ljust(len(label))  # errors tell the same column

    plain = pattern.sub(zero, text)
    parsed = parse_svmlight(np.frombuffer(plain, np.uint8), **options)
    try:
        found = [label.decode() for label in place]
        if not several:
            return parsed, np.array(found)[codes]
        parts = [tuple(filter(None, label.split(","))) for label in found]
        each = np.empty(len(parts), object)
        each[:] = parts
        return parsed, each[codes]
    except UnicodeDecodeError as error:
        bad = next(f for f in pattern.finditer(text) if f[2] == error.object)
        line = bytes(text[: bad.start()]).count(b"\n") + 1
        raise ValueError(
            f"line {line}, column {len(bad[1]) + 1}: expected a label in UTF-8, found "
            f"{error.object!r}; convert the file, from Latin-1 with: iconv -f latin1 "
            "-t utf-8"
        ) from None


# ------------------------------------------------------------------------- arguments


def checked_dtype(dtype: DTypeLike) -> np.dtype[np.generic]:
    """Return the data type of values, after checking it."""
    try:
        checked = np.dtype(dtype)
    except TypeError:
        checked = None
    if checked not in (np.float64, np.float32):
        raise ValueError(
            f"dtype={dtype!r}: use numpy.float64 or numpy.float32 (and X.astype for "
            "another)"
        )
    return checked


#: Bytes of text that one thread parses in a few milliseconds.
_SMALL = 1 << 20


def thread_count(n_jobs: object, size: int = _SMALL) -> int:
    """Return the number of threads for a text of `size` bytes."""
    if n_jobs is None:
        if size < _SMALL:
            return 1
    elif isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise ValueError(f"n_jobs={n_jobs!r}: use None, 1, 2, ... or -1")
    elif n_jobs == 1:
        return 1
    import joblib  # takes longer than to parse a small file

    if n_jobs is None:
        return int(joblib.cpu_count())
    return int(joblib.effective_n_jobs(int(n_jobs)))


def _read_text(path: object) -> tuple[Text, str]:
    """Return the file's text as a buffer, and its name for messages."""
    if hasattr(path, "read"):
        name = str(getattr(path, "name", "<stream>"))
        text = path.read()
        if not isinstance(text, (bytes, bytearray, memoryview)):
            raise TypeError(
                f"{name} gives {type(text).__name__}, not bytes: open it in binary "
                "mode ('rb')."
            )
        return text, name
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(
            f"path={path!r} is neither a path nor a file-like object: use a str, a "
            "pathlib.Path, or an object with a read method opened in binary mode."
        )
    name = os.fsdecode(path)
    if os.path.splitext(name)[1].lower() in DECOMPRESSORS:
        with open_data(name) as file:
            return file.content.read(), name
    with open(name, "rb") as file:
        status = os.fstat(file.fileno())
        if stat.S_ISREG(status.st_mode) and status.st_size > 0:
            with memory_error(name):
                return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), name
        return file.read(), name  # such as a pipe, which cannot be mapped
