"""Old names of modules, for pickles and programs that were written with them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.abc import Loader
else:  # the import would take longer than that of dualgap
    Loader = object

__all__ = ["MOVED", "MovedModules"]

#: Modules that programs may import or pickles may name, and where they are now.
MOVED = {
    "dualgap.checkpoint": "dualgap.training.checkpoint",
    "dualgap.estimators.distributed": "dualgap.distributed.linear_svc",
    "dualgap.loop": "dualgap.training.loop",
    "dualgap.path": "dualgap.training.path",
    "dualgap.stream": "dualgap.training.stream",
}


class MovedModules(Loader):
    """Import a module of `MOVED` under its old name as the module it is now."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if fullname in MOVED else None

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        sys.modules[module.__name__] = import_module(MOVED[module.__name__])
