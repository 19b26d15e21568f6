"""Tables as rows of features: CSV, TSV, Parquet and Arrow, in memory or in parts."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .arrow_table import ArrowTable
from .chunks import Given
from .csv_table import CsvTable
from .features import (
    BOOLEANS,
    SETTINGS,
    Column,
    Feature,
    Features,
    Numbers,
    Words,
    look_of,
)
from .table_file import (
    ColumnError,
    Layout,
    TableError,
    TableFile,
    TableOptions,
    Want,
)
from .types import Matrix

#: Kinds of files that hold tables.
TABLES = ("csv", "parquet", "arrow")
#: Rows to read at a time.
ROWS = 2**16
_FILL = "fill it or drop the row"
_DROP = "fill it, or leave such rows out with missing='drop'"
_ASK = "missing='mean' or 'most-frequent', or leave such rows out with 'drop'"


class TableRows(NamedTuple):
    """Some rows of features, with labels and weights if there are any."""

    X: Matrix
    y: NDArray[np.generic] | None
    weight: Numbers | None


class Table(NamedTuple):
    """All rows of a table, and what its columns became."""

    rows: TableRows
    features: Features
    #: Sentences about columns and rows that were changed or left out.
    said: list[str]
    #: Missing values of each column that has some.
    gaps: Mapping[str, int]


@contextlib.contextmanager
def open_table(
    content: BinaryIO, kind: str, name: str, options: TableOptions
) -> Iterator[TableFile]:
    """Open a table for one reading; see :func:`read_table` for errors."""
    text = kind == "csv"
    table = (
        CsvTable(content, name, options) if text else ArrowTable(content, kind, name)
    )
    with contextlib.closing(table):
        yield table


def read_table(
    content: BinaryIO,
    kind: str,
    name: str,
    options: TableOptions | None = None,
    known: Features | None = None,
    *,
    needs_label: bool = True,
    training: bool = True,
    weight: Given | None = None,
) -> Table:
    """Read a table.

    `kind`, `name`: kind of the file, and its name for messages. `known`: the features
    of a model, which are found by name; None learns them. `training`: whether weights
    have to be there, and rows with missing values may be left out. `weight`: weights of
    the rows, if no column has them.

    Raises ValueError if a value is missing or not a number (the message names line and
    column), or a column does not exist. Raises ImportError if pyarrow is missing.
    """
    options = options or TableOptions()
    options.check()
    if known is not None:
        options = options._replace(
            decimal=options.decimal or known.decimal,
            thousands=options.thousands or known.thousands,
        )
    with open_table(content, kind, name, options) as table:
        if learns := known is None:
            layout = table.layout(options, needs_label)
            learner = TableLearner(table, layout, options)
            blocks = learner.blocks(table, layout, ROWS, needs_label)
            held = list(islice(blocks, 1))
            count = table.rows
            if count is None or not learner.plain:  # else the rest teaches nothing
                held += blocks
                count = sum(len(block[0]) for block in held)
            blocks = chain(_emptied(held), blocks)
            known = learner.learnt()
        else:
            layout = table.placed(known, options.label, needs_label, training)
            wants = known_wants(table, layout, known, needs_label, training)
            held = list(table.blocks(wants, ROWS))
            count, blocks = sum(len(block[0]) for block in held), _emptied(held)
        if not count:
            raise ValueError(f"{name} has no rows; give a file with data")
        encoder = Encoder(known, layout, weight, training)
        rows = joined(map(encoder.rows, blocks), count)
    said = [*table.left_out(layout), *(known.said() if learns else []), *encoder.said()]
    rows = rows._replace(y=_known_labels(name, rows.y))
    return Table(rows, known, said, table.gaps)


def _emptied(blocks: list[list[Column]]) -> Iterator[list[Column]]:
    """Yield blocks, and free each one."""
    blocks.reverse()
    while blocks:
        yield blocks.pop()


def joined(parts: Iterable[TableRows], n: int) -> TableRows:
    """Return the rows of parts together, at most n, and free each part."""
    X, at = list[Matrix](), 0
    y, weight = list[NDArray[np.generic]](), list[Numbers]()
    for part in parts:
        if sparse.issparse(part.X):
            X.append(part.X)
        else:
            X = X or [np.empty((n, part.X.shape[1]))]
            X[0][at : at + len(part.X)] = part.X
            at += len(part.X)
        y += [] if part.y is None else [part.y]
        weight += [] if part.weight is None else [part.weight]
    return TableRows(
        sparse.vstack(X, "csr") if sparse.issparse(X[0]) else X[0][:at],
        np.concatenate(y) if y else None,
        np.concatenate(weight) if weight else None,
    )


def _known_labels(
    name: str, y: NDArray[np.generic] | None
) -> NDArray[np.generic] | None:
    """Return labels; None if all of them are missing."""
    if y is None:
        return None
    gaps = _gaps_of(y)
    if gaps.all():
        return None
    if gaps.any():
        raise ValueError(
            f"{name}, row {int(gaps.argmax()) + 1}: the label is missing; fill it or "
            "drop the row"
        )
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError(f"{name} has a label that is infinite; replace it")
    return y


def _gaps_of(y: NDArray[np.generic]) -> NDArray[np.bool_]:
    """Return which labels or weights are missing."""
    return y == "" if y.dtype.kind == "U" else np.isnan(y)


def known_wants(
    table: TableFile,
    layout: Layout,
    known: Features,
    needs_label: bool,
    training: bool,
) -> dict[int, Want]:
    """Return how to read the columns of a description."""
    trained = f"train with {_ASK}" if known.missing is None else _FILL
    drops = known.missing == "drop" and training
    wants = {
        j: Want(
            column.words is not None,
            None if drops or column.fill is not None else trained,
        )
        for j, column in zip(layout.features, known.columns, strict=True)
    }
    return wants | _other_wants(table, layout, needs_label, None if drops else _FILL)


def _other_wants(
    table: TableFile, layout: Layout, needs_label: bool, remedy: str | None
) -> dict[int, Want]:
    """Return how to read labels and weights; without a remedy they may be missing."""
    found = {}
    if layout.label is not None:
        text = True if isinstance(table, CsvTable) else None
        found[layout.label] = Want(text, remedy if needs_label else None)
    if layout.weight is not None:
        found[layout.weight] = Want(False, remedy)
    return found


class TableLearner:
    """Learns what the columns of tables become, in one pass over their rows."""

    def __init__(self, table: TableFile, layout: Layout, options: TableOptions) -> None:
        self.options, self.name, self.title = options, table.name, table.title
        self.named = table.names is not None
        self.typed = not isinstance(table, CsvTable)  # text has no types of columns
        #: Columns of the table in reading, and their faults.
        self.places, self.faults = layout.features, table.faults
        self.titles = [table.title(j) for j in layout.features]
        self.label = None if layout.label is None else table.title(layout.label)
        self.weight = None if layout.weight is None else table.title(layout.weight)
        own = {table.title(table.position(name)) for name in options.one_hot}
        self.one_hot = own
        #: Whether a column is of words; None as long as it has no values.
        self.words = [True if title in own else None for title in self.titles]
        self.counts: list[Counter[str | float]] = [Counter() for _ in self.titles]
        self.sums = np.zeros((len(self.titles), 2))  # of the numbers, and how many
        self.labels: set[str] = set()

    @property
    def plain(self) -> bool:
        """Whether all columns so far are of numbers, and nothing else is to learn."""
        words = any(word is not False for word in self.words)
        more = words or self.faults or self._classes() or self.options.missing
        return not more

    def blocks(
        self, table: TableFile, layout: Layout, size: int, needs_label: bool
    ) -> Iterator[list[Column]]:
        """Yield the columns of some rows after learning from them."""
        remedy = None if self.options.missing else f"fill it with {_ASK}"
        wants = {
            j: Want(word, remedy, learns=True)
            for j, word in zip(layout.features, self.words, strict=True)
        }
        remedy = None if self.options.missing == "drop" else _DROP
        wants |= _other_wants(table, layout, needs_label, remedy)
        self.places, self.faults = layout.features, table.faults
        try:
            for block in table.blocks(wants, size):
                yield self._learnt_from(block, layout, wants)
        except TableError:
            self.learnt()  # which tells other faults too
            raise

    def _learnt_from(
        self, block: list[Column], layout: Layout, wants: dict[int, Want]
    ) -> list[Column]:
        """Learn from a block, and return it."""
        for k, (j, column) in enumerate(zip(layout.features, block, strict=False)):
            if self.words[k] is None and not _is_empty(column):
                # Later values are read like the first ones.
                self.words[k] = isinstance(column, Words)
                wants[j] = wants[j]._replace(words=self.words[k])
        d = len(layout.features)
        self._add(block[:d])
        label = None if layout.label is None else block[d]
        if isinstance(label, Words):
            self.labels.update(label.words)
        return block

    def _classes(self) -> tuple[str, ...] | None:
        words = sorted(self.labels)
        numbers = Words(np.zeros(0, np.int32), words).numbers()
        return tuple(words) if numbers is None else None

    def learnt(self) -> Features:
        """Return the description of the columns, or raise an error for all faults."""
        found, faults = list[Feature](), {**self.faults}
        for k, j in enumerate(self.places):
            try:
                found.append(self._feature(k))
            except ColumnError as error:
                faults.setdefault(j, error)
                found.append(Feature(self.titles[k]))
        most = SETTINGS.most_words
        large = [f for f in found if f.width > most and f.name not in self.one_hot]
        if large:
            parts = " and ".join(f"{f.name!r} ({f.width:,})" for f in large[:5])
            told = (
                f" has more than {most} different words in {parts}; leave such columns "
                "out with columns=..., or keep them with one_hot=..."
            )
            faults[-1] = ColumnError(self.name, "", told, [f.name for f in large])
        if faults:
            raise TableError(faults, self.title)
        return self.described(found)

    def _add(self, columns: Sequence[Column]) -> None:
        for j, column in enumerate(columns):
            if isinstance(column, Words):
                codes = column.codes[column.codes >= 0]
                places, counts = np.unique(codes, return_counts=True)
                words = map(column.words.__getitem__, places)
                self.counts[j].update(dict(zip(words, counts.tolist(), strict=True)))
                continue
            if self.options.missing in (None, "drop"):
                continue
            known = column[~np.isnan(column)]
            self.sums[j] += known.sum(), len(known)
            if self.options.missing == "most-frequent":
                values, counts = np.unique(known, return_counts=True)
                self.counts[j].update(
                    dict(zip(values.tolist(), counts.tolist(), strict=True))
                )

    def _feature(self, j: int) -> Feature:
        title, counts, words = self.titles[j], self.counts[j], self.words[j]
        missing = self.options.missing
        filled = missing in ("mean", "most-frequent")
        flags = all(str(word).lower() in BOOLEANS for word in counts)
        if words and flags and title not in self.one_hot:
            self._flags(j)
            words = False
        if words:
            every = sorted(map(str, counts))
            odd = [w for w in every if look_of(w)] if title not in self.one_hot else []
            if odd:
                numbers = Words(np.zeros(0, np.int32), odd).numbers()
                told = look_of(odd[0])
                if self.typed and numbers is not None:
                    told = "is a number as text; save the column as numbers"
                told = f": {odd[0]!r} {told}"
                raise ColumnError(f"{self.name}, ", f"column {title!r}", told)
            once, rows = [*counts.values()].count(1), sum(counts.values())
            alone = max(SETTINGS.alone, 0.9 * rows) <= once <= SETTINGS.most_words
            if alone and title not in self.one_hot:
                told = (
                    " has a word of its own in nearly every row; leave the column out "
                    "with columns=..., or keep its words with one_hot=..."
                )
                raise ColumnError(f"{self.name}, ", f"column {title!r}", told)
            return Feature(title, tuple(every), _commonest(counts) if filled else None)
        if not filled:
            return Feature(title)
        total, count = self.sums[j].tolist()
        counts = self.counts[j]
        if not count:
            told = " has no values; leave it out with columns=..."
            raise ColumnError(f"{self.name}: ", f"column {title!r}", told)
        if missing == "mean":
            return Feature(title, fill=total / count)
        return Feature(title, fill=_commonest(counts))

    def _flags(self, j: int) -> None:
        """Count the words of a column of True and False as 1 and 0."""
        counts: Counter[str | float] = Counter()
        for word, count in self.counts[j].items():
            counts[BOOLEANS[str(word).lower()]] += count
        self.counts[j], self.sums[j] = counts, (counts[1.0], sum(counts.values()))

    def described(self, columns: Sequence[Feature] = ()) -> Features:
        """Return a description, by default of the names alone."""
        return Features(
            tuple(columns) or tuple(map(Feature, self.titles)),
            self.label,
            self._classes(),
            self.weight,
            self.named,
            self.options.missing,
            self.options.decimal,
            self.options.thousands,
        )


def _commonest(counts: Mapping[str | float, int]) -> str | float:
    """Return the most frequent value, the smallest of several."""
    most = max(counts.values())
    return min(value for value, count in counts.items() if count == most)


class Encoder:
    """Makes rows of features from blocks of columns, and counts what it changes."""

    def __init__(
        self,
        known: Features,
        layout: Layout,
        weight: Given | None = None,
        training: bool = True,
    ) -> None:
        if weight is not None and layout.weight is not None:
            raise ValueError(
                f"{weight.name} and weight={known.weight!r} exclude each other; leave "
                "one out"
            )
        self.known, self.layout, self.weight = known, layout, weight
        self.drops = known.missing == "drop" and training
        self.unknown: Counter[str] = Counter()
        self.dropped = 0

    def rows(self, block: list[Column]) -> TableRows:
        """Return the features, labels and weights of a block."""
        known, d = self.known, len(self.layout.features)
        columns = [
            _like(column, feature)
            for column, feature in zip(block[:d], known.columns, strict=True)
        ]
        X, rest = known.encode(columns, self.unknown), iter(block[d:])
        y = None if self.layout.label is None else _labels(next(rest), known)
        weight = None if self.layout.weight is None else next(rest)
        if self.weight is not None:
            weight = self.weight.numbers(len(block[0]))
        assert not isinstance(weight, Words)
        if self.drops:
            gaps = np.isnan(X.data if sparse.issparse(X) else X)
            if sparse.issparse(X):
                gaps = sparse.csr_matrix((gaps, X.indices, X.indptr), X.shape)
            kept = np.asarray(gaps.sum(axis=1)).ravel() == 0
            for other in (y, weight):
                kept &= True if other is None else ~_gaps_of(other)
            self.dropped += int((~kept).sum())
            X = X[kept]
            y = None if y is None else y[kept]
            weight = None if weight is None else weight[kept]
        return TableRows(X, y, weight)

    def said(self) -> list[str]:
        """Return sentences about words and rows."""
        found = []
        if self.dropped:
            found.append(f"{self.dropped:,} rows with missing values left out")
        if self.unknown:
            names = ", ".join(f"{k} ({n:,})" for k, n in self.unknown.items())
            found.append(f"words that the model does not know are ignored: {names}")
        return found


def _is_empty(column: Column) -> bool:
    if isinstance(column, Words):
        return not column.words
    return bool(np.isnan(column).all())


def _like(column: Column, feature: Feature) -> Column:
    """Return a column as numbers or words, as a feature needs it."""
    if feature.words is None and isinstance(column, Words):
        numbers = column.flags() if column.words else column.numbers()
        assert numbers is not None
        return numbers
    if feature.words is not None and not isinstance(column, Words):
        return Words(np.full(len(column), -1, np.int32), [])
    return column


def _labels(column: Column, known: Features) -> NDArray[np.generic]:
    """Return labels as words if the description has words, else as numbers."""
    if known.classes is None:
        numbers = column.numbers() if isinstance(column, Words) else column
        if numbers is not None:
            return numbers
    if isinstance(column, Words):
        return np.array([*column.words, ""], dtype=str)[column.codes]
    return np.array([f"{value:.17g}" for value in column.tolist()])
