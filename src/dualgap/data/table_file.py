"""Shared by readers of tables: which columns there are, and where they are."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from ..checks import check_option
from .features import Column, Features, Words

#: Default names of the column with the labels.
LABEL_NAMES = ("label", "target", "class", "y")
_UNNAMED = ("", "Unnamed: 0")
#: Names of columns that may number the rows.
IDS = re.compile(r"(.*[ _-])?([iI][dD]|[iI]ndex|INDEX)|.*[a-z]I[dD]|Unnamed: 0")
#: Marks between thousands.
THOUSANDS = (",", ".", "'", " ")


class TableOptions(NamedTuple):
    """The columns of a table as a caller names them, by name or number."""

    #: Column of the labels. None uses the column named label, target, class or y, or
    #: else the only column of text.
    label: str | None = None
    #: Columns of the features or, with a minus, those that are none. None uses all that
    #: are left.
    columns: Sequence[str] | None = None
    #: Column of the weights of the examples.
    weight: str | None = None
    #: Columns whose values are words, though they may look like numbers.
    one_hot: Sequence[str] = ()
    #: What to do about missing values. None refuses them.
    missing: str | None = None
    #: Decimal point of text; None looks at the first lines.
    decimal: str | None = None
    #: Mark between thousands in text.
    thousands: str | None = None

    def check(self) -> None:
        """Raise an error for values that are unknown."""
        check_option("missing", self.missing, (None, "mean", "most-frequent", "drop"))
        check_option("decimal", self.decimal, (None, ".", ","))
        check_option("thousands", self.thousands, (None, *THOUSANDS))
        if self.thousands is not None and self.thousands == self.decimal:
            raise ValueError(
                f"decimal={self.decimal!r} is the mark between thousands too; use "
                "another one"
            )


class Want(NamedTuple):
    """Way to read a column."""

    #: True for words, False for numbers, None for what the values are.
    words: bool | None = None
    #: What to do about a missing value, for the error; None if it may be missing.
    remedy: str | None = None
    #: Whether it is a feature that is learnt now, so that the caller can still choose.
    learns: bool = False


class ColumnError(ValueError):
    """Fault of a column: beginning of a sentence, place, and what is wrong there.

    In what is wrong, `columns=...` and `one_hot=...` stand for arguments that leave the
    column out, or take it as words. `titles` are several columns.
    """

    def __init__(
        self, begin: str, place: str, told: str, titles: Sequence[str] = ()
    ) -> None:
        super().__init__(begin + place + told)
        self.begin, self.place, self.told, self.titles = begin, place, told, titles


class TableError(ValueError):
    """Faults of columns, by their positions, in one sentence."""

    def __init__(
        self, faults: Mapping[int, ColumnError], title: Callable[[int], str]
    ) -> None:
        places, left_out = dict[str, list[str]](), list[str]()
        first = next(iter(faults.values()))
        for j, fault in faults.items():
            titles = fault.titles or [title(j)]
            left_out += titles if "columns=..." in fault.told else []
            told = fault.told.replace("one_hot=...", f"one_hot={_listed(titles)!r}")
            where = fault.place or "it" * (len(faults) > 1)
            places.setdefault(told, []).append(where)
        parts = []
        for told, every in places.items():
            rest = len(every) - SETTINGS.shown
            more = [f"{rest} other columns"] if rest > 0 else []
            parts.append(" and ".join([*every[: SETTINGS.shown], *more]) + told)
        #: Names of the columns that have to be left out, for an argument.
        self.unusable = _listed(f"-{name}" for name in left_out)
        begin = first.begin if len(faults) == 1 else f"{first.begin.rstrip(',: ')}: "
        text = begin + "; and ".join(parts)
        if len(left_out) <= SETTINGS.listed:
            text = text.replace("columns=...", f"columns={self.unusable!r}")
        super().__init__(text)


def _listed(names: Iterable[str]) -> str:
    """Return names with commas between them; quotes hold those that contain one."""
    return ",".join(f'"{name}"' if "," in name else name for name in names)


@dataclass(frozen=True)
class TableFileSettings:
    """Tuning constants of reading tables, and of messages about their columns."""

    #: Columns with the same fault that it names.
    shown: int = 5
    #: Columns that it lists to be left out.
    listed: int = 30
    #: Fewest rows of a table without names whose first column may number them.
    numbered: int = 20


SETTINGS = TableFileSettings()


class Layout(NamedTuple):
    """Positions of the columns that are read."""

    features: list[int]
    label: int | None
    weight: int | None
    #: Names of columns that are not read although nobody said so.
    ignored: list[str]

    @property
    def read(self) -> list[int]:
        more = [j for j in (self.label, self.weight) if j is not None]
        return [*self.features, *more]


class TableFile(ABC):
    """An open table, whose rows are read once, in blocks."""

    names: list[str] | None
    count: int
    #: Columns that hold the numbers of the rows, and columns that hold nothing.
    index: Sequence[int] = ()
    empty: Sequence[int] = ()
    #: Columns of text.
    texts: Sequence[int] = ()
    decimal: str | None = None
    #: Number of rows, where the file tells it.
    rows: int | None = None
    #: Rows to read after a fault, for faults of other columns.
    more: ClassVar[int] = 10_000

    def __init__(self, name: str) -> None:
        self.name = name
        #: The first fault of each column.
        self.faults: dict[int, ColumnError] = {}
        #: Number of missing values in each column that may have gaps.
        self.gaps: Counter[str] = Counter()

    def blocks(self, wants: Mapping[int, Want], size: int) -> Iterator[list[Column]]:
        """Yield the wanted columns of the next `size` rows.

        Raises TableError at the end, or soon after a fault, with all columns' faults.
        """
        faults, left = self.faults, self.more
        for rows in self._parts(list(wants), size):
            block = list[Column]()
            for j, want in wants.items():
                column: Column | None = None
                try:
                    column = self._column(j, want)
                    if missing := self._check(j, column, want):
                        self.gaps[self.title(j)] += missing
                except ColumnError as error:
                    faults.setdefault(j, error)
                if column is None:
                    column = np.full(rows, np.nan)
                block.append(column)
            yield block
            left -= rows if faults else 0
            if left < 0:
                break
        if faults:
            raise TableError({j: faults[j] for j in wants if j in faults}, self.title)

    @abstractmethod
    def _parts(self, wanted: list[int], size: int) -> Iterator[int]:
        """Read the next `size` rows of the wanted columns, and yield their number."""

    @abstractmethod
    def _column(self, j: int, want: Want) -> Column:
        """Return a column of the rows just read, or raise a ColumnError."""

    @abstractmethod
    def _place(self, j: int, row: int) -> str:
        """Return the place of a value among the rows just read."""

    def _fault(self, j: int, row: int, told: str) -> ColumnError:
        """Return an error about a value among the rows just read."""
        return ColumnError(f"{self.name}, ", self._place(j, row), f": {told}")

    def _infinite(self, j: int, row: int) -> str:
        """Return what an error says about an infinite value."""
        return "the value is infinite"

    def _check(self, j: int, found: Column, want: Want) -> int:
        """Raise an error for values that are infinite; return how many are missing."""
        if isinstance(found, Words):
            gaps = found.codes == -1
        elif np.isfinite(found).all():
            return 0
        else:
            gaps, bad = np.isnan(found), np.isinf(found)
            if bad.any():
                row = int(bad.argmax())
                told = f"{self._infinite(j, row)}; replace it or drop the row"
                raise self._fault(j, row, told)
        if want.remedy is not None and gaps.any():
            told = f"the value is missing; {want.remedy}"
            raise self._fault(j, int(gaps.argmax()), told)
        return int(gaps.sum())

    @abstractmethod
    def close(self) -> None:
        """Let go of the file, which stays open."""

    def title(self, j: int) -> str:
        """Return the name of a column, or its number if it has none."""
        return str(j + 1) if self.names is None else self.names[j] or str(j + 1)

    def position(self, wanted: str, role: str = "column") -> int:
        """Return the position of a column by name or number, or raise an error."""
        if self.names is not None and wanted in self.names:
            return self.names.index(wanted)
        if wanted.isdecimal() and 1 <= int(wanted) <= self.count:
            return int(wanted) - 1
        raise ValueError(
            f"{self.name} has no {role} {wanted!r}; its columns are {self.known()}"
        )

    def known(self) -> str:
        """Return the names of the columns for a message."""
        if self.names is None:
            return f"1 to {self.count}"
        names = [self.title(j) for j in range(self.count)]
        if len(names) > 10:  # the last one is often the label
            names = [*names[:6], "...", *names[-3:]]
        return ", ".join(names)

    def layout(self, options: TableOptions, needs_label: bool) -> Layout:
        """Return where the columns are that options name."""
        self._check_names()
        left_out, features = self._chosen(options.columns or ())
        weight = None
        if options.weight is not None:
            weight = self.position(options.weight, "weight column")
        label = self._label(options.label, needs_label, {*features, weight}, left_out)
        for j, role in ((label, "label"), (weight, "weight")):
            if j in features:
                raise ValueError(
                    f"{self.name}: the {role} column is among the features; remove it "
                    "from columns"
                )
        if not features:
            others = {label, weight, *self.index, *self.empty, *left_out}
            features = [j for j in range(self.count) if j not in others]
        if not features:
            raise ValueError(
                f"{self.name} has no columns besides the labels; add features"
            )
        for name in options.one_hot:
            if self.position(name) not in features:
                raise ValueError(
                    f"{self.name}: column {name!r} of one_hot is not among the features"
                )
        return self._distinct(Layout(features, label, weight, []))

    def _chosen(self, columns: Sequence[str]) -> tuple[list[int], list[int]]:
        """Return the columns to leave out, named with a minus, or those to use."""
        names = self.names or ()
        out = [name for name in columns if name[:1] == "-" and name not in names]
        if 0 < len(out) < len(columns):
            raise ValueError(
                f"columns={','.join(columns)!r} has columns to use and, with a minus, "
                "columns to leave out; give one kind"
            )
        if out:
            return [self.position(name[1:]) for name in out], []
        return [], [self.position(name) for name in columns]

    def _check_names(self) -> None:
        names = [name for name in self.names or () if name]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(
                f"{self.name} has several columns named {twice!r}; rename all but one"
            )

    def _label(
        self,
        label: str | None,
        needs_label: bool,
        taken: set[int | None],
        left_out: Sequence[int] = (),
    ) -> int | None:
        if label is not None:
            # A missing label column is an error only if labels are required.
            found = self._find(label)
            return self.position(label, "label column") if needs_label else found
        lower = [column.lower() for column in self.names or ()]
        likely = [lower.index(word) for word in LABEL_NAMES if word in lower]
        unused = *self.index, *self.empty, *left_out
        texts = [j for j in self.texts if j not in unused]
        likely = likely or (texts if len(texts) == 1 else [])
        # A column that was named as a feature is one.
        likely = [j for j in likely if j not in taken] if not needs_label else likely
        if not likely and needs_label:
            raise ValueError(
                f"{self.name} has no obvious label column; name it with label=... Its "
                f"columns are {self.known()}"
            )
        return likely[0] if likely else None

    def placed(
        self, known: Features, label: str | None, needs_label: bool, strict: bool
    ) -> Layout:
        """Return where the columns are that a description names.

        With `strict`, the weights have to be there too.
        """
        self._check_names()
        wanted = [column.name for column in known.columns]
        if self.names is None and not needs_label and self.count == len(wanted):
            # The label column was removed.
            return Layout(list(range(self.count)), None, None, [])
        lacking = [name for name in wanted if self._find(name) is None]
        if lacking:
            several = "s" * (len(lacking) > 1)
            names = ", ".join(map(repr, lacking[:8])) + ", ..." * (len(lacking) > 8)
            raise ValueError(
                f"{self.name} has no column{several} {names}; its columns are "
                f"{self.known()}"
            )
        features = [self.position(name) for name in wanted]
        name = known.label if label is None else label
        at = None
        if name is not None or needs_label:
            at = self._label(name, needs_label, {*features})
        if at in features and label is None and not needs_label:
            at = None  # a table without labels, whose columns have numbers
        weight = None
        if known.weight is not None:
            weight = self._find(known.weight)
            if weight is None and strict:
                weight = self.position(known.weight, "weight column")
        used = {*features, at, weight, *self.index, *self.empty}
        if label is not None and known.label is not None:
            used.add(self._find(known.label))
        rest = [self.title(j) for j in range(self.count) if j not in used]
        return self._distinct(Layout(features, at, weight, rest))

    def _distinct(self, layout: Layout) -> Layout:
        """Return a layout in which no column is read twice, or raise an error."""
        read = layout.read
        twice = [self.title(j) for j in read if read.count(j) > 1]
        if twice:
            raise ValueError(
                f"{self.name}: column {twice[0]!r} is used twice; name every column "
                "once, for one purpose"
            )
        return layout

    def _find(self, name: str) -> int | None:
        try:
            return self.position(name)
        except ValueError:
            return None

    def left_out(self, layout: Layout) -> list[str]:
        """Return sentences about columns that are not read."""
        found = []
        for j in self.index:
            name = f" ({self.own_name(j)})" if self.own_name(j) else ""
            if j not in layout.read:
                found.append(f"column {j + 1}{name} numbers the rows: left out")
        if layout.ignored:
            some = ", ".join(layout.ignored[:8])
            some += ", ..." * (len(layout.ignored) > 8)
            found.append(f"not used: {some}")
        return found

    def own_name(self, j: int) -> str:
        """Return the name of a column; empty if it has none."""
        return "" if self.names is None else self.names[j]


def numbers_rows(name: str | None, j: int, values: Sequence[object]) -> bool:
    """Whether the first values of a column number the rows, as its name says.

    pandas writes the numbers of rows, in any order, into a nameless first column. A
    column named like an index or an id has to count from 0 or 1. So has the first
    column of a table without names, over enough rows.
    """
    whole = [int(v) for v in map(str, values) if v.isdecimal()]
    if not whole or len(whole) < len(values):
        return False
    if name in _UNNAMED and j == 0:
        return len(set(whole)) == len(whole)
    counts = whole[0] in (0, 1) and whole == [*range(whole[0], whole[0] + len(whole))]
    if name is None:
        return counts and j == 0 and len(whole) >= SETTINGS.numbered
    return counts and IDS.fullmatch(name) is not None
