"""``dualgap tune``: choose C, and gamma of a kernel, by cross-validation."""

from __future__ import annotations

from . import NOT_CERTIFIED
from .data import notes_of
from .options import Options
from .parser import UsageError, Values
from .path import add_grid, grid_of, plainly, read_for, show
from .records import refuse_shape
from .report import draw, picture_format

EPILOG = (
    "dualgap tune a9a a9a.model",
    "dualgap tune a9a --C 0.01,0.1,1,10 --cv 10 --picture scores.png",
    "dualgap tune a9a a9a.model --kernel rbf --C 0.1,1,10 --gamma 0.01,0.1,scale",
    "Every fold trains all values of C, each from the solution of the previous one, "
    "and proves every model. MODEL is trained on all of DATA with the best parameters.",
    "Exit status: 0 all models are certified to --tol; 3 some are not; 1 bad data or "
    "files; 2 wrong usage.",
)


def add(command: Options) -> None:
    """Add the options."""
    add_grid(command, "LinearSVCCV", "SVCCV")
    text = "File for the model of the best parameters, in the safetensors format."
    command.output("MODEL", text, name="model", shown="none")
    text = "Draw the scores against C: .png, .svg or .pdf."
    command.add("--picture", text, str, "FILE", group="Output")


def run(o: Values) -> int:
    """Search, print a row for every candidate, and write the best model."""
    search = "LinearSVCCV" if o.kernel is None else "SVCCV"
    parameters = grid_of(o, search) | {"refit": o.model is not None}
    if o.kernel is not None:
        if o.picture is not None:
            raise UsageError("--picture is not for --kernel; leave it out.")
        o.gamma = o.gammas
        refuse_shape(o)
    if o.gammas is not None:
        parameters["gammas"] = [gamma for part in o.gammas for gamma in part]
    if o.picture is not None:
        picture_format(o.picture)
    examples, scaling = read_for(o, "tune", [o.model, o.picture])
    import numpy as np

    from .. import estimators

    with plainly():
        model = getattr(estimators, search)(**parameters)
        found = model.fit(examples.X, examples.y, examples.weight)
    results = found.cv_results_
    folds = range(found.n_splits_)
    gaps = np.stack([results[f"split{f}_relative_gap"] for f in folds])
    rows = [
        {
            **params,
            "relative_gap": float(gaps[:, k].max()),
            "mean_score": float(results["mean_test_score"][k]),
            "std_score": float(results["std_test_score"][k]),
        }
        for k, params in enumerate(results["params"])
    ]
    facts = {f"best_{name}": value for name, value in found.best_params_.items()}
    facts["best_score"] = float(found.best_score_)
    proved = all(row["relative_gap"] <= found.tol for row in rows)
    if o.model is not None:
        from ..models.files import save_parts

        best = found.best_estimator_
        save_parts(best, o.model, False, notes_of(examples), scaling, examples.names)
        proved = proved and best.certificate_.certified
        facts |= {"model": o.model}
    if o.picture is not None:
        from ..plot import PathDisplay

        draw(PathDisplay.from_estimator(found), o.picture)
    show(o, rows, facts | {"certified": proved}, examples)
    return 0 if proved else NOT_CERTIFIED
