"""The experiments of Nanculef, Frandi, Sartori and Allende 2014 (Frank-Wolfe SVMs).

    python benchmarks/papers/nanculef2014.py [SET ...] [--max-rows N] [--time-limit S]

Accuracy, time, model size and speed-up over the core vector machine (CVM) of FW, MFW,
SWAP and SWAP-2o on the paper's data sets where they are present, with the paper's
sample of 60 rows per step and with the full gradient, and of our default, the block
solver. Every fit ends with a certificate of the same accuracy; the paper ended at the
gap that a sample showed. Friedman's and Wilcoxon's tests over the sets ask the paper's
questions: is SWAP faster than FW and CVM, not slower than MFW, as accurate? They are
asked once more, with the full gradient alone, of up to 20,000 rows a set. How the time
grows with the rows is asked of the Adult series at full size.

Each fit is kept as it ends (`--results`), so that a killed run goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import re
import time
import warnings
from pathlib import Path

import numpy as np
from common import Report
from datasets import CACHE, DATA, _unpack
from scipy import sparse, stats
from sklearn.datasets import load_svmlight_file, load_svmlight_files
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, OneHotEncoder

from dualgap import SVC
from dualgap.kernel import (
    FW,
    MFW,
    RBF,
    SWAP,
    Auto,
    CoreVector,
    Polynomial,
    SWAP2o,
)

RECORDS = {
    "CVM": lambda sample: CoreVector(sample=sample),
    "FW": lambda sample: FW(sample=sample),
    "MFW": lambda sample: MFW(sample=sample),
    "SWAP": lambda sample: SWAP(sample=sample),
    "SWAP-2o": lambda sample: SWAP2o(sample=sample, ranking="paper"),
}
SAMPLED = {name: make(60) for name, make in RECORDS.items()}
FULL = {f"{name}, full": make(None) for name, make in RECORDS.items()}
GROUPS = {
    "60 random rows per step, as in the paper": list(SAMPLED),
    "the full gradient": [*FULL, "auto"],
}
METHODS = {**SAMPLED, **FULL, "auto": Auto()}
KERNELS = {
    "Gaussian": RBF(gamma="mean-distance"),
    "polynomial": Polynomial(degree=2, gamma="mean-distance", coef0=0.0),
}
# The Adult series at full size: which methods, seconds a fit, megabytes of cache.
SERIES = ("a1a", "a2a", "a3a", "a7a", "a8a", "a9a")
GROWING = ("CVM", "SWAP", "CVM, full", "MFW, full", "SWAP, full", "auto")
GROWTH = {"max_rows": 10**9, "time_limit": 60.0, "cache": 2000.0}
# All sets with more rows: the full gradient takes seconds a fit, samples minutes.
LARGER = {"max_rows": 20_000, "max_test": 20_000, "time_limit": 20.0, "cache": 1000.0}
ABSENT = (
    "protein, w2a, w3a, w5a, a4a, a5a, a6a, the whole of kdd99 (here: its 10 % file) "
    "and of covtype (here: 92,962 rows), usps-ext"
)


# ------------------------------------------------------------- data: (X, y, X_t, y_t)


def svmlight(train: str, test: str):
    """Two svmlight files of the same features."""
    return load_svmlight_files([_unpack(train), _unpack(test)])


def images(name: str, factor: float):
    """The .npz of mnist or usps, pixels scaled."""
    packed = np.load(_unpack(name))
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
    X, y = load_svmlight_file(_unpack("ijcnn1/ijcnn1"), n_features=22)
    X = X.toarray()
    return X[:35_000], y[:35_000], X[35_000:], y[35_000:]


def covtype():
    """Class 2 against the rest; a fifth of the subset is the test."""
    X, y = load_svmlight_file(_unpack("covtype/covtype.binary.scale.subset92962"))
    X, X_t, y, y_t = train_test_split(
        X.toarray(), y == 2, test_size=0.2, random_state=0
    )
    return X, y, X_t, y_t


def kdd99():
    """Attack against normal; categories one-hot, numbers scaled to [0, 1]."""
    tables = []
    for name in ("kdd99/kddcup.data_10_percent", "kdd99/corrected"):
        lines = _unpack(name).read().decode().split()
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
    text = _unpack("reuters21578/reut2-all.sgm").read().decode("latin-1")
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


# --------------------------------------------------------------------------- fits


def fit(data, kernel: str, method: str, args) -> dict:
    """Train and test one method; what is reported of it."""
    X, y, X_t, y_t = data
    model = SVC(
        C=args.C, loss="squared_hinge", kernel=KERNELS[kernel],
        solver=METHODS[method], tol=args.tol,
        max_epochs=10**9, time_limit=args.time_limit, cache_size=args.cache,
        random_state=0,
    )  # fmt: skip
    begun, cpu = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    seconds, cpu = time.perf_counter() - begun, time.process_time() - cpu
    found = list(model.certificate_)
    bounded = [c.relative_gap for c in found]
    return {
        "seconds": seconds,
        "cpu": cpu,
        "certified": all(c.certified for c in found),
        "gap": max(bounded) if np.isfinite(bounded).all() else None,
        "dual": sum(c.dual for c in found),
        "accuracy": float(np.mean(model.predict(X_t) == y_t)),
        "support": len(model.support_),
        "rows": X.shape[0],
        "test": X_t.shape[0],
        "d": X.shape[1],
        "classes": len(model.classes_),
    }


def run(args, sets, kernels, methods) -> dict:
    """Return all fits. Fits of an earlier run are read from the file of results."""
    args.results.parent.mkdir(parents=True, exist_ok=True)
    kept = {}
    if args.results.exists():
        for line in args.results.read_text().splitlines():
            entry = json.loads(line)
            kept[tuple(entry["key"])] = entry["result"]
    out = {}
    for kernel in kernels:
        for name in sets:
            data = None
            for method in methods:
                key = (name, kernel, method, args.C, args.tol, args.max_rows,
                       args.max_test, args.time_limit, args.cache)  # fmt: skip
                if key not in kept:
                    if data is None:
                        X, y, X_t, y_t = SETS[name]()
                        data = (
                            *some(X, y, args.max_rows),
                            *some(X_t, y_t, args.max_test),
                        )
                    kept[key] = fit(data, kernel, method, args)
                    with args.results.open("a") as file:
                        entry = {"key": key, "result": kept[key]}
                        file.write(json.dumps(entry) + "\n")
                    print(name, kernel, method, kept[key], flush=True)
                out[name, kernel, method] = kept[key]
    return out


# ------------------------------------------------------------------------- report


def seconds_of(result: dict, limit: float) -> str:
    """Time to the certificate; a fit that was stopped took longer."""
    return f"{result['seconds']:.2f}" if result["certified"] else f"> {limit:g}"


def wilcoxon(a, b, alternative: str) -> float:
    """p of Wilcoxon's signed rank test; 1 where nothing differs."""
    a, b = np.asarray(a), np.asarray(b)
    if len(a) < 2 or np.array_equal(a, b):
        return 1.0
    return float(stats.wilcoxon(a, b, alternative=alternative).pvalue)


