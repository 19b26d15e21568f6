"""``dualgap predict``: predict labels, scores or probabilities with a model."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .data import read_as_trained, tell
from .files import DASH, refuse_unreadable, refuse_unwritable
from .options import Options
from .parser import UsageError, Values
from .quality import in_words, predictions, quality, with_undecided
from .report import print_json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

EPILOG = (
    "dualgap predict a9a.t a9a.model labels.txt",
    "dualgap predict a9a.t a9a.model --scores > scores.txt",
    "dualgap predict a9a.t a9a.model --proba > probabilities.txt",
    "dualgap predict a9a.t a9a.model --json -o labels.txt",
    "dualgap predict a9a.t a9a.model --undecided '?'",
    "If DATA has labels, the accuracy and the balanced accuracy (the mean over the "
    "classes of the fraction found) go to standard error or into the JSON; for "
    "regression, the mean squared error, the mean absolute error and R2. Labels that "
    "are all 0 count as missing.",
    "A one-class model predicts 1 for inliers and -1 for outliers.",
)


def add(command: Options) -> None:
    """Add the options."""
    command.data(store=True)
    command.trained_model()
    text = "File for the predictions, which appears when it is complete."
    command.output("OUT", text, shown="standard output")
    text = (
        "Write decision values instead of labels: one column for two classes (positive "
        "for the larger label), else one column per class."
    )
    command.flag("--scores", text, "Output")
    text = (
        "Write probabilities instead of labels, one column per class. MODEL has to be "
        "of train --probability."
    )
    command.flag("--proba --probability -b", text, "Output")
    text = (
        "Write LABEL where training to the end could still change the label. Models of "
        "train --bounds decide more."
    )
    command.add("--undecided", text, str, "LABEL", group="Output")
    command.table_options(trained=True)
    command.jobs("predicting with a kernel")
    command.common()


def run(o: Values) -> None:
    """Write the predictions, and tell their quality."""
    from ..data.atomic import is_device, write_atomically

    output = None if o.output == DASH else o.output
    refuse_unreadable(o.data)
    device = output is not None and is_device(output)
    if output is not None and not device:
        refuse_unwritable(output, [o.data, o.model])
    if o.scores + o.proba + (o.undecided is not None) > 1:
        raise UsageError("--scores, --proba and --undecided exclude each other.")
    fitted, examples = read_as_trained(o, whole=o.undecided is not None)
    if o.proba and not hasattr(fitted, "calibrators_"):
        raise ValueError(f"{o.model} has no probabilities; train it with --probability")
    values, labels = predictions(fitted, examples.X, o.n_jobs)
    if o.proba:
        values = fitted._probabilities(values)
    figures, remark = quality(fitted, examples, labels)
    tell(examples)
    wanted = values if o.scores or o.proba else labels
    if o.undecided is not None:
        wanted = with_undecided(fitted, examples.X, labels, o.undecided)
    if output is not None:
        with open(output, "w") if device else write_atomically(output, "w") as file:
            file.writelines(_lines(wanted))
    if o.json:
        report = {"n": examples.shape[0], **figures, "remark": remark or None}
        if output is None:
            kind = "probabilities" if o.proba else "scores" if o.scores else "labels"
            report[kind] = wanted.tolist()
        print_json(report | {"output": output})
        return
    if output is None:
        sys.stdout.writelines(_lines(wanted))
    scored = in_words(figures)
    told = f"{scored}; {remark}" if remark else scored
    print(told if scored else f"Not scored: {remark}.", file=sys.stderr)


def _lines(predictions: NDArray[np.generic]) -> Iterator[str]:
    """Yield blocks of lines with one prediction each; floats read back exactly."""
    for begin in range(0, len(predictions), 8192):
        rows = predictions[begin : begin + 8192].tolist()
        if predictions.ndim == 2:
            rows = [" ".join(map(str, row)) for row in rows]
        yield "".join(f"{row}\n" for row in rows)
