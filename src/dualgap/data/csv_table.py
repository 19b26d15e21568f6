"""Reader of tables in text: CSV, TSV, and columns between semicolons, pipes or blanks.

The first lines tell the separator, the decimal point, and whether there are names.
"""

from __future__ import annotations

import contextlib
import csv
import io
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, BinaryIO, cast

import numpy as np

from .features import Column, Words, look_of
from .table_file import (
    LABEL_NAMES,
    ColumnError,
    TableFile,
    TableOptions,
    Want,
    numbers_rows,
)

if TYPE_CHECKING:
    from _csv import Reader


@dataclass(frozen=True)
class CsvSettings:
    """Tuning constants of reading."""

    #: Lines that tell what the columns are.
    sample: int = 100
    #: Rows to hold as Python objects, which should stay in the processor's cache.
    rows: int = 512


SETTINGS = CsvSettings()
SEPARATORS = "\t;|,"
#: Texts of missing values, as pandas has them, and a question mark.
_MISSING = {
    *("", "NA", "N/A", "n/a", "<NA>", "#N/A", "#N/A N/A", "#NA", "NULL", "null"),
    *("None", "NaN", "nan", "-NaN", "-nan", "1.#IND", "-1.#IND", "1.#QNAN"),
    *("-1.#QNAN", "?"),
}
#: Words that may have been meant as missing values, where numbers are expected.
_UNSURE = {"-", "--", ".", "na", "none", "missing", "n.a."}
#: First line that some programs write for Excel, with the separator.
_SEP = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)
_DECIMAL_COMMA = re.compile(r"\s*[-+]?\d*,\d+([eE][-+]?\d+)?\s*")
_DECIMAL_POINT = re.compile(r"\s*[-+]?\d*\.\d+([eE][-+]?\d+)?\s*")

Number = Callable[[str], float]


def _with_comma(text: str) -> float:
    """Return a number with a decimal comma."""
    if "." in text:
        raise ValueError
    return float(text.replace(",", "."))


def _grouped(mark: str, number: Number) -> Number:
    """Return a reader of numbers whose thousands are apart by a mark."""
    # A blank stands for those that do not break a line too.
    marks = {" ": "[ \u00a0\u202f]", "'": "['’]"}.get(mark, re.escape(mark))
    groups = re.compile(rf"\s*[-+]?\d{{1,3}}({marks}\d{{3}})+(?!\d)")

    def read(text: str) -> float:
        found = groups.match(text)
        head = "" if found is None else re.sub(marks, "", found[0].strip())
        rest = text if found is None else text[found.end() :]
        if mark != " " and mark in rest:
            raise ValueError
        return number(head + rest)

    return read


