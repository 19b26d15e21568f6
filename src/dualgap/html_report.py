"""Report on a fitted model: one HTML page that needs no other file and no network."""

from __future__ import annotations

import base64
import copy
import html
import math
import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import resources
from importlib.metadata import version
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.metrics import confusion_matrix, mean_absolute_error
from sklearn.utils.validation import column_or_1d

from .certificate import Certificate, percent
from .data.atomic import write_atomically
from .data.types import MatrixLike
from .estimators import SVC, LinearSVCCV, unwrap
from .estimators.fitted import refuse_other_rows
from .estimators.input import check_array
from .kernels.functions import refuse_items
from .models import certify
from .models.linear import degenerate_remarks
from .plot import COLORS, ConvergenceDisplay, MarginDisplay, PathDisplay, pyplot, svg
from .plot.training import proved_gaps
from .problems.reductions import refuse_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Report", "report"]


@dataclass(frozen=True)
class ReportSettings:
    """Tuning constants of the page."""

    #: Rows of a table before the rest is collapsed.
    shown: int = 15
    #: Relative gap up to which a model of another package is near the optimum.
    near: float = 0.01
    #: Relative gap from which a model is far from the optimum.
    far: float = 0.1
    #: Share of support vectors from which the page advises on them.
    most: float = 0.9
    #: Support vectors from which compress is worth its time.
    compressible: int = 1000
    #: Ratio of the ranges of two columns from which it is a problem.
    uneven: float = 100.0
    #: Interquartile ranges between the median and a far-off value.
    outlying: float = 100.0
    #: Rows that the quartiles are estimated from.
    sample: int = 10_000


SETTINGS = ReportSettings()

_PAGE = Template(
    resources.files(__package__).joinpath("html_report.html").read_text("utf-8")
)