def friedman(samples: list) -> float:
    """p of Friedman's test; 1 where nothing differs."""
    p = float(stats.friedmanchisquare(*samples).pvalue)
    return 1.0 if np.isnan(p) else p


def tables(report: Report, results: dict, kernel: str, methods: list, args) -> dict:
    """Report a kernel and a group of methods; return the mean speed-ups over CVM."""
    first, *_ = methods
    rows = {name: {m: results[name, kernel, m] for m in methods} for name in args.sets}
    names = [m.removesuffix(", full") for m in methods]
    seconds = [
        [n, r[first]["rows"], r[first]["classes"],
         *(seconds_of(r[m], args.time_limit) for m in methods)]
        for n, r in rows.items()
    ]  # fmt: skip
    accuracies = [
        [n, *(f"{100 * r[m]['accuracy']:.2f} ({r[m]['support']})" for m in methods)]
        for n, r in rows.items()
    ]
    # A fit that was stopped counts with its limit: its true time is longer.
    times = {
        name: [
            r[m]["seconds"] if r[m]["certified"] else args.time_limit
            for r in rows.values()
        ]
        for name, m in zip(names, methods, strict=True)
    }
    accuracy = {
        name: [r[m]["accuracy"] for r in rows.values()]
        for name, m in zip(names, methods, strict=True)
    }
    ratio = {m: np.array(times["CVM"]) / np.array(times[m]) for m in names}
    means = {m: float(np.exp(np.log(ratio[m]).mean())) for m in names}
    done = [sum(r[m]["certified"] for r in rows.values()) for m in methods]
    report.say("Over all sets (the speed-up over CVM is the geometric mean):")
    report.say()
    report.table(
        ["", *names],
        [
            ["certified", *(f"{count} of {len(rows)}" for count in done)],
            ["speed-up over CVM", *(f"{means[m]:.2f}" for m in names)],
            ["range", *(f"{ratio[m].min():.2f} to {ratio[m].max():.2f}"
                        for m in names)],
        ],
    )  # fmt: skip
    if len(rows) >= 3:
        claims(report, times, accuracy)
    report.table(["set", "rows", "classes", *names], seconds,
                 "Seconds to a proved gap on every set")  # fmt: skip
    report.table(["set", *names], accuracies,
                 "Test accuracy in % (support vectors) on every set")  # fmt: skip
    return means


