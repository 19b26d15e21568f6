"""Features of a table: how its columns became numbers, learnt once and kept.

Numbers stay as they are. A column of words gets one feature per word (one-hot). Missing
values are filled with what was learnt, or refused. The description travels with models
and stores, and later tables are read by the names in it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .types import Matrix


@dataclass(frozen=True)
class FeatureSettings:
    """Tuning constants of how columns become features."""

    #: Most words of a column that becomes features without being named.
    most_words: int = 100
    #: Fewest words that occur once for which a column of almost only these is refused.
    alone: int = 20
    #: Part of the entries below which encoded rows are sparse.
    dense: float = 0.3


SETTINGS = FeatureSettings()

Numbers: TypeAlias = NDArray[np.float64]

_MONTH = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_UNIT = r"\s?([%$€£¥°]|°[CF]|USD|EUR|GBP|CHF|JPY|kg|mg|km|cm|mm|ml|lbs?|oz|ft|kWh)"
_LOOKS = {
    r"\d{4}[-/]\d\d?[-/]\d\d?(?!\d).*|\d\d?[./]\d\d?[./]\d{2,4}\b.*|"
    rf"(?i:\d\d?\W+{_MONTH}\W+\d{{2,4}}\b.*|{_MONTH}\W+(\d\d?\W+)?\d{{4}}\b.*)": (
        "is a date, which is no feature; turn it into numbers, or leave it out with "
        "columns=..."
    ),
    r"\d\d?:\d\d(:\d\d(\.\d+)?)?(\s?[aApP]\.?[mM]\.?)?": (
        "is a time of day, which is no feature; turn it into numbers, or leave it out "
        "with columns=..."
    ),
    r"[-+]?\d{1,3}(,\d{3})+(\.\d*)?": (
        "has thousands separators; give thousands=',' (decimal=',' reads 1,000 as 1)"
    ),
    r"[-+]?\d{1,3}(\.\d{3})+(,\d*)?": (
        "has thousands separators; give thousands='.' (decimal='.' reads 1.000 as 1)"
    ),
    r"[-+]?\d{1,3}([ \u00a0\u202f]\d{3})+([.,]\d*)?": (
        "has thousands separators; give thousands=' '"
    ),
    r"[-+]?\d{1,3}(['’]\d{3})+([.,]\d*)?": (
        'has thousands separators; give thousands="\'"'
    ),
    r"[-+]?\d*,\d+([eE][-+]?\d+)?": "has a decimal comma; give decimal=','",
    r"[-+]?\d*\.\d+([eE][-+]?\d+)?": "has a decimal point; give decimal='.'",
    r"[-+]?0[xX][\da-fA-F]+": "is a hexadecimal number; write it in decimal",
    r"[-+]?([$€£¥]|USD|EUR|GBP|CHF|JPY)\s?[-+]?\d[\d.,]*|[-+]?\d[\d.,]*"
    + _UNIT
    + r"|[−–]\s?\d[\d.,]*|\(\d[\d.,]*\)|'[-+]?\d[\d.,]*'": (
        "is a number with a sign or unit; write the number alone, or take the values "
        "as words with one_hot=..."
    ),
}
BOOLEANS = {"true": 1.0, "false": 0.0}


def look_of(text: str) -> str | None:
    """Return what a word looks like that is meant as a number or date; None if not."""
    told = (saying for look, saying in _LOOKS.items() if re.fullmatch(look, text))
    return next(told, None)


@dataclass(frozen=True)
class Words:
    """A column of words: for each row the number of its word, -1 where missing."""

    codes: NDArray[np.int32]
    words: list[str]

    def __len__(self) -> int:
        return len(self.codes)

    def flags(self) -> Numbers | None:
        """Return a column of True and False as 1 and 0; None if it has other words."""
        if not self.words or not all(w.lower() in BOOLEANS for w in self.words):
            return None
        return self.mapped([BOOLEANS[word.lower()] for word in self.words])

    def mapped(self, values: Sequence[float]) -> Numbers:
        """Return a number for every row; NaN where the word is missing."""
        return np.array([*values, np.nan])[self.codes]

    def numbers(self) -> Numbers | None:
        """Return the words as numbers; None if one of them is no number."""
        try:
            return self.mapped([float(word) for word in self.words])
        except ValueError:
            return None


Column: TypeAlias = Numbers | Words


@dataclass(frozen=True)
class Feature:
    """A column of a table, and the features that it becomes."""

    name: str
    #: Words, sorted, each of which is a feature; None for a column of numbers.
    words: tuple[str, ...] | None = None
    #: What a missing value becomes; None if it is refused.
    fill: float | str | None = None

    @property
    def width(self) -> int:
        return 1 if self.words is None else len(self.words)

    @property
    def names(self) -> list[str]:
        if self.words is None:
            return [self.name]
        return [f"{self.name}={word}" for word in self.words]


@dataclass(frozen=True)
class Features:
    """Columns of a table, by name or number, and what became of them."""

    columns: tuple[Feature, ...]
    label: str | None = None
    #: Words that are the labels, sorted; None if the labels are numbers.
    classes: tuple[str, ...] | None = None
    weight: str | None = None
    #: Whether the table had names of columns.
    named: bool = True
    #: What was done about missing values: "mean", "most-frequent", "drop" or None.
    missing: str | None = None
    decimal: str | None = None
    thousands: str | None = None

    @property
    def width(self) -> int:
        return sum(column.width for column in self.columns)

    @property
    def plain(self) -> bool:
        """Whether the features are the columns themselves."""
        return all(column.words is None for column in self.columns)

    @property
    def names(self) -> list[str] | None:
        """Names of the features; None if these are columns without a name."""
        if self.plain and not self.named:
            return None
        return [name for column in self.columns for name in column.names]

    @property
    def sparse(self) -> bool:
        return len(self.columns) < SETTINGS.dense * self.width

    def said(self) -> list[str]:
        """Return sentences about words and missing values."""
        words = [c for c in self.columns if c.words is not None]
        found = []
        if words:
            parts = ", ".join(f"{c.name} ({c.width})" for c in words)
            found.append(f"one feature per word (one-hot): {parts}")
        if self.missing in ("mean", "most-frequent"):
            found.append(f"missing values filled ({self.missing})")
        return found

    def encode(self, columns: Sequence[Column], unknown: Counter[str]) -> Matrix:
        """Return the rows of features, and count words that are not known.

        Rows with a value that is missing and is not filled have NaN.
        """
        n = len(columns[0])
        if self.plain:
            X = np.empty((n, len(columns)))
            for j, (feature, column) in enumerate(
                zip(self.columns, columns, strict=True)
            ):
                assert isinstance(column, np.ndarray)
                X[:, j] = _filled(column, feature)
            return X
        places = np.zeros((n, len(columns)), np.int64)
        values = np.ones((n, len(columns)))
        at = 0
        for j, (feature, column) in enumerate(zip(self.columns, columns, strict=True)):
            if feature.words is None:
                assert isinstance(column, np.ndarray)
                values[:, j], places[:, j] = _filled(column, feature), at
            else:
                assert isinstance(column, Words)
                codes = self._codes(feature, column, unknown)
                values[codes == -1, j] = 0.0
                values[codes == -2, j] = np.nan
                places[:, j] = at + np.maximum(codes, 0)
            at += feature.width
        if not self.sparse:
            X = np.zeros((n, at))
            X[np.arange(n)[:, None], places] = values
            return X
        kept = values != 0.0
        ends = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
        parts = values[kept], places[kept].astype(np.int32), ends.astype(np.int32)
        return sparse.csr_matrix(parts, shape=(n, at))

    @staticmethod
    def _codes(
        feature: Feature, column: Words, unknown: Counter[str]
    ) -> NDArray[np.int64]:
        """Return the place of each row's word; -1 if unknown, -2 if missing."""
        assert feature.words is not None
        place = {word: k for k, word in enumerate(feature.words)}
        missing = -2 if feature.fill is None else place[str(feature.fill)]
        codes = np.array([*(place.get(w, -1) for w in column.words), missing])
        found = codes[column.codes]
        if strange := int((found == -1).sum()):
            unknown[feature.name] += strange
        return found

    def to_json(self) -> str:
        """Return the description as JSON."""
        plain = {**vars(self), "columns": [vars(column) for column in self.columns]}
        return json.dumps(plain, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Features:
        """Return the description that :meth:`to_json` wrote, after checking it.

        Raises ValueError if the text is anything else.
        """
        try:
            plain = json.loads(text)
            columns = tuple(
                Feature(c["name"], _tuple(c["words"]), c["fill"])
                for c in plain.pop("columns")
            )
            plain["classes"] = _tuple(plain["classes"])
            found = cls(columns, **plain)
            sound = found.to_json() == text and columns and all(map(_sound, columns))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            sound = False
        strings = (str, type(None))
        if not sound or not all(
            isinstance(getattr(found, name), strings)
            for name in ("label", "weight", "missing", "decimal", "thousands")
        ):
            raise ValueError("its description of the columns was damaged or edited")
        return found


def _filled(column: Numbers, feature: Feature) -> Numbers:
    """Return numbers with missing ones filled."""
    if feature.fill is None:
        return column
    return np.where(np.isnan(column), feature.fill, column)


def _tuple(words: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if words is None else tuple(words)


def _sound(feature: Feature) -> bool:
    """Whether a description of a column is consistent."""
    name, words, fill = feature.name, feature.words, feature.fill
    if words is None:
        return isinstance(name, str) and not isinstance(fill, (str, bool))
    return (
        isinstance(name, str)
        and all(isinstance(word, str) for word in words)
        and list(words) == sorted(set(words))
        and (fill is None or fill in words)
    )