@dataclass(frozen=True)
class Report:
    """Page about a fitted model, made by :func:`report`. Notebooks show it in a frame.

    Attributes
    ----------
    html : str
        The whole page.
    """

    html: str = field(repr=False)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file in UTF-8. An existing file is replaced."""
        with write_atomically(path, "w") as file:
            file.write(self.html)

    def _repr_html_(self) -> str:
        style = "width:100%;height:45em;border:1px solid #ccc"
        return f'<iframe style="{style}" srcdoc="{html.escape(self.html)}"></iframe>'


def report(
    model: BaseEstimator,
    X: MatrixLike,
    y: ArrayLike | None = None,
    *,
    feature_names: Sequence[str] | None = None,
    **options: Any,
) -> Report:
    """Describe a fitted model and its training data on one HTML page.

    The page shows the certificate, the convergence of the fit, errors and margins on
    the training rows, support vectors, classes, problems of the columns, and what to
    try next. Its pictures are inside, and it opens without network.

    Parameters
    ----------
    model : estimator
        A fitted estimator of dualgap, or a model of scikit-learn that :func:`certify`
        accepts, alone or in a pipeline or search.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The training rows.
    y : array-like of shape (n_samples,), optional
        The training labels or targets. Ignored for one-class models.
    feature_names : sequence of str, optional
        Names of the columns of X; by default the names in a data frame.
    **options
        Options of :func:`certify`: `sample_weight` and `n_jobs` for every model; `tol`,
        `time_limit` and `random_state` for models that have no certificate yet.

    Returns
    -------
    Report
        ``save(path)`` writes the page. Errors on it count every row once, whatever its
        weight.

    Raises
    ------
    ValueError
        If X and y are evidently not the training data, or as :func:`certify`.
    TypeError
        If the model is not an estimator that :func:`certify` accepts.
    ImportError
        If matplotlib is missing.

    Examples
    --------
    >>> import dualgap
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = dualgap.LinearSVC(random_state=0).fit(X, y)
    >>> dualgap.report(model, X, y).save("iris.html")
    """
    pyplot()  # raises an error before any work if it is missing
    if not hasattr(model, "predict"):
        raise TypeError(
            f"model is of type {type(model).__name__}; give a fitted estimator (for "
            "the coefficients of a linear model there is certify)"
        )
    given, before, (model, X) = model, X, unwrap(model, X)
    refuse_labels(model, "report")
    if hasattr(model, "_items"):
        refuse_items("report")
    if getattr(model, "loss", "") == "quantile" and np.size(model.quantile) > 1:
        raise ValueError(
            f"quantile={model.quantile!r}: report is about one quantile; train a model "
            "for each"
        )
    certificate = _certificate(model, X, y, options)
    names = _column_names(given, before, feature_names)
    colour, badge = _verdict(certificate)
    advice = _remarks_on_the_fit(model, certificate, colour)
    advice += degenerate_remarks(model, X, y, certificate, options.get("sample_weight"))
    if getattr(model, "kernel", None) != "precomputed":
        advice += _remarks_on_columns(X, names)
    with warnings.catch_warnings():
        # A model fitted on a table has feature names, but arrays have none.
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        judge = _one_class if hasattr(model, "decision_function") else _regression
        judge = _classification if hasattr(model, "classes_") else judge
        quality, body = judge(model, X, y, advice)
        own = hasattr(model, "certified_labels")
        proved = _proved_labels(model, X, y, options) if own else ""
    search = given.steps[-1][1] if hasattr(given, "steps") else given
    sections = {"Training rows": body, "Next steps": ""}
    if isinstance(search, LinearSVCCV):
        sections["Cross-validation"] = _search(search, advice)
    sections["Certificate"] = _parts(certificate)
    if hasattr(model, "history_"):
        sections["Convergence"] = _convergence(model, certificate)
    sections["Advanced"] = proved
    advice.append(
        "Errors on this page are errors on the training rows. Judge the model on other "
        "rows too: cross_val_score, or dualgap score."
    )
    steps = "".join(f"<li>{_safe(item)}</li>" for item in advice)
    if "alpha" in model.get_params():  # the inverse of C
        steps = steps.replace("larger C", "smaller alpha").replace(
            "lower C", "raise alpha"
        )
    sections["Next steps"] = f"<ul>{steps}</ul>"
    titled = {title: text for title, text in sections.items() if text}
    n, d = np.shape(X)
    page = _PAGE.substitute(
        title=_safe(type(model).__name__),
        quality=quality,
        colour=colour,
        badge=badge,
        message=_safe(certificate.message),
        model=_safe(given),
        size=(
            f"Measured on the training rows: {n:,} rows, {d:,} columns. "
            f"{_support(model, n)[1]}"
        ),
        version=_safe(version("dualgap")),
        sections="".join(f"<h2>{name}</h2>{text}\n" for name, text in titled.items()),
    )
    return Report(page)


def _certificate(
    model: BaseEstimator, X: MatrixLike, y: ArrayLike | None, options: dict[str, Any]
) -> Certificate:
    """Return the model's own certificate if it is about these rows, or a new one."""
    own = getattr(model, "certificate_", None)
    if own is None or own.relative_gap == math.inf:
        return certify(model, X, y, **options)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X and y are not the rows")  # an error here
        # Only the objective matters, so that any gap will do.
        here = certify(model, X, y, **options | {"tol": 1e300})
    refuse_other_rows(own, list(here.parts))
    return own


def _verdict(certificate: Certificate) -> tuple[str, str]:
    """Return the colour and the words of the badge."""
    gap = max(part.relative_gap for part in certificate)
    if certificate.certified:
        return "green", "certified"
    if certificate.status is None and gap <= SETTINGS.near:
        return "green", "near the optimum"
    if gap < SETTINGS.far:
        return "amber", "not converged"
    return "red", "far from the optimum" if gap < math.inf else "no bound"