def claims(report: Report, times: dict, accuracy: dict) -> None:
    """Report the tests of the paper's claims."""
    lines = []

    def ask(claim: str, p: float, rejects: bool) -> None:
        """A claim that a small p supports (rejects) or speaks against."""
        small = p < 0.05
        said = {
            (True, True): "shown",
            (True, False): "not shown",
            (False, True): "refuted",
            (False, False): "not refuted",
        }[rejects, small]
        lines.append([claim, f"{p:.2g}", said])

    five = [times[m] for m in RECORDS]
    ask("the five differ in time (Friedman)", friedman(five), True)
    for ours, theirs in (("SWAP", "FW"), ("SWAP", "CVM"), ("SWAP-2o", "CVM")):
        p = wilcoxon(times[ours], times[theirs], "less")
        ask(f"{ours} is faster than {theirs} (Wilcoxon)", p, True)
    p = wilcoxon(times["SWAP"], times["MFW"], "greater")
    ask("SWAP is not slower than MFW (Wilcoxon)", p, False)
    p = wilcoxon(times["SWAP"], times["MFW"], "less")
    ask("SWAP is faster than MFW (Wilcoxon)", p, True)
    same = friedman([accuracy[m] for m in RECORDS])
    ask("the five are equally accurate (Friedman)", same, False)
    p = wilcoxon(accuracy["SWAP"], accuracy["CVM"], "less")
    ask("SWAP is not less accurate than CVM (Wilcoxon)", p, False)
    if "auto" in times:
        p = wilcoxon(times["auto"], times["SWAP-2o"], "less")
        ask("auto is faster than SWAP-2o (Wilcoxon)", p, True)
    report.table(["claim (test)", "p", "at 5 %"], lines)


def exponent(results: list[dict], of: str) -> str:
    """Slope of the log of a time over the log of the rows, by least squares."""
    done = [r for r in results if r["certified"]]
    if len(done) < 3:
        return f"- ({len(done)} fits)"
    rows, times = (np.log([r[key] for r in done]) for key in ("rows", of))
    slope = np.polyfit(rows, times, 1)[0]
    return f"{slope:.2f} ({len(done)} fits)"