class CsvTable(TableFile):
    """A table in text."""

    def __init__(self, content: BinaryIO, name: str, options: TableOptions) -> None:
        super().__init__(name)
        decimal, thousands = options.decimal, options.thousands
        buffered = io.BufferedReader(cast(io.RawIOBase, content))
        wide = buffered.peek(2)[:2] in (b"\xff\xfe", b"\xfe\xff")
        # A byte that is no UTF-8 is an error only in a column that is used.
        self._text = io.TextIOWrapper(
            buffered,
            encoding="utf-16" if wide else "utf-8-sig",
            errors="replace" if wide else "surrogateescape",
            newline="",
        )
        lines: Iterable[str] = self._text
        self._before, head, told = 0, list[str](), ""
        for line in lines:
            if not head and (found := _SEP.fullmatch(line)):
                told, line = found[1], ""
            if head or (line.strip() and not line.startswith("#")):
                head.append(line)
            else:
                self._before += 1
            if len(head) == SETTINGS.sample:
                break
        self.separator = told or _separator(head)
        if self.separator == " ":
            head = [" ".join(line.split()) for line in head]
            lines = (" ".join(line.split()) for line in lines)
        reader = csv.reader(head, delimiter=self.separator)
        with self._told(reader):
            sample = [row for row in reader if any(row)]
        if thousands in (",", "."):  # the other one is the decimal point
            decimal = decimal or ".,"[",.".index(thousands)]
        marks = "[ \u00a0\u202f'’]" if thousands in ("'", " ") else "$^"
        self.decimal = decimal or self._decimal(sample[:-1] or sample, marks)
        self.number: Number = _with_comma if self.decimal == "," else float
        if thousands is not None:
            self.number = _grouped(thousands, self.number)
        self._reader = csv.reader(
            chain(head, lines), delimiter=self.separator, strict=True
        )
        self.count = len(sample[0]) if sample else 0
        widths = {len(row) for row in sample[1:-1]}
        if self.count == 1 and len(widths) == 1 and max(widths) > 2:
            raise ValueError(
                f"{name}, line {self._before + 1} has 1 column, and the lines below it "
                f"have {max(widths)}; remove what stands above the names of columns"
            )
        self.names, named = None, False
        if self._is_header(sample):
            self.names = [field.strip("\ufeff \t\r\n") for field in sample[0]]
            self._header(sample)
            named = self._add_name(sample)
        rows = [row for row in sample if len(row) == self.count][: SETTINGS.sample - 1]
        columns = [
            [field.strip() for field in column] for column in zip(*rows, strict=True)
        ]
        self.texts = [j for j, column in enumerate(columns) if self._is_text(column)]
        self.index = [
            j
            for j, column in enumerate(columns if self.count > 1 else ())
            if numbers_rows(self.names[j] if self.names else None, j, column)
            or j < named
        ]
        self.empty = [
            j
            for j, column in enumerate(columns)
            if not any(column)
            and not (self.names[j] if self.names else j < self.count - 1)
        ]

    @contextlib.contextmanager
    def _told(self, reader: Reader) -> Iterator[None]:
        """Turn an error of a reader into a ValueError that names the line."""
        try:
            yield
        except csv.Error as error:
            raise ValueError(
                f"{self.name}, line {self._before + reader.line_num}: {error}; check "
                "the quotation marks, and remove fields of very long text"
            ) from None

    def _add_name(self, sample: Sequence[Sequence[str]]) -> bool:
        """Add the name that the first line lacks; return whether R named the rows."""
        names, rows = cast(list[str], self.names), sample[:-1] or sample
        if any(len(row) != len(names) + 1 for row in rows):
            return False
        self.count += 1
        ended = not any(row[-1].strip() for row in rows)  # by a separator
        names.insert(self.count if ended else 0, "")
        return not ended

    def _decimal(self, sample: Sequence[Sequence[str]], marks: str) -> str:
        """Return the decimal point of the numbers in the first lines, without marks."""
        fields = [re.sub(marks, "", field) for row in sample for field in row]
        comma = self.separator != "," and any(map(_DECIMAL_COMMA.fullmatch, fields))
        return "," if comma and not any(map(_DECIMAL_POINT.fullmatch, fields)) else "."

    def is_number(self, text: str) -> bool:
        try:
            self.number(text)
        except ValueError:
            return False
        return "_" not in text

    def _is_text(self, column: Sequence[str]) -> bool:
        """Whether the first value of a column is a word."""
        found = [text for text in column if text not in _MISSING]
        return bool(found) and not self.is_number(found[0])

    def _is_header(self, sample: Sequence[Sequence[str]]) -> bool:
        """Whether the first row has the names of the columns."""
        if not sample:
            return False
        first, rest = sample[0], sample[1:]
        second = rest[0] if rest else []
        if not any(map(self.is_number, first)):
            # Names do not come again in their columns, and differ from each other.
            again = any(
                above == below and above.strip()
                for row in rest
                for above, below in zip(first, row, strict=False)
            )
            words = [word for word in first if word.strip()]
            numbers = any(self.is_number(t) for row in rest for t in row)
            return numbers or not (again or len(set(words)) < len(words))
        if any(
            self.is_number(below)
            and not self.is_number(above)
            and above.strip() not in _MISSING
            for above, below in zip(first, second, strict=False)
        ):
            return True
        labels = [j for j, t in enumerate(first) if t.strip().lower() in LABEL_NAMES]
        if any(first[j] not in [row[j] for row in rest if row[j:]] for j in labels):
            return True
        return self._counts(first, rest)

    def _counts(self, first: Sequence[str], rest: Sequence[Sequence[str]]) -> bool:
        """Whether numbers in the first row are names: 0, 1, 2, ... or years."""
        rows = [row for row in rest if len(row) == len(first)]
        columns = list(zip(first, *rows, strict=True))
        numbers = [column for column in columns if self.is_number(column[0])]
        names = [name for name, *_ in numbers]
        start = int(names[0]) if names and names[0].isdecimal() else 0
        counted = [str(k) for k in range(start, start + len(names))]
        if 0 < start < 1000 or names != counted:
            return False
        again = any(name in own for name, *own in columns if name not in counted)
        # Rows of small whole numbers may count too.
        least = 5 if all(map(str.isdecimal, chain(*numbers))) else 3
        return bool(rows) and not again and 1 < len(numbers) and least <= len(columns)

    def _header(self, sample: list[list[str]]) -> None:
        """Read the names, and check them."""
        del sample[0]
        if not sample:
            raise ValueError(f"{self.name} has no rows; give a file with data")
        with self._told(self._reader):
            next(filter(any, self._reader), None)
        for j, field in enumerate(self.names or ()):
            self._check_text(field, self._before + self._reader.line_num, j)

    def close(self) -> None:
        with contextlib.suppress(ValueError):  # closed already
            self._text.detach().detach()

    def _parts(self, wanted: list[int], size: int) -> Iterator[int]:
        reader = self._reader
        while True:
            self._begun = self._before + reader.line_num
            with self._told(reader):
                self._rows = rows = list(islice(reader, min(size, SETTINGS.rows)))
            if not rows:
                return
            self._kept: Sequence[int] = range(len(rows))
            if {*map(len, rows)} != {self.count}:
                self._kept = [k for k, row in enumerate(rows) if self._holds(k, row)]
            if self._kept:
                self._columns = list(zip(*[rows[k] for k in self._kept], strict=True))
                yield len(self._kept)

    def _holds(self, k: int, row: Sequence[str]) -> bool:
        """Whether a row is no blank line; refuse one with too many or few columns."""
        if not row or (len(row) == 1 and not row[0].strip()):
            return False
        if len(row) != self.count:
            raise ValueError(
                f"{self.name}, line {self._line(k)}: expected {self.count} columns as "
                f"in the first line, found {len(row)}; mend or remove the line"
            )
        return True

    def _line(self, k: int) -> int:
        """Return the last line of a row."""
        inner = sum(f.count("\n") for row in self._rows[: k + 1] for f in row)
        return self._begun + k + 1 + inner

    def _place(self, j: int, row: int) -> str:
        named = f" ({self.names[j]!r})" if self.names else ""
        return f"line {self._line(self._kept[row])}, column {j + 1}{named}"

    def _check_text(self, text: str, line: int, j: int) -> None:
        """Raise an error for bytes that are no UTF-8."""
        try:
            text.encode()
        except UnicodeEncodeError:
            raw = text.encode("utf-8", "surrogateescape")[:40]
            raise ColumnError(
                f"{self.name}, ",
                f"line {line}, column {j + 1}",
                f": {raw!r} is not text in UTF-8; convert the file, from Latin-1 with: "
                "iconv -f latin1 -t utf-8",
            ) from None

    def _column(self, j: int, want: Want) -> Column:
        texts = self._columns[j]
        if want.words is not True:
            try:
                values = np.fromiter(map(self.number, texts), float, len(texts))
                if "_" not in "".join(texts):  # Python reads 1_000 as a number
                    return values
            except ValueError:
                pass
        found = self._mixed(j, texts, want)
        if isinstance(found, Words):
            for word in found.words:
                if not word.isascii():
                    row = next(k for k, t in enumerate(texts) if t.strip() == word)
                    self._check_text(word, self._line(self._kept[row]), j)
        return found

    def _infinite(self, j: int, row: int) -> str:
        return f"expected a finite number, found {self._columns[j][row].strip()[:40]!r}"

    def _mixed(self, j: int, texts: Sequence[str], want: Want) -> Column:
        """Return a column with values that are not numbers."""
        values, place, code = dict[str, float](), dict[str, int](), dict[str, int]()
        for raw in set(texts):  # few, where they are words
            text = raw.strip()
            if text in _MISSING:
                values[raw], code[raw] = math.nan, -1
            elif want.words is not True and self.is_number(text):
                values[raw], code[raw] = self.number(text), -1
            else:
                code[raw] = place.setdefault(text, len(place))
        if not place and want.words is not True:
            each = map(values.__getitem__, texts)
            return np.fromiter(each, np.float64, len(texts))
        codes = np.fromiter(map(code.__getitem__, texts), np.int32, len(texts))
        found = Words(codes, list(place))
        numbers = not all(map(math.isnan, values.values()))
        if want.words is False or numbers:
            flags = None if numbers else found.flags()
            if flags is not None:
                return flags
            self._refuse(j, int((codes >= 0).argmax()), want)
        return found

    def _refuse(self, j: int, row: int, want: Want) -> None:
        """Raise an error for a value that is not a finite number."""
        text = self._columns[j][row].strip()
        told, look = f"expected a finite number, found {text[:40]!r}", look_of(text)
        if look is not None:
            told = f"{text[:40]!r} {look}"
        elif text.lower() in _UNSURE:
            told += "; leave the field empty if it is missing"
        elif want.learns:
            told += (
                "; take its values as words with one_hot=..., or leave the column out "
                "with columns=..."
            )
        else:
            told += "; give a number"
        raise self._fault(j, row, told)


def _separator(head: Sequence[str]) -> str:
    """Return what stands between the columns of the first lines.

    A comma between other separators is a decimal comma.
    """
    some = [line for line in head[:20] if line.strip()]
    if not some:
        return ","
    for mark in SEPARATORS[:-1]:
        rows = [[""]]
        with contextlib.suppress(csv.Error):  # the comma then tells it
            rows = list(csv.reader(some, delimiter=mark))
        if len(rows[0]) > 1 and all(len(row) == len(rows[0]) for row in rows[:-1]):
            fields = [field for row in rows[1:] or rows for field in row]
            commas = [field for field in fields if "," in field]
            if all(map(_DECIMAL_COMMA.fullmatch, commas)) or "," not in some[0]:
                return mark
    first = some[0]
    for line in some[1:]:
        if first.count('"') % 2:  # a name of several lines
            first += line
    uneven = len({len(line.split()) for line in some}) > 1
    for line in (first, some[-1] if uneven else ""):
        best = max(SEPARATORS, key=line.count)
        if best in line:
            return best
    return " "