def _remarks_on_the_fit(
    model: BaseEstimator, certificate: Certificate, colour: str
) -> list[str]:
    remarks = []
    solver = getattr(model, "solver", "auto")
    if colour != "green" and certificate.status is None:
        remarks.append(
            "Train again with a smaller tol and more iterations, or with dualgap, "
            "which goes on until the gap is proved."
        )
    elif colour != "green" and solver != "auto":
        remarks.append(f"Train with solver='auto' instead of {solver!r}.")
    vectors, _ = _support(model, 1)
    slow = isinstance(model, SVC) and model.kernel != "linear" and not certificate.about
    if slow and vectors >= SETTINGS.compressible:
        remarks.append(
            f"Prediction takes time in proportion to the {vectors:,} support vectors: "
            "dualgap.compress drops some, and proves what that costs."
        )
    return remarks


def _parts(certificate: Certificate) -> str:
    """Return the table of the parts, with the largest gap first."""
    head = ["", "within", "primal", "dual"]
    if certificate.status is not None:
        head += ["status", "epochs", "seconds", "solver"]

    def cells(c: Certificate, name: str) -> list[str]:
        gap = percent(c.relative_gap)
        found = [name, gap, f"{c.primal:.9g}", f"{c.dual:.9g}"]
        if c.status is not None:
            found += [c.status.label, f"{c.epochs:,}", f"{c.seconds:.3g}", c.solver]
        return found

    worst = sorted(certificate, key=lambda c: (c.certified, -c.relative_gap))
    rows = [cells(part, part.name) for part in worst]
    if certificate.several:
        rows.insert(0, cells(certificate, "all together"))
    return _table(head, rows)


def _convergence(model: BaseEstimator, certificate: Certificate) -> str:
    """Return the plot of the best proved gaps against time."""
    histories = model.history_ if isinstance(model.history_, list) else [model.history_]
    # matplotlib takes text between dollars for a formula.
    names = [
        part.name.replace("$", r"\$") or type(model).__name__ for part in certificate
    ]
    if not any(np.isfinite(proved_gaps(history)).any() for history in histories):
        return "<p>No relative gap was known before the end of the fit.</p>"
    curves = dict(zip(names, histories, strict=True))
    return _picture(
        lambda ax: ConvergenceDisplay(curves, tol=certificate.tol).plot(ax=ax),
        "Dots are proofs, bold lines are the best of them so far, and thin lines are "
        "the solver's estimates.",
    )


def _search(model: BaseEstimator, advice: list[str]) -> str:
    """Return the plot of a search for C."""
    for end, C in (("smallest", np.min(model.Cs_)), ("largest", np.max(model.Cs_))):
        if model.C_ == C and len(model.Cs_) > 1:
            advice.append(f"The best C, {C:g}, is the {end} of Cs: search beyond it.")
    return _picture(
        lambda ax: PathDisplay.from_estimator(model, ax=ax),
        f"Mean and standard deviation of the scores of the folds. Best: {model.C_:g}.",
    )


def _classification(
    model: BaseEstimator, X: MatrixLike, y: ArrayLike | None, advice: list[str]
) -> tuple[str, str]:
    classes, labels = model.classes_, column_or_1d(y)
    names = [str(label) for label in classes]
    confusion = confusion_matrix(labels, model.predict(X), labels=classes)
    n, rows, right = len(labels), confusion.sum(axis=1), confusion.diagonal()
    accuracy, recalls = right.sum() / n, right / rows
    vectors, _ = _support(model, n)
    columns = [names, [f"{m:,}" for m in rows], map(_share, rows / n)]
    columns.append(map(_share, recalls))
    head = ["class", "rows", "share", "found"]
    per_class = np.ravel(getattr(model, "n_support_", []))
    if len(per_class) == len(classes):
        head.append("support vectors")
        columns.append(
            f"{k:,} ({_share(k / m)})" for k, m in zip(per_class, rows, strict=True)
        )
    if accuracy == 1.0:
        advice.append("All training rows are right. If others are not, lower C.")
    elif accuracy <= rows.max() / n:
        advice.append(
            "The model is no better than naming the largest class for every row: "
            "standardise the columns, or try a larger C"
            + (", or another gamma." if hasattr(model, "kernel") else ", or SVC.")
        )
    if vectors >= SETTINGS.most * n and accuracy < 1.0:
        advice.append("Nearly every row is a support vector: try a larger C.")
    least = int(np.argmin(recalls))
    small = rows[least] < n / len(classes)
    if recalls[least] < 0.5 and small and getattr(model, "class_weight", "") is None:
        biased = "class_weight='balanced' gives small classes more weight"
        remedy = "choose another threshold for predict_proba; class weights bias it"
        advice.append(
            f"Only {_share(recalls[least])} of the rows of class {names[least]} are "
            f"found: {remedy if hasattr(model, 'predict_proba') else biased}."
        )
    quality = (
        f"Accuracy <b>{_share(accuracy)}</b>, balanced accuracy "
        f"<b>{_share(recalls.mean())}</b>."
    )
    return quality, (
        _table(head, list(zip(*columns, strict=True)))
        + f"<h3>Confusion</h3>{_confusion(names, confusion)}"
        + _margins(model, X, labels)
    )