def growth(report: Report, results: dict, args) -> None:
    """Time over the rows on the Adult series, and the exponent of each method."""
    names = [m if "," in m or m == "auto" else f"{m}, sampled" for m in GROWING]
    sets = [name for name in SERIES if name in args.sets]
    report.say("## How the time grows: the Adult series at full size, Gaussian kernel")
    report.say()
    report.say(
        "The time of every method grows with the rows to a power of about 2. The "
        "exponent of `auto` is the smallest."
    )
    report.say()
    report.say(
        f"Each entry has wall seconds / CPU seconds until the gap of {args.tol:g} is "
        f"proved, with all rows. A fit has {args.time_limit:g} s of wall time and a "
        f"cache of {args.cache:g} MB. A fit stopped by the limit shows the gap it had "
        "proved. CPU seconds are the surer figure."
    )
    report.say()

    def shown(r: dict) -> str:
        if r["certified"]:
            return f"{r['seconds']:.2f} / {r['cpu']:.2f}"
        gap = "none" if r["gap"] is None else f"{r['gap']:.1e}"
        return f"> {args.time_limit:g} / {r['cpu']:.0f}, at {gap}"

    by = {m: [results[name, "Gaussian", m] for name in sets] for m in GROWING}
    report.table(
        ["set", "rows", "support vectors (auto)", *names],
        [
            [name, by["auto"][k]["rows"], by["auto"][k]["support"],
             *(shown(by[m][k]) for m in GROWING)]
            for k, name in enumerate(sets)
        ]
        + [
            [f"exponent, {said}", "", "", *(exponent(by[m], of) for m in GROWING)]
            for said, of in (("wall", "seconds"), ("CPU", "cpu"))
        ],
    )  # fmt: skip
    report.say(
        "The exponent is the slope of log time over log rows through the certified "
        "fits, at least three. Stopped fits are left out. An exponent over fewer sets "
        "is therefore one of the smaller sets only."
    )
    report.say()
    report.say(
        "The full gradient costs a power of about 2 if the share of support vectors "
        "stays the same (here about 0.6). Each of them needs a row of the kernel "
        "matrix."
    )
    report.say()
    report.say(
        "The paper's own figure was not available for comparison. Its abstract states "
        "no growth rate, sub-quadratic or other, and does not compare with CVM. It "
        "says that SWAP is faster than FW with classic away steps (MFW), works where "
        "those slow FW down, and is as accurate. An earlier paper's abstract says that "
        "Frank-Wolfe methods scale better than CVM in most cases: Frandi et al., "
        "Training SVMs Using Frank-Wolfe Optimization Methods."
    )
    report.say()
    report.say(
        "Ratios of wall times along the series follow, for sets on which the second "
        "method was certified. A stopped fit of the first one counts with its limit."
    )
    report.say()
    for own, other in (("SWAP, full", "MFW, full"), ("SWAP, full", "CVM, full"),
                       ("SWAP", "CVM")):  # fmt: skip
        ratios = [
            (b["seconds"] if b["certified"] else args.time_limit) / a["seconds"]
            for a, b in zip(by[own], by[other], strict=True)
            if a["certified"]
        ]
        said = {m: n for m, n in zip(GROWING, names, strict=True)}
        text = ", ".join(f"{ratio:.2f}" for ratio in ratios) or "no fit certified"
        report.say(f"* {said[other]} / {said[own]}: {text}.")
    report.say()


CONCLUSION = """\
**SWAP is shown to be faster than FW in every experiment.
With the full gradient it is also faster than CVM, but not with 60 sampled rows.**

At 2000 rows dualgap's `auto` is slower than SWAP-2o with the Gaussian kernel.
With the polynomial kernel they are about equal.
With up to 20000 rows `auto` is faster with both.

Geometric mean of the speed-ups over CVM:

"""


