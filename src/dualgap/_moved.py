"""Old names of modules, for pickles and programs that were written with them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING

from .names import refuse_import

if TYPE_CHECKING:
    from importlib.abc import Loader
else:  # its import takes longer than `import dualgap`
    Loader = object

__all__ = ["MOVED", "MovedModules"]

#: Modules that programs may import or pickles may name, and where they are now.
MOVED = {
    "dualgap.checkpoint": "dualgap.training.checkpoint",
    "dualgap.estimators.distributed": "dualgap.distributed.linear_svc",
    "dualgap.io": "dualgap.data",
    "dualgap.io.convert": "dualgap.data.conversion",
    "dualgap.io.model": "dualgap.data.model_file",
    "dualgap.io.peers": "dualgap.models.peer_files",
    "dualgap.kernel.auto": "dualgap.solvers.kernel.auto",
    "dualgap.kernel.base": "dualgap.solvers.kernel.base",
    "dualgap.kernel.block": "dualgap.solvers.kernel.block",
    "dualgap.kernel.core_vector": "dualgap.solvers.kernel.core_vector",
    "dualgap.kernel.frank_wolfe": "dualgap.solvers.kernel.frank_wolfe",
    "dualgap.kernel.functions": "dualgap.kernels.functions",
    "dualgap.kernel.gram": "dualgap.kernels.gram",
    "dualgap.kernel.interior": "dualgap.solvers.kernel.interior",
    "dualgap.kernel.nystroem": "dualgap.solvers.kernel.nystroem",
    "dualgap.kernel.pairs": "dualgap.solvers.kernel.pairs",
    "dualgap.kernel.pegasos": "dualgap.solvers.kernel.pegasos",
    "dualgap.kernel.predict": "dualgap.kernels.predict",
    "dualgap.kernel.problem": "dualgap.problems.kernel",
    "dualgap.kernel.regression": "dualgap.problems.kernel_boxes",
    "dualgap.kernel.rows": "dualgap.kernels.rows",
    "dualgap.kernel.table": "dualgap.kernels.table",
    "dualgap.loop": "dualgap.training",
    "dualgap.path": "dualgap.training.path",
    "dualgap.plot_bounds": "dualgap.plot.bounds",
    "dualgap.stream": "dualgap.training.stream",
}
#: Modules of `dualgap.io` that kept their names.
FROM_IO = """
    atomic chunks description files gather kinds lock numpy_sources scaling segments
    sources store svmlight tables text_sources work
"""
MOVED |= {f"dualgap.io.{name}": f"dualgap.data.{name}" for name in FROM_IO.split()}


class MovedModules(Loader):
    """Import a module of `MOVED` under its old name as the module it is now."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        if fullname in MOVED:
            return ModuleSpec(fullname, self)
        refuse_import(fullname)
        return None

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        moved = import_module(MOVED[name])
        if any(other.startswith(f"{name}.") for other in MOVED):
            # A package of its own: Python sets the modules imported from it as its
            # attributes, and `dualgap.io.convert` must not hide `dualgap.data.convert`.
            module.__path__ = []
            vars(module)["__getattr__"] = lambda attribute: getattr(moved, attribute)
        else:
            sys.modules[name] = moved