def _proved_labels(
    model: BaseEstimator, X: MatrixLike, y: ArrayLike | None, options: dict[str, Any]
) -> str:
    """Tell how many labels are proved to be the optimum's; "" where unknown."""
    model = copy.copy(model)  # the given one does not keep what this page finds
    try:
        model.bound_optimum(X, y, options.get("sample_weight"))
        certain = model.certified_labels(X)
    except ValueError:  # a problem without bounds, such as one over landmarks
        return ""
    proved = int(np.count_nonzero(certain))
    more = (
        " The bound is cautious: it allows for every model within the gap, and so "
        "leaves out labels that the exact optimum has too. A smaller tol, such as "
        "1e-6, or fit(X, y, until=Decided(X_new)) proves more."
    )
    return (
        "<h3>Labels proved equal to labels of the exact optimum</h3><p>"
        f"<b>{proved:,}</b> of {len(certain):,} ({_share(proved / len(certain))}). "
        "Training longer cannot change them."
        f"{more if proved < len(certain) else ''}</p>"
    )


def _confusion(names: list[str], confusion: NDArray[np.intp]) -> str:
    """Return the confusion matrix or, for many classes, the most frequent errors."""
    if len(names) <= SETTINGS.shown:
        rows = zip(names, confusion.tolist(), strict=True)
        body = [[name, *map(str, row)] for name, row in rows]
        return _table(["true class ↓, predicted →", *names], body)
    errors = confusion - np.diag(confusion.diagonal())
    order = np.argsort(-errors, axis=None, kind="stable")[: SETTINGS.shown]
    places = [divmod(int(k), len(names)) for k in order]
    body = [
        [names[i], names[j], f"{errors[i, j]:,}"] for i, j in places if errors[i, j]
    ]
    return _table(["true class", "predicted", "rows, most frequent first"], body)


def _margins(model: BaseEstimator, X: MatrixLike, y: NDArray[np.generic]) -> str:
    if not hasattr(model, "decision_function"):
        return ""  # calibrated: it has probabilities only
    classes = model.classes_
    if getattr(model, "decision_function_shape", "ovr") == "ovo":
        model = copy.copy(model)  # one score per class, the votes of its pairs
        model.decision_function_shape = "ovr"
    scores = np.array(model.decision_function(X), np.float64)
    note, binary = "Rows below 0 are misclassified.", scores.ndim == 1
    edge = binary and _support(model, 1)[1]  # beyond a margin of 1 there is no loss
    if binary:
        margins = np.where(y == classes[1], scores, -scores)
        label = "margin y f(x)"
        note += " Rows below 1 have a loss." if edge else ""
    else:
        own = np.arange(len(y)), np.searchsorted(classes, y)
        margins = scores[own]
        scores[own] = -np.inf
        margins -= scores.max(axis=1)
        label = "score of the true class − best score of another class"

    def draw(ax: Axes) -> None:
        MarginDisplay(margins, support=getattr(model, "support_", None)).plot(ax=ax)
        ax.set_xlabel(label)
        if not edge:
            ax.lines[1].remove()

    return _picture(draw, note)


