"""Train scikit-learn's own SVM classes by dualgap, without a change of the program.

>>> import dualgap
>>> with dualgap.patch_sklearn():
...     from sklearn.svm import SVC
...     from sklearn.datasets import load_iris
...     model = SVC().fit(*load_iris(return_X_y=True))
>>> model.certificate_.certified
True

``python -m dualgap.patch script.py`` runs a script patched, and ``%load_ext
dualgap.patch`` patches a notebook.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import sklearn.svm

from .estimators.base import tell
from .estimators.drop_ins import DROP_INS, exchange

__all__ = ["patch_sklearn", "unpatch_sklearn"]


def patch_sklearn(names: str | Iterable[str] | None = None) -> Patch:
    """Let dualgap train the classes of `sklearn.svm`.

    `LinearSVC`, `SVC`, `NuSVC`, `LinearSVR`, `SVR`, `NuSVR` and `OneClassSVM` of
    scikit-learn are replaced by subclasses with the same signatures, defaults and
    attributes, whose fits are dualgap's and have a ``certificate_``. What dualgap does
    not train, such as ``gamma=0``, scikit-learn trains as before, and the logger
    "dualgap" says so.

    Call it before ``from sklearn.svm import ...``: a name that was imported earlier
    stays scikit-learn's. Processes that are started later are not patched; they train
    by dualgap if they are given a patched class or model.

    Parameters
    ----------
    names : str or iterable of str, optional
        Classes to replace; all seven if left out.

    Returns
    -------
    Patch
        A context manager. ``with patch_sklearn(): ...`` undoes the patch at the end.

    Raises
    ------
    ValueError
        If a name is none of the seven.

    Warns
    -----
    UserWarning
        If the program itself has imported one of the classes already.

    See Also
    --------
    unpatch_sklearn : Put scikit-learn's classes back.

    Examples
    --------
    >>> import dualgap
    >>> from sklearn.datasets import load_iris
    >>> with dualgap.patch_sklearn():
    ...     from sklearn.svm import LinearSVC
    ...     model = LinearSVC().fit(*load_iris(return_X_y=True))
    >>> model.certificate_.certified
    True
    """
    chosen = _checked(names)
    active, program = _active(), vars(sys.modules["__main__"])
    early = [name for name in chosen if program.get(name) is DROP_INS[name]._original]
    if early:
        again = f"from sklearn.svm import {', '.join(early)}"
        tell(
            "imported before patch_sklearn(), and therefore still scikit-learn's: "
            f"{', '.join(early)}; repeat '{again}'",
            UserWarning,
        )
    for name in chosen:
        exchange(name, DROP_INS[name]._original, DROP_INS[name])
    return Patch([name for name in chosen if name not in active])


def unpatch_sklearn(names: str | Iterable[str] | None = None) -> None:
    """Put scikit-learn's own classes back.

    Models that were trained in the meantime work on, and can be pickled.

    Parameters
    ----------
    names : str or iterable of str, optional
        Classes to put back; all seven if left out.

    Raises
    ------
    ValueError
        If a name is none of the seven.
    """
    for name in _checked(names):
        exchange(name, DROP_INS[name], DROP_INS[name]._original)


class Patch:
    """Context manager that undoes the patch; :func:`patch_sklearn` returns it.

    `names`: classes that this patch has replaced. Classes that an earlier patch had
    replaced stay replaced at the end.
    """

    def __init__(self, names: list[str]) -> None:
        self.names = names

    def __enter__(self) -> Patch:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        unpatch_sklearn(self.names)

    def __repr__(self) -> str:
        return f"<dualgap trains {', '.join(_active()) or 'nothing'} of sklearn.svm>"


def load_ipython_extension(shell: Any) -> None:
    """Patch scikit-learn: ``%load_ext dualgap.patch``."""
    patch_sklearn()


def unload_ipython_extension(shell: Any) -> None:
    """Undo the patch: ``%unload_ext dualgap.patch``."""
    unpatch_sklearn()


def _checked(names: str | Iterable[str] | None) -> list[str]:
    if names is None:
        return list(DROP_INS)
    if not isinstance(names, Iterable):
        raise TypeError(
            f"names={names!r} is not a list of classes; choose from "
            f"{', '.join(DROP_INS)}"
        )
    chosen = [names] if isinstance(names, str) else list(names)
    for name in chosen:
        if name not in DROP_INS:
            raise ValueError(
                f"names: dualgap replaces no class {name!r}; choose from "
                f"{', '.join(DROP_INS)}"
            )
    return chosen


def _active() -> list[str]:
    """Return the classes that are replaced at present."""
    return [name for name in DROP_INS if getattr(sklearn.svm, name) is DROP_INS[name]]


# ------------------------------------------------------------------ the command line

_USAGE = """usage: python -m dualgap.patch script.py [arguments ...]
       python -m dualgap.patch -m module [arguments ...]

Run a script or a module with the SVMs of scikit-learn trained by dualgap."""


def main(arguments: Sequence[str]) -> int:
    """Run a script patched, as ``python script.py`` would.

    Returns the exit status: 2 if there is nothing to run.
    """
    if arguments[:1] in (["-h"], ["--help"]):
        print(_USAGE)
        return 0
    module = arguments[:1] == ["-m"]
    own = list(arguments[1:] if module else arguments)
    if not own:
        print(_USAGE, file=sys.stderr)
        return 2
    if not module and not Path(own[0]).exists():
        print(f"dualgap.patch: there is no file {own[0]}", file=sys.stderr)
        return 2
    patch_sklearn()
    sys.argv = own
    sys.path[0] = str(Path.cwd() if module else Path(own[0]).resolve().parent)
    if module:
        runpy.run_module(own[0], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(own[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
