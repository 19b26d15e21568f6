"""The public names of the package."""

from __future__ import annotations

import dualgap


def test_dir_lists_what_can_be_imported_and_nothing_else() -> None:
    names = [name for name in dir(dualgap) if not name.startswith("__")]
    assert {*dualgap.__all__} - {"__version__"} <= {*names}
    assert {"data", "distributed", "kernel", "losses", "plot", "solvers"} <= {*names}
    assert not {"Any", "TYPE_CHECKING", "annotations"} & {*names}
    for name in names:
        assert getattr(dualgap, name) is not None
    assert "__version__" in dir(dualgap)
    assert dualgap.__version__