def _regression(
    model: BaseEstimator, X: MatrixLike, y: ArrayLike | None, advice: list[str]
) -> tuple[str, str]:
    targets, predicted = column_or_1d(y), np.ravel(model.predict(X))
    quantile = getattr(model, "loss", "") == "quantile"
    score, kind = model.score(X, targets), "D²" if quantile else "R²"
    # scikit-learn's SVR has an attribute nu, which is no parameter.
    nu = model.get_params().get("nu")
    vectors, _ = _support(model, len(targets))
    if score < 0.0:
        advice.append(
            f"The predictions are worse than a constant ({kind} < 0): standardise the "
            "columns, or try a larger C, or intercept_scaling where the model has it."
            * hasattr(model, "intercept_scaling")
        )
    if vectors >= SETTINGS.most * len(targets) and not quantile:
        wider = "larger epsilon" if nu is None else "smaller nu"
        advice.append(f"Nearly every row is a support vector: try a {wider}.")
    ends_of_tube: tuple[float, ...] = (0.0,)
    note = "The loss is the square of each residual."
    if quantile:
        below = _share(np.mean(targets <= predicted))
        q = float(np.ravel(model.quantile)[0])
        note = (
            f"{below} of the targets are at or below the prediction (quantile {q:g})."
        )
    elif nu is not None:  # the model does not keep the epsilon that it chose
        note = f"At the optimum at most nu = {nu:g} of the rows lie outside the tube."
    elif hasattr(model, "epsilon"):
        epsilon, name = model.epsilon, "epsilon"
        if hasattr(model, "scale_"):  # Huber's regression
            epsilon, name = epsilon * model.scale_, "epsilon scale_"
        ends_of_tube = (-epsilon, epsilon)
        inside = np.mean(np.abs(targets - predicted) <= epsilon)
        note = f"{_share(inside)} of the residuals lie within ±{name} = ±{epsilon:g}."
    error = mean_absolute_error(targets, predicted)
    quality = f"{kind} <b>{score:.3f}</b>, mean absolute error <b>{error:.4g}</b>."
    ends = f"<p>Targets from {targets.min():.6g} to {targets.max():.6g}.</p>"
    return quality, ends + _histogram(
        targets - predicted, ends_of_tube, "residual y − f(x)", note
    )


def _one_class(
    model: BaseEstimator, X: MatrixLike, y: ArrayLike | None, advice: list[str]
) -> tuple[str, str]:
    outliers = _share(np.mean(model.predict(X) == -1))
    quality = (
        f"<b>{outliers}</b> of the rows are outliers; at the optimum at most nu = "
        f"{model.nu:g} of them are."
    )
    return quality, _histogram(
        np.ravel(model.decision_function(X)),
        (0.0,),
        "decision value",
        "Rows below 0 are outliers.",
    )


def _support(model: BaseEstimator, n: int) -> tuple[int, str]:
    """Return the number of support vectors, 0 if unknown, and a sentence if any."""
    counts = getattr(model, "n_support_", None)
    if counts is None and not hasattr(model, "support_"):
        svm = hasattr(model, "loss") or hasattr(model, "kernel")  # others have none
        return 0, "The model does not keep its support vectors." if svm else ""
    vectors = int(len(model.support_) if counts is None else np.sum(counts))
    return vectors, f"{vectors:,} support vectors, {_share(vectors / n)} of the rows."


def _column_names(
    model: BaseEstimator, X: MatrixLike, given: Sequence[str] | None
) -> Sequence[str] | None:
    """Return the names of the columns that the inner model sees; None if unknown."""
    d = np.shape(X)[1]
    if given is not None and len(given) != d:
        raise ValueError(
            f"feature_names has {len(given)} names, but X has {d} columns; give one "
            "per column"
        )
    names = getattr(X, "columns", None) if given is None else given
    model = getattr(model, "best_estimator_", model)
    if len(getattr(model, "steps", [])) < 2:
        return names
    try:
        return model[:-1].get_feature_names_out(names)
    except (AttributeError, ValueError):
        return None