def table_of_speed_ups(speed_ups: dict) -> str:
    """Return a Markdown table of the mean speed-ups over CVM."""
    names = ["FW", "MFW", "SWAP", "SWAP-2o", "auto"]
    lines = [f"| experiment | {' | '.join(names)} |", "|---" * 6 + "|"]
    for title, means in speed_ups.items():
        cells = [f"{means[m]:.2f}" if m in means else "–" for m in names]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Run what is missing, and write docs/papers/nanculef2014.{md,json}."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", default=list(SETS), metavar="SET")
    parser.add_argument("--kernels", nargs="+", default=list(KERNELS), choices=KERNELS)
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--max-rows", type=int, default=2000, help="training rows")
    parser.add_argument("--max-test", type=int, default=2000, help="test rows")
    parser.add_argument("--time-limit", type=float, default=5.0, help="seconds a fit")
    parser.add_argument("--cache", type=float, default=500.0, help="megabytes")
    parser.add_argument(
        "--results", type=Path, default=CACHE / "nanculef2014.jsonl", metavar="FILE"
    )
    args = parser.parse_args()
    unknown = set(args.sets) - set(SETS)
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join(SETS)}")
    if not DATA.is_dir():
        parser.error(f"no data at {DATA}: set DUALGAP_DATA to the folder of data sets")
    results = run(args, args.sets, args.kernels, METHODS)
    whole = argparse.Namespace(**vars(args) | GROWTH)
    series = [name for name in SERIES if name in args.sets]
    grown = run(whole, series, ["Gaussian"], GROWING)
    more = argparse.Namespace(**vars(args) | LARGER)
    larger = run(more, args.sets, args.kernels, GROUPS["the full gradient"])
    report = Report(
        "nanculef2014",
        "Frank-Wolfe SVMs (Nanculef, Frandi, Sartori and Allende 2014), reproduced",
    )
    report.say("## What was measured")
    report.say()
    report.say(
        f"- **Problem.** The L2-SVM with the bias in the kernel, C = {args.C:g}. gamma "
        "is 1/mean squared distance. The polynomial is homogeneous of second order.\n"
        f"- **Data.** Sets with more rows are cut to {args.max_rows} random training "
        "rows. The classes keep their shares.\n"
        f"- **Not included.** {ABSENT}.\n"
        "- **Methods.** CVM, FW, MFW, SWAP and SWAP-2o of the paper. `auto` is "
        "dualgap's block solver.\n"
        "- **Accuracy.** Every fit goes on until a full scan proves a relative gap of "
        f"{args.tol:g}. The paper stopped at the gap of a sample, which proves "
        "nothing. Its times are therefore for another task.\n"
        "- **Time.** Wall seconds of one run on one thread, cache "
        f"{args.cache:g} MB, all pairs of several classes together. A fit stopped by "
        f"the limit of {args.time_limit:g} s counts with the limit.\n"
        "- **Paper.** It claims that SWAP is faster than FW and CVM, competitive with "
        "MFW or faster, and of the same accuracy. It also claims that the speed-ups "
        "over CVM grow with the set, far beyond what these sizes can show. Its tables "
        "were not available.\n"
        "- **Command.** `python benchmarks/papers/nanculef2014.py "
        f"--max-rows {args.max_rows} --max-test {args.max_test} "
        f"--time-limit {args.time_limit:g}`."
    )
    report.say()
    report.say("## Full gradient or samples")
    report.say()
    for kernel in args.kernels:
        faster = [
            results[name, kernel, "SWAP-2o"]["seconds"]
            / results[name, kernel, "SWAP-2o, full"]["seconds"]
            for name in args.sets
        ]
        report.say(
            f"* {kernel} kernel: SWAP-2o is {min(faster):.1f} to {max(faster):.0f} "
            "times faster with the full gradient than with samples, at these sizes. "
            f"The geometric mean is at least {np.exp(np.log(faster).mean()):.1f}."
        )
    report.say()
    speed_ups = {}
    for kernel in args.kernels:
        for title, methods in GROUPS.items():
            report.say(f"## {kernel} kernel, {title}")
            report.say()
            speed_ups[f"{kernel}, {title}"] = tables(
                report, results, kernel, methods, args
            )
    for kernel in args.kernels:
        report.say(f"## {kernel} kernel, the full gradient, more rows")
        report.say()
        report.say(
            f"Up to {more.max_rows} rows, {more.time_limit:g} s a fit, cache "
            f"{more.cache:g} MB."
        )
        report.say()
        speed_ups[f"{kernel}, the full gradient, more rows"] = tables(
            report, larger, kernel, GROUPS["the full gradient"], more
        )
    if series:
        growth(report, grown, whole)
    report.conclusion = CONCLUSION + table_of_speed_ups(speed_ups)
    report.results = [
        {"set": name, "kernel": kernel, "method": method, **result}
        for found in (results, grown, larger)
        for (name, kernel, method), result in found.items()
    ]
    report.write()


if __name__ == "__main__":
    main()
