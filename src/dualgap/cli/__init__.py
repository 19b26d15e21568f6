"""Command line: one module per command.

Exit status: 0 success, and for ``train`` certified to ``--tol``; 1 bad data or files;
2 wrong usage; 3 trained, but not to ``--tol`` (the model is written); 130 interrupted.

Commands import NumPy, SciPy and scikit-learn only when they need them, so that help and
usage errors appear at once, and linear classifiers do without scikit-learn. Shared
code is in ``app.py`` (the program, its help, errors), ``options.py``, ``data.py``
(files), ``quality.py`` (accuracy) and ``report.py`` (progress, certificates, JSON).
"""

from __future__ import annotations

from .app import INTERRUPTED, NOT_CERTIFIED, app  # isort: skip  (checks packages)
from . import (
    certify,
    convert,
    export,
    html_report,
    inspect,
    path,
    predict,
    prove,
    score,
    train,
)

__all__ = ["INTERRUPTED", "NOT_CERTIFIED", "app", "main"]

# Importing a module registers its command with the app.
COMMANDS = (
    *(train, predict, score, certify, html_report),
    *(path, export, prove, inspect, convert),
)


def main() -> None:
    """Run the command line on ``sys.argv``, and exit."""
    app(prog_name="dualgap")