def _remarks_on_columns(X: MatrixLike, names: Sequence[str] | None) -> list[str]:
    """Return remarks on constant columns, uneven scales and far-off values."""

    def named(columns: NDArray[np.intp]) -> str:
        some = [str(k if names is None else names[k]) for k in columns[:5]]
        more = f" and {len(columns) - 5:,} more" * (len(columns) > 5)
        return ", ".join(some) + more

    X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
    sparse, d = hasattr(X, "indptr"), X.shape[1]
    ends = [X.min(axis=0), X.max(axis=0)]
    low, high = (np.ravel(e.toarray() if sparse else e).astype(float) for e in ends)
    remarks, ranges = [], high / 2 - low / 2  # halves, which cannot overflow
    if (constant := np.flatnonzero(low == high)).size:
        remarks.append(
            f"{constant.size:,} of {d:,} columns are constant ({named(constant)}): "
            "drop them, because the model learns nothing from them."
        )
    order = np.argsort(ranges, kind="stable")[constant.size :]
    if order.size and ranges[order[-1]] > SETTINGS.uneven * ranges[order[0]]:
        small, large = (f"{2 * ranges[k]:.3g}" for k in order[[0, -1]])
        scaler = "MaxAbsScaler()" if sparse else "StandardScaler()"
        remarks.append(
            "The columns have very different scales: the values of column "
            f"{named(order[:1])} span {small}, the values of {named(order[-1:])} "
            f"{large}. Large columns dominate the model, and fits take longer. Use "
            f"make_pipeline({scaler}, model), or dualgap train --standardize."
        )
    if not sparse:
        rows = X[:: -(-len(X) // SETTINGS.sample)]
        first, median, third = np.percentile(rows, [25, 50, 75], axis=0)
        reach = np.maximum(high - median, median - low)
        far = (reach > SETTINGS.outlying * (third - first)) & (third > first)
        if far.any():
            remarks.append(
                f"{far.sum():,} of {d:,} columns have values far from all others "
                f"({named(np.flatnonzero(far))}): look for errors and for codes such "
                "as 99999, or use RobustScaler and clip."
            )
    return remarks


def _safe(value: object) -> str:
    return html.escape(str(value))


def _share(x: float) -> str:
    return f"{100.0 * x:.2f} %"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table. Rows beyond the first `SETTINGS.shown` are collapsed."""

    def line(cells: Sequence[str], tag: str) -> str:
        return f"<tr>{''.join(f'<{tag}>{_safe(c)}</{tag}>' for c in cells)}</tr>"

    shown = SETTINGS.shown
    first, rest = (
        f"<table>{line(head, 'th')}{''.join(line(row, 'td') for row in part)}</table>"
        for part in (rows[:shown], rows[shown:])
    )
    if len(rows) <= shown:
        return first
    return (
        f"{first}<details><summary>{len(rows) - shown:,} more</summary>{rest}</details>"
    )


def _histogram(
    values: NDArray[np.float64], lines: Sequence[float], label: str, note: str
) -> str:
    def draw(ax: Axes) -> None:
        ax.hist(values, 50, alpha=0.4, color=COLORS[0])
        for at in lines:
            ax.axvline(at, color="gray", ls="--")
        ax.set(xlabel=label, ylabel="rows")

    return _picture(draw, note)


def _picture(draw: Callable[[Axes], object], note: str) -> str:
    """Return a figure with its picture inside, so that nothing is loaded."""
    data = base64.b64encode(svg(draw)).decode("ascii")
    image = f'<img alt="{_safe(note)}" src="data:image/svg+xml;base64,{data}">'
    return f"<figure>{image}<figcaption>{_safe(note)}</figcaption></figure>"
