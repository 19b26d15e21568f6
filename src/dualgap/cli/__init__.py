"""The command line: one file per command.

Exit status: 0 done, and for ``train`` certified to ``--tol``; 1 bad data or files;
2 wrong usage; 3 trained, but not to ``--tol`` (the model is written); 130 interrupted.

NumPy, SciPy and scikit-learn are imported by the commands that need them: help and
usage errors come at once. What commands share is in ``options.py`` (the app, options,
errors), ``data.py`` (files) and ``report.py`` (progress, certificates, JSON).
"""

from __future__ import annotations

from .options import INTERRUPTED, NOT_CERTIFIED, app  # isort: skip  (finds what lacks)
from . import certify, compare, convert, export, inspect, path, predict, train

__all__ = ["INTERRUPTED", "NOT_CERTIFIED", "app", "main"]

# Importing a module puts its command into the app.
COMMANDS = (train, predict, certify, path, compare, export, inspect, convert)


def main() -> None:
    """Run the command line on ``sys.argv``; does not return."""
    app(prog_name="dualgap")
