"""Other packages' names of kernels and solvers, and the name meant by a wrong one."""

from __future__ import annotations

import difflib
from collections.abc import Collection

__all__ = ["ALIASES", "nearest"]

#: Names of other packages, and the name here.
ALIASES = {
    "kernel": {
        "gaussian": "rbf",
        "radial": "rbf",
        "polynomial": "poly",
        "laplace": "laplacian",
        "tanh": "sigmoid",
    },
    "solver": dict.fromkeys(("smo", "libsvm", "liblinear"), "auto"),
}
#: Words that are less similar than this are not taken for misspellings.
_SIMILAR = 0.66


def nearest(word: str, known: Collection[str], parameter: str = "") -> str | None:
    """Return the known name that a wrong one stands for, or None.

    Parameters
    ----------
    word : str
        A name that is not known.
    known : collection of str
    parameter : str
        Parameter whose aliases count, a key of ``ALIASES``.

    Returns
    -------
    str or None
        The name that `word`, or the alias most similar to it, stands for.
    """
    aliases = ALIASES.get(parameter, {}).items()
    folded = {alias: name for alias, name in aliases if name in known}
    folded |= {name.lower().replace("_", "-"): name for name in known}
    near = difflib.get_close_matches(
        word.lower().replace("_", "-"), folded, n=1, cutoff=_SIMILAR
    )
    return folded[near[0]] if near else None
