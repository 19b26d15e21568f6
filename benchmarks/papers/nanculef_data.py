"""The data sets of Nanculef et al. 2014 that are present, and a file of fits."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
from datasets import unpack
from scipy import sparse
from sklearn.datasets import load_svmlight_file, load_svmlight_files
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, OneHotEncoder

ABSENT = (
    "protein, w2a, w3a, w5a, a4a, a5a, a6a, the whole of kdd99 (here: its 10 % file) "
    "and of covtype (here: 92,962 rows), usps-ext"
)


# The loaders return X, y and the test rows X_t, y_t.


def svmlight(train: str, test: str):
    """Two svmlight files of the same features."""
    return load_svmlight_files([unpack(train), unpack(test)])


def images(name: str, factor: float):
    """The .npz of mnist or usps, pixels scaled."""
    packed = np.load(unpack(name))
    parts = []
    for part in ("train", "test"):
        X = packed[f"X_{part}"]
        parts += [X.reshape(len(X), -1) * factor, packed[f"y_{part}"]]
    return tuple(parts)


def shuttle():
    """Scaled to [-1, 1] by the training rows, as LIBSVM's copy is."""
    X, y, X_t, y_t = svmlight("shuttle/shuttle", "shuttle/shuttle.t")
    scaler = MinMaxScaler((-1, 1)).fit(X.toarray())
    return scaler.transform(X.toarray()), y, scaler.transform(X_t.toarray()), y_t


def pendigits():
    """Coordinates 0 to 100, divided by 100."""
    X, y, X_t, y_t = svmlight("pendigits/pendigits", "pendigits/pendigits.t")
    return X.toarray() / 100, y, X_t.toarray() / 100, y_t


def letter():
    """Letters, already scaled to [-1, 1]."""
    X, y, X_t, y_t = svmlight("letter/letter.scale", "letter/letter.scale.t")
    return X.toarray(), y, X_t.toarray(), y_t


def ijcnn1():
    """Training part, and validation part as the test: the test file is not here."""
    X, y = load_svmlight_file(unpack("ijcnn1/ijcnn1"), n_features=22)
    X = X.toarray()
    return X[:35_000], y[:35_000], X[35_000:], y[35_000:]


def covtype():
    """Class 2 against the rest; a fifth of the subset is the test."""
    X, y = load_svmlight_file(unpack("covtype/covtype.binary.scale.subset92962"))
    X, X_t, y, y_t = train_test_split(
        X.toarray(), y == 2, test_size=0.2, random_state=0
    )
    return X, y, X_t, y_t


def kdd99():
    """Attack against normal; categories one-hot, numbers scaled to [0, 1]."""
    tables = []
    for name in ("kdd99/kddcup.data_10_percent", "kdd99/corrected"):
        lines = unpack(name).read().decode().split()
        tables.append(np.array([line.split(",") for line in lines]))
    words = [1, 2, 3]  # protocol, service, flag
    encoder = OneHotEncoder(handle_unknown="ignore").fit(tables[0][:, words])
    scaler = MaxAbsScaler()
    parts = []
    for k, table in enumerate(tables):
        numbers = np.delete(table[:, :-1], words, axis=1).astype(np.float64)
        numbers = scaler.fit_transform(numbers) if k == 0 else scaler.transform(numbers)
        X = sparse.hstack([encoder.transform(table[:, words]), numbers], format="csr")
        parts += [X, table[:, -1] != "normal."]
    return tuple(parts)


def reuters():
    """money-fx against the rest, tf-idf, ModApte split."""
    text = unpack("reuters21578/reut2-all.sgm").read().decode("latin-1")
    parts = {"TRAIN": ([], []), "TEST": ([], [])}
    for entry in re.findall(r"<REUTERS.*?</REUTERS>", text, flags=re.DOTALL):
        split = re.search(r'LEWISSPLIT="([\w-]+)"', entry)[1]
        if split not in parts or 'TOPICS="YES"' not in entry:
            continue
        topics = re.search(r"<TOPICS>(.*?)</TOPICS>", entry)[1]
        body = re.search(r"<TEXT.*</TEXT>", entry, flags=re.DOTALL)[0]
        parts[split][0].append(re.sub(r"<.*?>|&#\d+;", " ", body))
        parts[split][1].append("<D>money-fx</D>" in topics)
    vectorizer = TfidfVectorizer(min_df=2)
    X = vectorizer.fit_transform(parts["TRAIN"][0])
    X_t = vectorizer.transform(parts["TEST"][0])
    return X, np.array(parts["TRAIN"][1]), X_t, np.array(parts["TEST"][1])


SETS = {
    # w1a's own test file is not here.
    "w1a": lambda: svmlight("web/w1a", "web/w8a.t"),
    **{
        name: lambda name=name: svmlight(f"web/{name}", f"web/{name}.t")
        for name in ("w4a", "w6a", "w7a", "w8a")
    },
    **{
        name: lambda name=name: svmlight(f"adult/{name}", f"adult/{name}.t")
        for name in ("a1a", "a2a", "a3a", "a7a", "a8a", "a9a")
    },
    "letter": letter,
    "pendigits": pendigits,
    "usps": lambda: images("usps/usps.npz", 0.001),
    "mnist": lambda: images("mnist/mnist.npz", 1 / 255),
    "reuters": reuters,
    "shuttle": shuttle,
    "ijcnn1": ijcnn1,
    "kdd99": kdd99,
    "covtype": covtype,
}


def some(X, y, limit: int, seed: int = 0):
    """A random part of the rows, each class with its share and at least 2 rows."""
    if X.shape[0] <= limit:
        return X, y
    rng = np.random.default_rng(seed)
    rows = []
    for label in np.unique(y):
        own = np.flatnonzero(y == label)
        size = min(len(own), max(2, round(limit * len(own) / len(y))))
        rows.append(rng.choice(own, size, replace=False))
    rows = np.sort(np.concatenate(rows))
    return X[rows], y[rows]


class Fits:
    """Fits by their keys, kept in a file as they end. This run has `used` some."""

    def __init__(self, path: Path, stored: list[dict]) -> None:
        self.path, self.used = path, {}
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            stored = stored + [json.loads(s) for s in path.read_text().splitlines()]
        self.known = {tuple(entry["key"]): entry["result"] for entry in stored}

    def get(self, key: tuple, train) -> dict:
        """Return a known fit, or train it and write it to the file."""
        if key not in self.known:
            self.known[key] = train()
            with self.path.open("a") as file:
                file.write(json.dumps({"key": key, "result": self.known[key]}) + "\n")
            print(*key, self.known[key], flush=True)
        self.used[key] = self.known[key]
        return self.known[key]

    @property
    def entries(self) -> list[dict]:
        """All fits of this run, for the JSON file."""
        return [{"key": key, "result": result} for key, result in self.used.items()]
